//! The sandbox: hosts components that nobody trusts, inside the server, and lets none of them hang, bloat or crash it.
//!
//! - [`Sandbox`]: the handle; [`Config`] and [`Limits`] say how large everything may get
//! - [`Module`]: a component that was examined, compiled and linked; [`Inspected`] is one with the tasks it describes
//! - [`Attempt`] in, [`Finished`] out: one call in a fresh instance, dropped afterwards whatever happened
//! - [`Cancel`] and [`Progress`]: what the caller keeps of an attempt under way
//! - [`Rejected`]: why a component is not accepted, and what to do about it
//!
//! How a call travels: [`Sandbox::run`] makes a future of the attempt (`call.rs`) and queues it with the guest threads
//! (`turns.rs`), which are fair over tenants. The ticker (`ticker.rs`) moves the engine's epoch every 2 ms, so that the
//! guest looks up (`state.rs`) and is stopped when it is cancelled, late or out of processor time (`control.rs`), or
//! gives its turn back when others wait. What it asks of the host goes to `host/`, one file per WIT interface.
//!
//! Absent on purpose: reuse of instances, files and sockets for guests, and capacity as an outcome. Who has no slot waits; nothing is spent.

mod attempt;
mod bindings;
mod cache;
mod call;
mod compile;
mod config;
mod control;
mod egress;
mod engine;
mod grant;
mod host;
mod inert;
mod journal;
mod limiter;
mod logs;
mod machine;
mod module;
mod outcome;
mod rejected;
mod service;
mod state;
mod tape;
mod ticker;
mod turns;
mod upload;

#[cfg(test)]
pub(crate) mod tests;

pub use attempt::{Attempt, Finished, Info, Progress};
pub use compile::{COMPILE_ARGUMENT, CompileConfig, ShelfConfig, compile_process};
pub use config::{Clock, Config, Limits, ModuleLimits};
pub use control::Cancel;
pub use egress::{Config as EgressConfig, Resolve};
pub use grant::Grant;
pub use module::{Inspected, Module};
pub use rejected::Rejected;
pub use service::{Closed, Error, Sandbox};
pub use tape::{Answered, Answers, Broken, End, Exchange, Part, RECORDING_BYTES_MAX, Recording, Response, Seed};
