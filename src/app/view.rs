//! What operations are asked and what they answer: the fields of the wire, payloads as the bytes that are stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::{Payload, Timestamp, facts::TaskSpec, row::LogLine};

/// A registered document, as lists show it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WorkflowView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `sha256:…` over its canonical form.
    pub definition_hash: String,
    /// Its steps, in document order.
    pub steps: Vec<String>,
    /// The tasks that they name.
    pub tasks: Vec<String>,
}

/// The answer to a registration.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowRegistered {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:…` over its canonical form.
    pub definition_hash: String,
    /// Whether it is new.
    pub created: bool,
}

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

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins; none: this is the last.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Returns the same page with its rows made into something else.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(make).collect(), next_cursor: self.next_cursor }
    }
}

/// How much of a list is wanted.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// How many rows; clamped to 1 … 500, 50 where absent.
    pub limit: Option<u64>,
    /// Where the page begins.
    pub cursor: Option<String>,
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

/// Units by key, in document order.
#[derive(Clone, Debug, Default, ToSchema)]
#[schema(value_type = Object)]
pub struct Units(pub Vec<(String, UnitView)>);

impl Serialize for Units {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, unit)| (key, unit)))
    }
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

/// One event: `seq`, `run`, `at_ms`, `type` and its fields, already as JSON.
#[derive(Clone, Debug)]
pub struct EventView {
    /// Its number in the run.
    pub seq: u64,
    /// The event as a JSON object.
    pub json: String,
}

/// A page of a history.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    /// The run that it is of.
    pub run: u32,
    /// Its events.
    pub events: Vec<EventView>,
    /// The seq after which the next page begins; none: nothing follows now.
    pub next_seq: Option<u64>,
    /// Whether the run is terminal and the page reaches its end.
    pub closed: bool,
}

/// Which part of a history is wanted.
#[derive(Clone, Debug, Default)]
pub struct HistoryRequest {
    /// The run; the last where absent.
    pub run: Option<u32>,
    /// Only events after this seq (before it, when `reverse`).
    pub after_seq: u64,
    /// At most this many; without it up to 5,000 events or 4 MiB.
    pub limit: Option<u64>,
    /// Newest first.
    pub reverse: bool,
}

/// A captured log line with its number.
#[derive(Clone, Debug, Serialize)]
pub struct LogView {
    /// Its number, by which following goes on.
    pub id: u64,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
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

/// An uploaded component.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleView {
    /// Its name.
    pub name: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// Its size.
    pub size_bytes: u64,
    /// `ready`.
    pub state: String,
    /// The tasks it describes.
    #[schema(value_type = Vec<Object>)]
    pub tasks: Vec<TaskSpec>,
    /// What it imports.
    pub imports: Vec<String>,
    /// The aliases that name this digest.
    pub aliases: Vec<String>,
    /// When it was uploaded.
    pub created_at_ms: i64,
}

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
