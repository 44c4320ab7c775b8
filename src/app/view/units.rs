//! Units of executions, and how they fail.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Payload;

/// Units by key, in document order.
#[derive(Clone, Debug, Default, ToSchema)]
#[schema(value_type = Object)]
pub struct Units(pub Vec<(String, UnitView)>);

impl Serialize for Units {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, unit)| (key, unit)))
    }
}

/// One unit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UnitView {
    /// Its status.
    pub status: String,
    /// The attempt it is at.
    pub attempt: u32,
    /// Whether an earlier delivery of this attempt cannot be ruled out.
    pub redelivery: bool,
    /// `module` or `worker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The module that serves it, `NAME@sha256:…`; a built-in has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The worker that has or had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_session: Option<String>,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input: Option<Payload>,
    /// Its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Payload>,
    /// Why it failed for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView>,
    /// Why its last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<FailureView>,
    /// The last progress it told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub progress: Option<Payload>,
    /// The same for every attempt and delivery of the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When its attempt was scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at_ms: Option<i64>,
    /// When it was handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatched_at_ms: Option<i64>,
    /// When the attempt's time ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// When its timer is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_at_ms: Option<i64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    /// Whether the work of a stopped unit may have been done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
}

/// A failure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureView {
    /// What happened, for programs.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// `engine`, `sandbox` or `task`.
    pub origin: String,
    /// Anything more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Payload>,
}
