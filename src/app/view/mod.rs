//! What operations are asked and what they answer: the fields of the wire, payloads as the bytes that are stored.
//!
//! One file per resource.

mod aliases;
mod bundle;
mod executions;
mod history;
mod lists;
mod modules;
mod tasks;
mod tenants;
mod units;
mod workers;
mod workflows;

pub use aliases::{
    AliasRequest, AliasView, BrokenContract, ModuleDiff, NamedBefore, RepinRequest, RollbackRequest, ShareView,
    TaskChange,
};
pub use bundle::{BUNDLE_FORMAT, Bundle, BundledAttempt, BundledEnd, BundledModule};
pub use executions::{
    AbortView, ExecutionFilter, ExecutionStarted, ExecutionSummary, ExecutionView, SignalAccepted, StartRequest,
};
pub use history::{EventView, HistoryPage, HistoryRequest, LogView};
pub use lists::{Page, PageRequest};
pub use modules::ModuleView;
pub use tasks::{CompleteRequest, FailRequest, PollRequest, ReportAnswer, TaskView};
pub use tenants::{CreateTenantRequest, EffectiveView, ModuleSettingsView, PolicyView, TenantView};
pub use units::{FailureView, UnitView, Units};
pub use workers::{
    ActiveDelivery, ContractRequest, HeartbeatAnswer, HeartbeatRequest, RegisterRequest, Registered, WorkerView,
};
pub use workflows::{WorkflowRegistered, WorkflowView};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Timestamp;

/// The state of the server, for anyone.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// `sandkeep-api/1`.
    pub api_version: String,
    /// The version of this program.
    pub runtime_version: String,
    /// The document versions it takes.
    pub ir_versions: Vec<String>,
    /// Executions that are not terminal.
    pub active_executions: u64,
    /// Sessions of workers.
    pub worker_sessions: u64,
}

/// Milliseconds since 1970 of an instant that may be absent.
pub fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.0)
}
