//! The words of Sandkeep as types: ids, time, payloads, failures, the plan of a workflow, events, and the state that
//! events fold into.
//!
//! One meaning for each word, here and in tables, wire and pages:
//!
//! - **tenant**: owner of everything below; every key and query carries it
//! - **workflow**: a registered document: name + version + definition hash
//! - **execution**: one start of a workflow; **run**: its generations, from 1
//! - **step / unit**: a step of the document / one instance of it
//! - **attempt / delivery**: one try at a unit, from 1 / one handing-over of an attempt, named by a token
//! - **event**: a fact in a history; state is a fold of it
//! - **task**: the name of a kind of work with its contract
//! - **queue**: a named line of ready units
//! - **worker / session**: a native process's identity / one registration of it
//! - **module / alias**: an uploaded component, named by its digest / a movable name for a digest
//!
//! Nothing here reads a clock, draws a random number, or knows a store, a runtime or a network.

pub mod code;
pub mod delivery;
pub mod egress;
pub mod event;
pub mod execution;
pub mod facts;
pub mod fold;
pub mod id;
pub mod json;
mod nearest;
pub mod plan;
pub mod policy;
pub mod row;
pub mod time;

pub use code::{Failure, Origin};
pub use delivery::{Delivery, Served};
pub use egress::{EgressEntry, EgressPolicy};
pub use event::{Event, StoredEvent};
pub use execution::{Execution, Status, Unit, UnitStatus};
pub use facts::Facts;
pub use id::*;
pub use json::Payload;
pub use nearest::nearest;
pub use plan::{Plan, StepIndex};
pub use policy::{ModuleSettings, Policy};
pub use time::{Millis, Timestamp};
