//! Tasks of Sandkeep as plain functions over serde types.
//!
//! A task is a function `fn(Input) -> Result<Output, TaskError>`. The macro [`tasks!`] lists a module's tasks and makes
//! what the host calls: `describe`, with JSON Schemas taken from the types, and `run`.
//!
//! ```
//! use sandkeep_sdk::{TaskError, tasks};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greeting {
//!     name: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Greeted {
//!     text: String,
//! }
//!
//! fn hello(input: Greeting) -> Result<Greeted, TaskError> {
//!     if input.name.is_empty() {
//!         return Err(TaskError::permanent("NAME_MISSING", "there is nobody to greet"));
//!     }
//!     Ok(Greeted { text: format!("Hello, {}!", input.name) })
//! }
//!
//! tasks! {
//!     /// Greets somebody by name.
//!     "greet.hello" "1.0.0" => hello,
//! }
//! # fn main() {}
//! ```
//!
//! - [`TaskError`]: why an attempt failed, and whether another may succeed.
//! - [`attempt`], [`log`], [`secrets`]: what the host offers to a running task.
//! - `http`, with the feature `http`: requests to where the tenant's policy lets the module go.
//! - [`Task`], [`run`]: the table that [`tasks!`] makes, to call a task by name outside a module.
//!
//! The bindings to the host are compiled for `wasm32` only. Elsewhere the same functions run natively, in a test or in
//! a worker: log lines go to standard error, and [`attempt::within`] says which attempt is being served.
//!
//! Deliberately absent: async (a module waits for nothing but the host's answers) and state (every attempt gets a
//! fresh instance).

pub mod attempt;
#[cfg(target_arch = "wasm32")]
pub mod bindings;
mod error;
#[cfg(target_arch = "wasm32")]
pub mod guest;
#[cfg(any(all(target_arch = "wasm32", feature = "heap"), test))]
mod heap;
mod host;
#[cfg(feature = "http")]
pub mod http;
pub mod log;
mod macros;
pub mod secrets;
mod task;

pub use error::TaskError;
pub use task::{Task, run};

/// The allocator of the module. Without the feature `heap` a module chooses its own.
#[cfg(all(target_arch = "wasm32", feature = "heap"))]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

#[doc(hidden)]
pub use task::{call, input_schema, output_schema};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
