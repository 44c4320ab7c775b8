//! The document that users write: parsed, checked as a whole, and made ready for decisions.
//!
//! - [`parse`](parse::parse): JSON text to [`Definition`], or every [`Problem`] at once
//! - [`Definition`]: templates parsed, schemas compiled, dependencies numbered in a [`Plan`](crate::model::Plan)
//! - [`expression`]: templates and expressions with their budget
//! - [`schema`]: what inputs, outputs and signals must look like
//! - [`canonical`]: the hash by which two texts are the same definition
//! - [`graph`]: the steps and what they wait for, as text
//!
//! Absent on purpose: anything that runs. The decider is in `engine`.

pub mod canonical;
mod cycle;
pub mod definition;
pub mod expression;
mod graph;
pub mod parse;
pub mod pointer;
mod problem;
pub mod schema;

pub use definition::{
    Await, Contract, Definition, Kind, ModuleRef, OnTimeout, Retry, Span, Step, TargetChoice, Task, Timeouts,
};
pub use graph::graph;
pub use parse::{Limits, Parsed, Problem, parse};
