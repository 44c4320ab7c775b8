//! What one transaction writes.

use std::{collections::BTreeMap, time::Duration};

use super::Error;
use crate::model::{
    Alias, Digest, ModuleName, StoredEvent, TenantId, Timestamp, UnitKey, WorkflowName, WorkflowVersion,
    id::{RunKey, UnitRef},
    row::{
        AliasRow, KeyRow, LogLine, ModuleRow, Note, PolicyRow, Projection, ReadyRow, RecordingRow, SettingsRow,
        TenantRow, TimerKey, TimerRow, UploadRow, WorkflowRow,
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
    /// Uploads to note, each over the one of the same key; the bytes of a refused one go.
    pub uploads: Vec<(TenantId, UploadRow)>,
    /// Pieces of components to keep; one that is there already is kept.
    pub chunks: Vec<ChunkPut>,
    /// Modules to keep, whose bytes are there or in the same batch.
    pub modules: Vec<ModulePut>,
    /// Aliases to move, each made where it is not there. What it named before is remembered.
    pub aliases: Vec<(TenantId, AliasRow)>,
    /// Aliases to move back; after the moves.
    pub aliases_back: Vec<AliasBack>,
    /// Aliases to remove, with what they named before.
    pub aliases_drop: Vec<(TenantId, ModuleName, Alias)>,
    /// Modules to remove, at last; the bytes go with the last one that names them. One that an alias names or a live run
    /// needs stays.
    pub modules_drop: Vec<(TenantId, ModuleName, Digest)>,
    /// Uploads to forget, after the modules are kept; the bytes go with the last one that needs them.
    pub uploads_drop: Vec<(TenantId, ModuleName, Digest)>,
    /// Tenants to keep, each where it is not there.
    pub tenants: Vec<TenantRow>,
    /// Policies to set, each over the one before.
    pub policies: Vec<PolicyRow>,
    /// Revisions of modules' settings to keep.
    pub settings: Vec<SettingsRow>,
    /// Recorded attempts to keep, each over the one of the same attempt. Of a tenant the newest [`RECORDINGS_MAX`] are
    /// kept.
    pub recordings: Vec<RecordingRow>,
}

/// How many recorded attempts of a tenant are kept.
pub const RECORDINGS_MAX: usize = 100;

impl Batch {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.notes.is_empty()
            && self.workflows.is_empty()
            && self.workflows_drop.is_empty()
            && self.defaults.is_empty()
            && self.uploads.is_empty()
            && self.chunks.is_empty()
            && self.modules.is_empty()
            && self.aliases.is_empty()
            && self.aliases_back.is_empty()
            && self.aliases_drop.is_empty()
            && self.modules_drop.is_empty()
            && self.uploads_drop.is_empty()
            && self.tenants.is_empty()
            && self.policies.is_empty()
            && self.settings.is_empty()
            && self.recordings.is_empty()
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
    /// The row after them. When its status is terminal, all ready rows, timers and pins of the run go.
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
    /// Digests that the run needs from now on.
    pub pins_put: Vec<(ModuleName, Digest)>,
    /// Digests that it needs no more; all of them where its status is terminal.
    pub pins_drop: Vec<(ModuleName, Digest)>,
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
}

/// Keeps a piece of a component. Its bytes are stored once for all who have the same.
#[derive(Clone, Debug)]
pub struct ChunkPut {
    /// The digest of the component.
    pub digest: Digest,
    /// Its place, from 0.
    pub number: u32,
    /// Its bytes, at most [`CHUNK_BYTES`].
    pub bytes: bytes::Bytes,
}

/// The size of a piece. A store reads and writes a value as a whole; this bounds what it holds at once.
pub const CHUNK_BYTES: usize = 256 * 1024;

impl ChunkPut {
    /// Cuts a component into pieces, without copying it.
    pub fn all(digest: &Digest, content: &bytes::Bytes) -> Vec<Self> {
        let pieces = (0..).zip((0..content.len()).step_by(CHUNK_BYTES));
        let piece = |(number, at): (u32, usize)| Self {
            digest: digest.clone(),
            number,
            bytes: content.slice(at..content.len().min(at + CHUNK_BYTES)),
        };
        pieces.map(piece).collect()
    }
}

/// Moves an alias back.
#[derive(Clone, Debug)]
pub struct AliasBack {
    /// The owner.
    pub tenant: TenantId,
    /// What it names again.
    pub row: AliasRow,
    /// The number under which that was remembered: it and all above are forgotten.
    pub number: u64,
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
