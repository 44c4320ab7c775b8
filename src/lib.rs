//! Sandkeep: a durable workflow server that runs tasks it does not trust.
//!
//! The map of rooms; arrows point inward, and `tests/it/rooms.rs` reads the sources to see that they do:
//!
//! ```text
//! http, grpc, cli ──▶ app ──▶ engine ──▶ workflow ──▶ model
//!                      ├───▶ store   ──────────────▶ model
//!                      ├───▶ tenancy ──▶ store ────▶ model
//!                      └───▶ sandbox ──────────────▶ model
//! ```
//!
//! | room | what lives there |
//! |---|---|
//! | [`model`] | ids, events, state and its fold, errors and codes, time as a value |
//! | [`workflow`] | the document: parse, check, dependencies; templates and expressions |
//! | [`engine`] | the pure decider |
//! | [`store`] | the store traits and their backends |
//! | [`sandbox`] | the host of modules: limits, compile, cache |
//! | [`tenancy`] | tenants, what each may use |
//! | [`app`] | the operations: lanes, group commit, dispatch, timers, recovery, modules |
//! | [`http`], [`grpc`] | edges that only translate |
//! | [`cli`] | one file per command |
//! | [`server`] | opens a store, a sandbox and listeners, and ties them to the operations |
//! | [`config`], [`clock`], [`telemetry`] | parsed once and passed down |

#![deny(unsafe_code)]

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod engine;
pub mod grpc;
pub mod http;
pub mod model;
pub mod sandbox;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod tenancy;
pub mod workflow;

/// Inputs that nobody wrote, for targets of what is not public.
#[cfg(test)]
#[path = "../tests/fuzz/driver.rs"]
mod fuzz;
