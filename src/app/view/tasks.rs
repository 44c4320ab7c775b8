//! Tasks on their way to a worker, and their results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Payload;

/// A worker asks for work.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct PollRequest {
    /// The session.
    #[serde(default)]
    pub worker_session_id: String,
    /// How long to wait; 20,000 where absent, at most 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How many tasks at once; absent: one, and the answer is the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u32>,
}

/// A task as a worker gets it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Names the delivery; goes with its result.
    pub token: String,
    /// The execution.
    pub execution_id: String,
    /// Its run.
    pub run: u32,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub workflow_version: String,
    /// The unit.
    pub step_id: String,
    /// The task.
    pub task_name: String,
    /// The version of its contract as asked for; `*` where the document asks for none.
    pub contract_version: String,
    /// The input.
    #[schema(value_type = Object)]
    pub input: Payload,
    /// The same for every attempt and delivery of the unit.
    pub idempotency_key: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether an earlier delivery of this attempt cannot be ruled out.
    pub redelivery: bool,
    /// When the attempt's time ends, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// How much time the attempt has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The last progress that an earlier delivery or attempt told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub last_progress: Option<Payload>,
    /// The owner.
    pub tenant: String,
}

/// A success.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct CompleteRequest {
    /// The delivery.
    #[serde(default)]
    pub token: String,
    /// The output; `null` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Payload>,
}

/// A failure.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct FailRequest {
    /// The delivery.
    #[serde(default)]
    pub token: String,
    /// What happened, for programs.
    #[serde(default)]
    pub error_code: String,
    /// What happened, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether another try is sensible; true where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Replaces the computed delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Anything more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Payload>,
}

/// The answer to a result.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportAnswer {
    /// Whether it counts.
    pub accepted: bool,
    /// Whether it came too late to count.
    pub stale: bool,
}
