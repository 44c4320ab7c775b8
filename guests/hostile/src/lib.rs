//! A module that misbehaves, for tests of the sandbox: each task breaks one rule.
//!
//! Written against the raw contract, because the SDK would only ever return JSON.

#[cfg(target_arch = "wasm32")]
mod module;
