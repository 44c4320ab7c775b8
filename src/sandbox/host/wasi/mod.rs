//! WASI 0.2 as far as modules have it.
//!
//! Clocks, random bytes, standard streams that become log lines, an environment that is the module's settings, and
//! outgoing HTTP through [`Egress`](super::super::egress). Files and sockets are there so that language runtimes link:
//! nothing is open and everything that would open something is denied.
//!
//! What belongs to an attempt is made when its guest first asks for it: most modules never do.

mod http_error;
mod outgoing;
mod poll;
mod random;
mod stdio;

use wasmtime::component::Linker;
use wasmtime_wasi::{I32Exit, ResourceTableError, WasiCtx, WasiCtxView, WasiView, p2::bindings as p2};
use wasmtime_wasi_config::{WasiConfig, WasiConfigVariables};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::super::{egress, grant::Grant, journal::Journal, state::State};

/// The interface of requests and responses, in the version that this host has.
const TYPES: &str = "wasi:http/types@0.2.12";

/// What all headers of one message may take, in bytes, bookkeeping included.
const FIELDS_BYTES_MAX: usize = 16 * 1024;

/// What an attempt holds for WASI.
pub(in super::super) struct Wasi {
    ctx: WasiCtx,
    variables: WasiConfigVariables,
    http: WasiHttpCtx,
    hooks: egress::Hooks,
    /// Random bytes that may still be asked for.
    random_bytes_left: u64,
    /// Where they come from; none: from the system.
    seeded: Option<random::Seeded>,
}

/// A limit of the host that a guest passed, where its interface has no error to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum Exceeded {
    /// More random bytes at once than may be.
    #[error("the module asked for {asked} random bytes in one call, the limit is {max}")]
    RandomCall { asked: u64, max: u64 },
    /// More random bytes in all than may be.
    #[error("the module asked for more than {max} random bytes in all")]
    Random { max: u64 },
    /// A longer list to wait for than may be.
    #[error("the module waits for {asked} handles at once, the limit is {max}")]
    Poll { asked: usize, max: usize },
}

/// How the host ended a call of WASI.
pub(in super::super) enum Ended {
    /// The guest asked to exit.
    Exit(i32),
    /// The host's table of handles is full.
    TableFull,
    /// A limit was passed.
    Exceeded(Exceeded),
}

impl Ended {
    /// Returns what ended a call, where it was WASI.
    pub(in super::super) fn of(error: &wasmtime::Error) -> Option<Self> {
        if let Some(I32Exit(status)) = error.downcast_ref() {
            return Some(Self::Exit(*status));
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return Some(Self::TableFull);
        }
        error.downcast_ref().copied().map(Self::Exceeded)
    }
}

impl Wasi {
    pub(in super::super) fn new(
        grant: &Grant,
        journal: Option<&Journal>,
        hooks: egress::Hooks,
        random_bytes: u64,
    ) -> Self {
        let mut builder = WasiCtx::builder();
        builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        if let Some(journal) = journal {
            stdio::capture(&mut builder, journal);
        }
        hooks.tape.set_clocks(&mut builder);
        let seeded = hooks.tape.seed().map(|seed| random::Seeded::new(seed, &mut builder));
        for (name, value) in &grant.settings {
            builder.env(name, value);
        }
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELDS_BYTES_MAX);
        let variables = grant.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { ctx: builder.build(), variables, http, hooks, random_bytes_left: random_bytes, seeded }
    }

    /// Ends what the attempt sends, and returns what it sent.
    pub(in super::super) fn end(&self) -> egress::Counts {
        self.hooks.outgoing.end()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (wasi, table) = self.wasi();
        WasiCtxView { ctx: &mut wasi.ctx, table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (wasi, table) = self.wasi();
        WasiHttpCtxView { hooks: &mut wasi.hooks, table, ctx: &mut wasi.http }
    }
}

/// Gives `linker` all that a module may import of WASI. What is limited here takes the place of what came with it.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    wasmtime_wasi_config::add_to_linker(linker, |state| WasiConfig::new(&state.wasi().0.variables))?;
    linker.allow_shadowing(true);
    p2::io::poll::add_to_linker::<State, poll::HasWaits>(linker, |state| poll::Waits(state))?;
    p2::random::random::add_to_linker::<State, random::HasRandom>(linker, |state| random::Random(state))?;
    p2::random::insecure::add_to_linker::<State, random::HasRandom>(linker, |state| random::Random(state))?;
    outgoing::add_to_linker(linker)?;
    http_error::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}
