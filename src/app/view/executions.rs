//! Executions: started, listed, filtered, shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FailureView, Units};
use crate::model::Payload;

/// The request of a start.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct StartRequest {
    /// The workflow.
    pub workflow: String,
    /// Its version; the default one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The start input; `{}` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::model::json::present")]
    #[schema(value_type = Option<Object>)]
    pub input: Option<Payload>,
    /// The id of the execution; one is made where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// Labels to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Begins this much later: a duration such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay: Option<String>,
}

/// The answer to a start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecutionStarted {
    /// Its id.
    pub execution_id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// Its status.
    pub status: String,
    /// Whether it is new.
    pub created: bool,
}

/// An execution, as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecutionSummary {
    /// Its id.
    pub execution_id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// Its status.
    pub status: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}

/// Which executions a list shows.
#[derive(Clone, Debug, Default)]
pub struct ExecutionFilter {
    /// Statuses in any case; empty: all.
    pub statuses: Vec<String>,
    /// Only this workflow.
    pub workflow: Option<String>,
    /// Only this version.
    pub version: Option<String>,
    /// Only those with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only those created after, in milliseconds since 1970.
    pub created_after: Option<i64>,
    /// Only those created before.
    pub created_before: Option<i64>,
}

/// The state of an execution.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExecutionView {
    /// Its id.
    pub id: String,
    /// Its id, under the name that other answers use.
    pub execution_id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// `sha256:…` of the content it runs on.
    pub definition_hash: String,
    /// Its generation, from 1.
    pub run: u32,
    /// Its status.
    pub status: String,
    /// The start input.
    #[schema(value_type = Object)]
    pub input: Payload,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Payload>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView>,
    /// When it was created, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    /// The first units, in document order, by key; payloads over 4 KiB are left out.
    pub units: Units,
    /// How many units there are.
    pub units_total: u64,
    /// Whether units or payloads were left out.
    pub truncated: bool,
    /// Why it winds down or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<AbortView>,
    /// The units whose compensations run, in order.
    pub compensation_order: Vec<String>,
    /// How compensation ended: `NONE`, `COMPLETED` or `FAILED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensation: Option<String>,
    /// The seq of its last event.
    pub last_seq: u64,
    /// What it waits for, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The digest that each `MODULE@ALIAS` means for this run.
    pub pins: BTreeMap<String, String>,
    /// What its starter attached.
    pub labels: BTreeMap<String, String>,
}

/// Why an execution winds down or ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AbortView {
    /// `failure`, `cancel` or `timeout`.
    pub cause: String,
    /// The code of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When.
    pub at_ms: i64,
}

/// The answer to a signal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SignalAccepted {
    /// The execution.
    pub execution_id: String,
    /// The signal.
    pub signal: String,
    /// Always true: what is refused is an error.
    pub accepted: bool,
    /// The seq of its event.
    pub seq: u64,
}
