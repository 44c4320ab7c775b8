//! Turns the bytes of a component into machine code, and keeps it.
//!
//! A compile cannot be interrupted and can take minutes for a small component that was made for it. So it runs in a
//! process of its own (`child.rs` starts it, `process.rs` is what it does) under limits of memory, processor time and wall
//! time. What it gives, an artefact, is machine code that this process will run: it is sealed with the server's key before
//! it is written down (`seal.rs`, `shelf.rs`), and nothing is loaded (`artefact.rs`) that this server did not seal or just
//! compile.

mod artefact;
mod child;
mod permits;
mod process;
mod seal;
mod shelf;

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use wasmtime::{Engine, component::Component};

use crate::model::{Digest, Millis, TenantId};

use super::{
    Config, Rejected,
    engine::{self, Layout, Plan, Tier},
};
use permits::Permits;
use seal::Sealer;
use shelf::Shelf;

pub use process::{COMPILE_ARGUMENT, main as compile_process};

/// Where and under which limits components are compiled.
#[derive(Clone, Debug)]
pub struct CompileConfig {
    /// The program that is started as `PROGRAM __compile`; none: compiled in this process, without limits. For tools that
    /// compile what their own user gives them.
    pub program: Option<PathBuf>,
    /// The address space of the process, in bytes.
    pub memory_bytes: u64,
    /// Its processor time, in whole seconds rounded up.
    pub cpu: Millis,
    /// Its time on the wall.
    pub wall: Millis,
    /// How many compiles there are at once.
    pub at_once: usize,
    /// Where artefacts are kept; none: nowhere.
    pub shelf: Option<ShelfConfig>,
}

/// Where artefacts are kept between starts.
#[derive(Clone)]
pub struct ShelfConfig {
    /// The folder; made with mode 0700.
    pub folder: PathBuf,
    /// The most bytes that are kept; the least recently used go first.
    pub bytes_max: u64,
    /// The key that seals artefacts.
    pub key: [u8; 32],
}

impl std::fmt::Debug for ShelfConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShelfConfig").field("folder", &self.folder).field("bytes_max", &self.bytes_max).finish()
    }
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self {
            program: None,
            memory_bytes: 2 << 30,
            cpu: Millis(60_000),
            wall: Millis(120_000),
            at_once: std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2),
            shelf: None,
        }
    }
}

/// The compiler of a sandbox.
pub(super) struct Compiler {
    engine: Engine,
    full: Plan,
    fallback: Plan,
    config: CompileConfig,
    permits: Permits,
    /// The server's own component.
    own: OnceLock<Digest>,
    shelf: Option<Arc<Shelf>>,
    compiled: AtomicU64,
    found: AtomicU64,
}

impl Compiler {
    pub(super) fn new(engine: &Engine, layout: Layout, config: &Config) -> Self {
        let compile = config.compile.clone();
        let shelf = compile.shelf.as_ref().and_then(|shelf| {
            let sealer = Sealer::new(&shelf.key, engine);
            Shelf::open(&shelf.folder, shelf.bytes_max, sealer)
                .inspect_err(|error| {
                    let folder = shelf.folder.display();
                    tracing::warn!(%error, %folder, "compiled modules are not kept: each start compiles them again");
                })
                .ok()
        });
        Self {
            engine: engine.clone(),
            full: engine::plan(config, layout, Tier::Full),
            fallback: engine::plan(config, layout, Tier::Fallback),
            permits: Permits::new(compile.at_once),
            own: OnceLock::new(),
            config: compile,
            shelf: shelf.map(Arc::new),
            compiled: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// Returns a component that was compiled before and is still kept.
    pub(super) async fn find(&self, digest: &Digest) -> Option<Component> {
        let (shelf, engine, digest) = (Arc::clone(self.shelf.as_ref()?), self.engine.clone(), digest.clone());
        let found = tokio::task::spawn_blocking(move || {
            let artefact = shelf.take(&digest)?;
            match artefact::load(&engine, &artefact) {
                Ok(component) => Some(component),
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), %digest, "a kept artefact does not load");
                    shelf.remove(&digest);
                    None
                }
            }
        });
        let found = found.await.ok().flatten();
        self.found.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Notes which component is the server's own, the first time. Limits are for strangers: tightened ones must not keep
    /// the server from what it brings along.
    pub(super) fn trust(&self, digest: Digest) {
        self.own.get_or_init(|| digest);
    }

    /// Returns how many components were compiled, and how many were found compiled, since the start.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.compiled.load(Ordering::Relaxed), self.found.load(Ordering::Relaxed))
    }

    /// Compiles a component that was examined before, for one of `tenant`'s permits, and keeps the artefact.
    pub(super) async fn compile(
        &self,
        tenant: &TenantId,
        digest: &Digest,
        bytes: Bytes,
    ) -> Result<Component, Rejected> {
        let _permit = self.permits.acquire(tenant).await.ok_or(Rejected::Closed)?;
        let artefact = self.artefact(digest, bytes).await?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let (shelf, engine, digest) = (self.shelf.clone(), self.engine.clone(), digest.clone());
        let loaded = tokio::task::spawn_blocking(move || {
            let component = artefact::load(&engine, &artefact);
            if let (Some(shelf), Ok(_)) = (shelf, &component) {
                shelf.put(&digest, &artefact);
            }
            component
        });
        loaded.await.map_err(|_| Rejected::Internal)?.map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "a fresh artefact does not load");
            Rejected::Internal
        })
    }

    async fn artefact(&self, digest: &Digest, bytes: Bytes) -> Result<Vec<u8>, Rejected> {
        let Some(program) = &self.config.program else {
            let engine = self.engine.clone();
            let compiled = tokio::task::spawn_blocking(move || process::compile(&engine, &bytes));
            return compiled.await.map_err(|_| Rejected::Internal)?.map_err(|problem| Rejected::Compile { problem });
        };
        let config = self.config_for(digest);
        match child::compile(program, &config, self.full, &bytes).await {
            Err(child::Failed::Budget(what)) => {
                tracing::info!(%digest, what, "a component took too much to compile and is tried without optimisation");
            }
            other => return other.map_err(Rejected::from),
        }
        child::compile(program, &config, self.fallback, &bytes).await.map_err(Rejected::from)
    }

    /// Returns the limits under which a component is compiled: of the server's own, no tighter than the usual ones.
    fn config_for(&self, digest: &Digest) -> CompileConfig {
        let mut config = self.config.clone();
        if self.own.get() == Some(digest) {
            let usual = CompileConfig::default();
            config.memory_bytes = config.memory_bytes.max(usual.memory_bytes);
            config.cpu = config.cpu.max(usual.cpu);
            config.wall = config.wall.max(usual.wall);
        }
        config
    }

    /// Refuses what is to be compiled and what waits for it.
    pub(super) fn close(&self) {
        self.permits.close();
    }
}

impl From<child::Failed> for Rejected {
    fn from(failed: child::Failed) -> Self {
        match failed {
            child::Failed::Refused(problem) => Self::Compile { problem },
            child::Failed::Budget(what) => Self::CompileBudget { what },
            child::Failed::Broken(error) => {
                tracing::error!(error, "the compiler's process failed");
                Self::Internal
            }
        }
    }
}
