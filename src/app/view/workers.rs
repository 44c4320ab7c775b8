//! Native workers and their sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Payload;

/// A worker registers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct RegisterRequest {
    /// Who it is.
    #[serde(default)]
    pub worker_id: String,
    /// Its language or runtime, for people.
    #[serde(default)]
    pub runtime: String,
    /// Its SDK, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// Its identity, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The queues it takes from; `default` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// Its node label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many units it holds at once; absent: as many as it polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// The tenants it serves; its own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<String>>,
    /// What it does.
    #[serde(default)]
    pub contracts: Vec<ContractRequest>,
}

/// A task that a worker does.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct ContractRequest {
    /// The task.
    #[serde(default)]
    pub task_name: String,
    /// The version of its contract.
    #[serde(default)]
    pub version: String,
    /// JSON Schema of its input, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Payload>,
    /// JSON Schema of its output, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Payload>,
}

/// The answer to a registration.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Registered {
    /// The session.
    pub worker_session_id: String,
    /// How often to send a heartbeat.
    pub heartbeat_interval_ms: u64,
    /// After how much silence the session is over.
    pub session_timeout_ms: u64,
    /// How many units it may hold; 0: as many as it polls.
    pub accepted_capacity: u32,
}

/// A sign of life.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct HeartbeatRequest {
    /// The session.
    #[serde(default)]
    pub worker_session_id: String,
    /// The deliveries it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Vec<ActiveDelivery>>,
}

/// A delivery that a worker works on.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct ActiveDelivery {
    /// Its token.
    #[serde(default)]
    pub token: String,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub progress: Option<Payload>,
}

/// The answer to a sign of life.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Always true.
    pub accepted: bool,
    /// Tokens whose work is not wanted any more.
    pub cancel: Vec<String>,
    /// Whether to take nothing new.
    pub drain: bool,
}

/// A session, as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// The worker.
    pub worker_id: String,
    /// The session.
    pub worker_session_id: String,
    /// Its language or runtime.
    pub runtime: String,
    /// Its SDK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// Its identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The queues it takes from.
    pub queues: Vec<String>,
    /// Its node label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many units it may hold; 0: as many as it polls.
    pub capacity: u32,
    /// What it does: `TASK@VERSION`.
    pub tasks: Vec<String>,
    /// The units it holds: `EXECUTION/UNIT`.
    pub holds: Vec<String>,
    /// How many of its polls wait.
    pub waiting_polls: u32,
    /// When it registered.
    pub registered_at_ms: i64,
    /// When it was last heard.
    pub last_seen_at_ms: i64,
}
