//! The host's side of the contract, one file per WIT interface; `wasi/` has those of WASI 0.2.
//!
//! The traits are implemented by [`Host`], a view of a store's state that lives as long as one call. Whatever comes
//! from a guest is hostile: capped where it enters and made harmless before it is kept. What is sent is already in the
//! host's memory then, at most `hostcall_bytes` of it.

mod attempt;
mod log;
mod secrets;
mod types;
mod wasi;

use wasmtime::component::{HasData, Linker};

use super::{bindings, state::State};

pub use secrets::Secret;
pub(super) use wasi::{Ended, Exceeded, Wasi};

/// A view of a store's state during one call of the host.
pub(super) struct Host<'a> {
    state: &'a mut State,
}

/// Says how a view is made of a state.
struct HasHost;

impl HasData for HasHost {
    type Data<'a> = Host<'a>;
}

/// Gives `linker` everything that a module may import.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    bindings::Task::add_to_linker::<State, HasHost>(linker, |state| Host { state })?;
    wasi::add_to_linker(linker)
}
