//! Rows: what a change leaves beside its events, so that work, timers and lists are found without loading a state.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    event::{ModulePin, UnitTimeouts},
    execution::{Status, Target},
    facts::{Share, TaskSpec},
    id::{
        Alias, ContractVersion, DefinitionHash, DeliveryId, Digest, ExecutionId, Invalid, ModuleName, NodeLabel,
        QueueName, RunKey, SessionId, TaskName, TenantId, UnitKey, UnitRef, WorkerId, WorkflowName, WorkflowVersion,
    },
    json::Payload,
    policy::{ModuleSettings, Policy},
    time::Timestamp,
};

/// Names one timer of a run. Its text is what rows and events hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerKey {
    /// A start that was asked to wait: `start`.
    Start,
    /// A step's `sleep`: `sleep:UNIT`.
    Sleep(UnitKey),
    /// The `timeout` of an await: `await:UNIT`.
    Await(UnitKey),
    /// The next attempt of a unit: `retry:ATTEMPT:UNIT`. A timer of an earlier attempt fires into nothing.
    Retry(u32, UnitKey),
    /// `timeouts.total` of a unit: `total:UNIT`.
    Total(UnitKey),
    /// The document's `timeout`: `workflow`.
    Workflow,
    /// How long a unit that was told to stop is waited for: `grace:UNIT`.
    Grace(UnitKey),
    /// How long winding down may take: `wind_down`.
    WindDown,
}

impl TimerKey {
    /// Returns the unit that the timer is of.
    pub fn unit(&self) -> Option<&UnitKey> {
        match self {
            Self::Sleep(unit) | Self::Await(unit) | Self::Retry(_, unit) | Self::Total(unit) | Self::Grace(unit) => {
                Some(unit)
            }
            Self::Start | Self::Workflow | Self::WindDown => None,
        }
    }
}

impl fmt::Display for TimerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Sleep(unit) => write!(f, "sleep:{unit}"),
            Self::Await(unit) => write!(f, "await:{unit}"),
            Self::Retry(attempt, unit) => write!(f, "retry:{attempt}:{unit}"),
            Self::Total(unit) => write!(f, "total:{unit}"),
            Self::Workflow => f.write_str("workflow"),
            Self::Grace(unit) => write!(f, "grace:{unit}"),
            Self::WindDown => f.write_str("wind_down"),
        }
    }
}

impl FromStr for TimerKey {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid =
            || Invalid { kind: "timer", value: text.to_owned(), rule: "it must be one of the engine's timers" };
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        Ok(match (kind, rest) {
            ("start", "") => Self::Start,
            ("workflow", "") => Self::Workflow,
            ("wind_down", "") => Self::WindDown,
            ("sleep", unit) => Self::Sleep(UnitKey::new(unit)?),
            ("await", unit) => Self::Await(UnitKey::new(unit)?),
            ("total", unit) => Self::Total(UnitKey::new(unit)?),
            ("grace", unit) => Self::Grace(UnitKey::new(unit)?),
            ("retry", rest) => {
                let (attempt, unit) = rest.split_once(':').ok_or_else(invalid)?;
                Self::Retry(attempt.parse().map_err(|_| invalid())?, UnitKey::new(unit)?)
            }
            _ => return Err(invalid()),
        })
    }
}

impl Serialize for TimerKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimerKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A timer that is armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerRow {
    /// Whose it is.
    pub run: RunKey,
    /// Which of the run's timers.
    pub timer: TimerKey,
    /// When it is due.
    pub due_at: Timestamp,
}

/// What an execution that is not terminal waits for, in one word; the sweep compares it with the rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// The rest of a turn: the engine itself has more to do.
    Turn,
    /// At least one unit that is ready or out; it has a ready row.
    Work,
    /// A timer; it has a timer row.
    Timer,
    /// A signal, with no timer beside it.
    Signal,
    /// Nothing: it is terminal.
    Nothing,
}

impl Waiting {
    /// Every kind with its text in rows.
    pub const ALL: [(Waiting, &'static str); 5] = [
        (Self::Turn, "turn"),
        (Self::Work, "work"),
        (Self::Timer, "timer"),
        (Self::Signal, "signal"),
        (Self::Nothing, "nothing"),
    ];

    /// Returns the text that rows hold.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map(|(_, text)| *text).expect("ALL lists every kind")
    }

    /// Reads the text that rows hold.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
    }
}

/// The row of an execution: narrow, never its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Its id, and the run that the row is of.
    pub run: RunKey,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its version.
    pub version: WorkflowVersion,
    /// The content it runs on.
    pub definition_hash: DefinitionHash,
    /// Its status.
    pub status: Status,
    /// The seq of its last event.
    pub last_seq: u64,
    /// What it waits for.
    pub waiting: Waiting,
    /// When its earliest timer is due.
    pub next_wake: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last event was decided.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A unit that is ready or out: one attempt of a task, from its `StepScheduled` until the attempt is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadyRow {
    /// The unit.
    pub unit: UnitRef,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The workflow that it is part of.
    pub workflow: WorkflowName,
    /// Its version.
    pub workflow_version: WorkflowVersion,
    /// The task.
    pub task: TaskName,
    /// The version of its contract as asked for; none: any.
    pub contract: Option<ContractVersion>,
    /// The line it stands in.
    pub queue: QueueName,
    /// Who may do it.
    pub target: Target,
    /// The module, where the sandbox does it.
    pub module: Option<Digest>,
    /// The settings of that module, where any were set.
    pub settings: Option<SettingsRef>,
    /// Only a worker that announced this label may take it.
    pub node: Option<NodeLabel>,
    /// 0 (low) to 9.
    pub priority: u8,
    /// Its time-outs.
    pub timeouts: UnitTimeouts,
    /// When it became ready.
    pub ready_at: Timestamp,
    /// How many deliveries of this attempt were lost.
    pub losses: u32,
    /// Whether an earlier delivery cannot be ruled out.
    pub redelivery: bool,
    /// The seq of the event that holds its input.
    pub input_seq: u64,
}

/// Names a revision of a module's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsRef {
    /// The module.
    pub module: ModuleName,
    /// The revision, from 1.
    pub revision: u64,
}

impl SettingsRef {
    /// Returns the settings that go with a pin, where any were set.
    pub fn of(pin: &ModulePin) -> Option<Self> {
        let module = pin.name.as_ref().filter(|_| pin.settings > 0)?;
        Some(Self { module: module.clone(), revision: pin.settings })
    }
}

/// A delivery to a worker, noted in the unit's ready row, so that a worker that comes back after a restart keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The worker.
    pub worker: WorkerId,
    /// Its session.
    pub session: SessionId,
    /// When it was handed over.
    pub handed_at: Timestamp,
}

/// One captured log line of a sandboxed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was written.
    pub at_ms: Timestamp,
    /// The unit that wrote it.
    pub unit: UnitKey,
    /// Its attempt.
    pub attempt: u32,
    /// `debug`, `info`, `warn` or `error`.
    pub level: LogLevel,
    /// What it says.
    pub message: String,
    /// Its fields, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Payload>,
}

/// How loud a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For the author of the task.
    Debug,
    /// Of interest.
    Info,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
}

/// An answer kept for an `Idempotency-Key`, by which a repeated request is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Whose it is.
    pub tenant: TenantId,
    /// Route, target and key, joined by blanks.
    pub scope: String,
    /// The digest of the request.
    pub request_hash: String,
    /// The answer: the seq of the event that it made.
    pub seq: u64,
    /// When it is forgotten.
    pub expires_at: Timestamp,
}

/// A registered document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRow {
    /// Its name.
    pub name: WorkflowName,
    /// Its version.
    pub version: WorkflowVersion,
    /// The digest of its canonical form.
    pub definition_hash: DefinitionHash,
    /// The document as JSON text, the first that was registered.
    pub document: String,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// An uploaded component without its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleRow {
    /// Its name.
    pub name: ModuleName,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The tasks it describes.
    pub tasks: Vec<TaskSpec>,
    /// What it imports.
    pub imports: Vec<String>,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// An upload that is not a module yet: it is compiling, or was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRow {
    /// The name it is to have.
    pub name: ModuleName,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Why it was refused; none: it is compiling.
    pub reason: Option<String>,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// An alias of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasRow {
    /// The module.
    pub module: ModuleName,
    /// The alias.
    pub alias: Alias,
    /// What it names; of a split alias the first share.
    pub digest: Digest,
    /// How it divides executions among digests; empty: all get `digest`.
    pub split: Vec<Share>,
    /// When it was moved there.
    pub moved_at: Timestamp,
}

impl AliasRow {
    /// Returns the digests that it names.
    pub fn digests(&self) -> Vec<&Digest> {
        if self.split.is_empty() { vec![&self.digest] } else { self.split.iter().map(|share| &share.digest).collect() }
    }

    /// Returns whether both name the same.
    pub fn names_as(&self, other: &Self) -> bool {
        self.digest == other.digest && self.split == other.split
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRow {
    /// Its name.
    pub tenant: TenantId,
    /// Its name for people.
    pub display_name: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The policy of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// The tenant.
    pub tenant: TenantId,
    /// How often it was set.
    pub revision: u64,
    /// The policy.
    pub policy: Policy,
    /// When it was set.
    pub set_at: Timestamp,
}

/// A revision of the settings of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsRow {
    /// The owner.
    pub tenant: TenantId,
    /// The module.
    pub module: ModuleName,
    /// From 1; the newest counts.
    pub revision: u64,
    /// What is said.
    pub settings: ModuleSettings,
    /// When it was set.
    pub set_at: Timestamp,
}

/// An attempt that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// The unit.
    pub unit: UnitRef,
    /// The attempt.
    pub attempt: u32,
    /// When it ended.
    pub recorded_at: Timestamp,
    /// JSON: what brings the attempt about again, but for the module.
    pub bundle: Vec<u8>,
}

/// Names an execution whatever its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionKey {
    /// The owner.
    pub tenant: TenantId,
    /// The execution.
    pub execution: ExecutionId,
}

impl RunKey {
    /// Returns the name of the execution that the run is of.
    pub fn execution_key(&self) -> ExecutionKey {
        ExecutionKey { tenant: self.tenant.clone(), execution: self.execution.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_texts_read_back() {
        let unit = UnitKey::new("lines[3].charge").unwrap();
        for timer in [
            TimerKey::Start,
            TimerKey::Sleep(unit.clone()),
            TimerKey::Await(unit.clone()),
            TimerKey::Retry(7, unit.clone()),
            TimerKey::Total(unit.clone()),
            TimerKey::Workflow,
            TimerKey::Grace(unit),
            TimerKey::WindDown,
        ] {
            assert_eq!(timer.to_string().parse::<TimerKey>().unwrap(), timer);
        }
        for text in ["", "sleep:", "retry:x:a", "retry:a", "start:a", "other"] {
            assert!(text.parse::<TimerKey>().is_err(), "{text:?}");
        }
    }
}
