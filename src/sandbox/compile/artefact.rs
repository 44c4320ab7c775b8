//! Loads machine code. The only place where bytes become code that this process runs.

use wasmtime::{Engine, component::Component};

/// Loads an artefact. Whoever calls this vouches for its bytes: they come from the compiler's process just now, or bear
/// the seal of this server.
#[expect(unsafe_code, reason = "an artefact is code: it was made by our own compiler and, where it was stored, sealed")]
pub(super) fn load(engine: &Engine, artefact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: see above; wasmtime itself checks that the artefact is of its version, settings and this processor.
    unsafe { Component::deserialize(engine, artefact) }
}
