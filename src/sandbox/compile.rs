//! Turns the bytes of a component into machine code. The only place that calls the compiler.
//!
//! A compile cannot be interrupted. It runs on a thread for blocking work and never on one that serves the API; how
//! many run at once is bounded by who calls.

use wasmtime::{Engine, component::Component};

use super::Rejected;

/// Compiles a component that was examined before.
pub(super) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, Rejected> {
    Component::from_binary(engine, bytes).map_err(|error| Rejected::Compile { problem: format!("{error:#}") })
}
