//! What one transaction writes.

use std::{collections::BTreeMap, time::Duration};

use super::Error;
use crate::model::{
    Alias, Digest, ModuleName, StoredEvent, TenantId, Timestamp, UnitKey, WorkflowName, WorkflowVersion,
    id::{RunKey, UnitRef},
    row::{
        AliasRow, KeyRow, LogLine, ModuleRow, Note, PolicyRow, Projection, ReadyRow, SettingsRow, TenantRow, TimerKey,
        TimerRow, WorkflowRow,
    },
};

/// Everything that one transaction writes.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Changes of executions, in the order in which they were decided; at most one of each execution.
    pub changes: Vec<Change>,
    /// Deliveries to note in ready rows, before the changes: a row that they put has no note. A row that is gone, or at
    /// another attempt, is left alone.
    pub notes: Vec<NotePut>,
    /// Documents to register.
    pub workflows: Vec<WorkflowPut>,
    /// Documents to remove.
    pub workflows_drop: Vec<(TenantId, WorkflowName, WorkflowVersion)>,
    /// Default versions to set.
    pub defaults: Vec<(TenantId, WorkflowName, WorkflowVersion)>,
    /// Modules to keep.
    pub modules: Vec<ModulePut>,
    /// Aliases to move, each made where it is not there.
    pub aliases: Vec<(TenantId, AliasRow)>,
    /// Aliases to remove.
    pub aliases_drop: Vec<(TenantId, ModuleName, Alias)>,
    /// Modules to remove; the bytes go with the last one that names them.
    pub modules_drop: Vec<(TenantId, ModuleName, Digest)>,
    /// Tenants to keep, each where it is not there.
    pub tenants: Vec<TenantRow>,
    /// Policies to set, each over the one before.
    pub policies: Vec<PolicyRow>,
    /// Revisions of modules' settings to keep.
    pub settings: Vec<SettingsRow>,
}

impl Batch {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.notes.is_empty()
            && self.workflows.is_empty()
            && self.workflows_drop.is_empty()
            && self.defaults.is_empty()
            && self.modules.is_empty()
            && self.aliases.is_empty()
            && self.aliases_drop.is_empty()
            && self.modules_drop.is_empty()
            && self.tenants.is_empty()
            && self.policies.is_empty()
            && self.settings.is_empty()
    }
}

/// What one or more decisions leave of one execution: events and all their rows.
#[derive(Clone, Debug)]
pub struct Change {
    /// The run.
    pub run: RunKey,
    /// The seq that the run must be at; 0: the run must not be there.
    pub expected_seq: u64,
    /// The events that follow, dense.
    pub events: Vec<StoredEvent>,
    /// The row after them. When its status is terminal, all ready rows and timers of the run go.
    pub projection: Projection,
    /// The labels of a new execution.
    pub labels: BTreeMap<String, String>,
    /// Ready rows to put, each over one of the same unit with its note.
    pub ready_put: Vec<ReadyRow>,
    /// Units whose ready row goes, before any is put.
    pub ready_drop: Vec<UnitKey>,
    /// Timers to arm, each over one of the same name.
    pub timers_put: Vec<TimerRow>,
    /// Timers to disarm, before any is armed.
    pub timers_drop: Vec<TimerKey>,
    /// Captured log lines of the attempts that ended.
    pub logs: Vec<LogLine>,
    /// Answers to keep for `Idempotency-Key`s.
    pub keys: Vec<KeyRow>,
}

/// Puts or clears the note of a ready row.
#[derive(Clone, Debug)]
pub struct NotePut {
    /// The unit.
    pub unit: UnitRef,
    /// The attempt that the row must be at.
    pub attempt: u32,
    /// What is noted.
    pub noted: Noted,
}

/// What is noted of a ready row.
#[derive(Clone, Debug)]
pub enum Noted {
    /// A worker has it.
    Out(Note),
    /// It was given back at this time: there is no note any more, the next delivery is a redelivery, and its time in the
    /// queue begins anew.
    Back(Timestamp),
}

/// Registers a document. One with the same name and version that is there already is kept.
#[derive(Clone, Debug)]
pub struct WorkflowPut {
    /// The owner.
    pub tenant: TenantId,
    /// The document.
    pub row: WorkflowRow,
}

/// Keeps a module. One that is there already is kept.
#[derive(Clone, Debug)]
pub struct ModulePut {
    /// The owner.
    pub tenant: TenantId,
    /// What is said of it.
    pub row: ModuleRow,
    /// Its bytes, stored once for all who have the same.
    pub content: bytes::Bytes,
}

/// What became of a batch.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Of each change, in order, whether it was written.
    pub changes: Vec<Result<(), Conflict>>,
    /// How long the commit took, the flush included.
    pub took: Duration,
}

/// A change lost its race: the run was not at its expected seq. Nothing of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is at seq {found}, not at the expected {expected}")]
pub struct Conflict {
    /// The seq that was expected.
    pub expected: u64,
    /// The seq of the run that is there; 0: none is.
    pub found: u64,
}

/// Checks that the events of a change follow its expected seq without a gap, and that its row is at the last of them. A store
/// refuses the whole batch otherwise: who made the change is wrong about everything it says.
pub(super) fn check_dense(change: &Change) -> Result<(), Error> {
    let mut seq = change.expected_seq;
    let dense = change.events.iter().all(|event| {
        seq += 1;
        event.seq == seq
    });
    if dense && change.projection.last_seq == seq && change.projection.run == change.run {
        return Ok(());
    }
    let execution = &change.run.execution;
    Err(Error::Database(
        format!("a change of execution `{execution}` is not dense after seq {}", change.expected_seq).into(),
    ))
}

/// When an answer kept for an `Idempotency-Key` is forgotten: 24 hours after it was given.
pub fn key_expires(now: Timestamp) -> Timestamp {
    now.after(crate::model::Millis(86_400_000))
}
