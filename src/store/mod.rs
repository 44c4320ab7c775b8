//! Stores: where histories, rows and registered things are kept.
//!
//! - [`Store`]: what is asked on behalf of a tenant; every query carries one
//! - [`System`]: the server's own questions (timers, ready windows, recovery, sweep); the edges cannot name it
//! - [`Batch`], [`Change`]: what one transaction writes: all of a batch or nothing, but for changes that lost a race
//! - [`Error`]: why a store could not answer
//!
//! One suite (`suite.rs`) says how a store behaves and runs on each of them. A store decides nothing: it checks the
//! expected seq of each change and otherwise writes what it is given.

mod batch;
mod error;
pub mod sqlite;

#[cfg(test)]
pub(crate) mod memory;
#[cfg(test)]
mod suite;

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;

pub use batch::{
    AliasBack, Batch, CHUNK_BYTES, Change, ChunkPut, Committed, Conflict, ModulePut, NotePut, Noted, RECORDINGS_MAX,
    WorkflowPut, key_expires,
};
pub use error::Error;

use crate::model::{
    Alias, Digest, ExecutionId, Payload, Status, StoredEvent, TenantId, Timestamp, WorkflowName, WorkflowVersion,
    execution::Target,
    id::{ContractVersion, DeliveryId, ModuleName, NodeLabel, QueueName, RunKey, TaskName, UnitRef},
    row::{
        AliasRow, ExecutionKey, KeyRow, LogLine, ModuleRow, Note, PolicyRow, Projection, ReadyRow, RecordingRow,
        SettingsRow, TenantRow, TimerRow, UploadRow, WorkflowRow,
    },
};

/// How many places an alias named before are remembered.
pub const MOVES_MAX: usize = 100;

/// What is asked on behalf of a tenant.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Writes a batch in one transaction and one flush, and says of each change whether it won its race. On an error
    /// nothing of the batch is written, unless the error [leaves doubt](Error::leaves_doubt). Dropping the future does not
    /// stop a commit that has begun.
    async fn commit(&self, batch: Batch) -> Result<Committed, Error>;

    /// Returns, in the order of `keys`, the last run of each execution with its whole history. Where the rows of one cannot
    /// be read, [`Error::Unreadable`] stands in its place, and those beside it are returned all the same.
    async fn load(&self, keys: Vec<ExecutionKey>) -> Result<Vec<Result<Option<Loaded>, Error>>, Error>;

    /// Returns the row of an execution's last run.
    async fn find_execution(&self, tenant: &TenantId, id: &ExecutionId) -> Result<Option<Projection>, Error>;

    /// Returns a page of executions, newest first by (`created_at`, id).
    async fn list_executions(&self, tenant: &TenantId, query: ExecutionQuery) -> Result<Vec<Projection>, Error>;

    /// Returns a part of a history.
    async fn history(&self, run: &RunKey, query: HistoryQuery) -> Result<Vec<StoredEvent>, Error>;

    /// Returns log lines of a run after the line with number `after`, oldest first, each with its number.
    async fn logs(&self, run: &RunKey, after: u64, limit: usize) -> Result<Vec<(u64, LogLine)>, Error>;

    /// Returns the kept answers of these `Idempotency-Key` scopes that have not expired at `now`, in the order of `scopes`.
    async fn find_keys(&self, scopes: Vec<(TenantId, String)>, now: Timestamp) -> Result<Vec<Option<KeyRow>>, Error>;

    /// Returns a registered document; without a version the default one.
    async fn find_workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: Option<&WorkflowVersion>,
    ) -> Result<Option<WorkflowRow>, Error>;

    /// Returns a page of registered documents, newest first by (`created_at`, name, version), after the row with `after`.
    async fn list_workflows(
        &self,
        tenant: &TenantId,
        after: Option<(Timestamp, WorkflowName, WorkflowVersion)>,
        limit: usize,
    ) -> Result<Vec<WorkflowRow>, Error>;

    /// Returns whether a run that is not terminal uses this version.
    async fn workflow_in_use(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: &WorkflowVersion,
    ) -> Result<bool, Error>;

    /// Returns a page of modules, newest first by (`created_at`, name, digest), after the row with `after`.
    async fn list_modules(
        &self,
        tenant: &TenantId,
        name: Option<&ModuleName>,
        after: Option<(Timestamp, ModuleName, Digest)>,
        limit: usize,
    ) -> Result<Vec<ModuleRow>, Error>;

    /// Returns every alias of the tenant's modules, by name and alias.
    async fn list_aliases(&self, tenant: &TenantId) -> Result<Vec<AliasRow>, Error>;

    /// Returns the tenant's uploads that are compiling or were refused, by name and digest.
    async fn list_uploads(&self, tenant: &TenantId) -> Result<Vec<UploadRow>, Error>;
    /// Returns what an alias named before, newest first, each with its number; at most [`MOVES_MAX`] are remembered.
    async fn alias_moves(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        alias: &Alias,
    ) -> Result<Vec<(u64, AliasRow)>, Error>;

    /// Returns the live executions that need a digest, after `after`, by id, at most `limit`.
    async fn pinned_by(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        digest: &Digest,
        after: Option<&ExecutionId>,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, Error>;

    /// Returns the bytes of a module that the tenant has under this name.
    async fn module_content(
        &self,
        tenant: &TenantId,
        name: &ModuleName,
        digest: &Digest,
    ) -> Result<Option<Vec<u8>>, Error>;

    /// Returns how many digests of modules the tenant keeps, and their bytes in all.
    async fn count_modules(&self, tenant: &TenantId) -> Result<(u64, u64), Error>;

    /// Returns one revision of the settings of a module.
    async fn find_settings(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        revision: u64,
    ) -> Result<Option<SettingsRow>, Error>;

    /// Returns what was kept of an attempt.
    async fn find_recording(&self, unit: &UnitRef, attempt: u32) -> Result<Option<RecordingRow>, Error>;
}

/// The server's own questions, over all tenants. Rows carry their tenant.
#[async_trait]
pub trait System: Store {
    /// Returns the number that this database was given when it was made; tokens carry it.
    fn epoch(&self) -> u64;

    /// Returns whether the last server on this database ended without [`System::close`].
    fn ended_uncleanly(&self) -> bool;

    /// Sets `redelivery` on every ready row: after an unclean end a delivery cannot be ruled out.
    async fn mark_redelivery(&self) -> Result<(), Error>;

    /// Returns the armed timers that are due at or before `until`, earliest first, at most `limit`.
    async fn timers_until(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, Error>;

    /// Returns how many ready rows there are of each class.
    async fn ready_counts(&self) -> Result<HashMap<ReadyClass, u64>, Error>;

    /// Returns ready rows of a class with their inputs.
    async fn ready_page(&self, class: &ReadyClass, order: ReadyOrder, limit: usize) -> Result<ReadyPage, Error>;

    /// Returns every ready row that has a note, with its input, for the hold after a restart.
    async fn noted(&self) -> Result<ReadyPage, Error>;

    /// Returns ready rows whose time in the queue ends at or before `until`, earliest first, at most `limit`.
    async fn queue_ends_until(&self, until: Timestamp, limit: usize) -> Result<Vec<ReadyRow>, Error>;

    /// Returns when the earliest time in a queue ends.
    async fn next_queue_end(&self) -> Result<Option<Timestamp>, Error>;

    /// Returns the executions that are not terminal after `after`, by (tenant, id), with the rows that the sweep compares.
    async fn sweep_page(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<SweepRow>, Error>;

    /// Returns the executions whose engine has more to do (waiting kind `turn`), at most `limit`.
    async fn unfinished_turns(&self, limit: usize) -> Result<Vec<ExecutionKey>, Error>;

    /// Returns the executions that wind down and have a ready row, after `after`, by (tenant, id), at most `limit`.
    async fn winding_down(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<ExecutionKey>, Error>;

    /// Returns how many executions are not terminal.
    async fn active_executions(&self) -> Result<u64, Error>;

    /// Returns a page of tenants, newest first by (`created_at`, name), after the row with `after`.
    async fn list_tenants(&self, after: Option<(Timestamp, TenantId)>, limit: usize) -> Result<Vec<TenantRow>, Error>;

    /// Returns every policy that was set, by tenant.
    async fn policies(&self) -> Result<Vec<PolicyRow>, Error>;

    /// Returns the newest settings of every module that has any, by tenant and name.
    async fn settings(&self) -> Result<Vec<SettingsRow>, Error>;

    /// Returns every tenant that has a module, for building the tables of tasks at start.
    async fn tenants(&self) -> Result<Vec<TenantId>, Error>;

    /// Returns every upload that is compiling, oldest first, for going on with them at start.
    async fn compiling(&self) -> Result<Vec<(TenantId, UploadRow)>, Error>;

    /// Returns the bytes that are stored of a digest, none of them where none are.
    async fn content(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Removes pieces that no module and no upload needs; returns how many. Only for the start, when nothing is uploaded.
    async fn sweep_chunks(&self) -> Result<usize, Error>;

    /// Removes expired answers of `Idempotency-Key`s, at most `limit`; returns how many.
    async fn prune_keys(&self, now: Timestamp, limit: usize) -> Result<usize, Error>;

    /// Notes what the sandbox has in hand in `slot`, or that the slot is free. Written, not flushed: it outlives the
    /// process, not the machine.
    fn note_in_hand(&self, slot: usize, unit: Option<&InHand>) -> Result<(), Error>;

    /// Returns what the sandbox had in hand when the last server ended uncleanly.
    fn found_in_hand(&self) -> Vec<InHand>;

    /// Returns what the store counted since it was opened.
    fn stats(&self) -> Stats;

    /// Ends the writing and marks the end as clean. Later writes are refused.
    async fn close(&self) -> Result<(), Error>;
}

/// A run with its history.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The row.
    pub projection: Projection,
    /// Its events, from seq 1.
    pub events: Vec<StoredEvent>,
}

/// Which executions a list shows.
#[derive(Clone, Debug, Default)]
pub struct ExecutionQuery {
    /// Only these statuses; empty: all.
    pub statuses: Vec<Status>,
    /// Only this workflow.
    pub workflow: Option<WorkflowName>,
    /// Only this version.
    pub version: Option<WorkflowVersion>,
    /// Only those with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only those created after this instant.
    pub created_after: Option<Timestamp>,
    /// Only those created before this instant.
    pub created_before: Option<Timestamp>,
    /// Only those that come after this row.
    pub after: Option<(Timestamp, ExecutionId)>,
    /// At most this many.
    pub limit: usize,
}

/// Which part of a history is wanted.
#[derive(Clone, Debug)]
pub struct HistoryQuery {
    /// Only events after this seq (before it, when `reverse` and not 0).
    pub after_seq: u64,
    /// Newest first.
    pub reverse: bool,
    /// At most this many events.
    pub limit: usize,
    /// Stop when the fields read pass this many bytes; the first event is always returned.
    pub bytes: usize,
}

/// Ready units that any consumer of the class can take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadyClass {
    /// The owner.
    pub tenant: TenantId,
    /// The line.
    pub queue: QueueName,
    /// Who may do it.
    pub target: Target,
    /// The task.
    pub task: TaskName,
    /// The version of its contract as asked for.
    pub contract: Option<ContractVersion>,
    /// The label that the worker must have.
    pub node: Option<NodeLabel>,
}

impl From<&ReadyRow> for ReadyClass {
    fn from(row: &ReadyRow) -> Self {
        Self {
            tenant: row.unit.run.tenant.clone(),
            queue: row.queue.clone(),
            target: row.target,
            task: row.task.clone(),
            contract: row.contract.clone(),
            node: row.node.clone(),
        }
    }
}

/// In which order ready rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyOrder {
    /// Highest priority first, then oldest.
    Priority,
    /// Oldest first.
    Age,
}

/// Ready rows with their inputs.
#[derive(Clone, Debug, Default)]
pub struct ReadyPage {
    /// Those that can be read.
    pub items: Vec<ReadyItem>,
    /// Those whose input cannot be read, with the reason.
    pub unreadable: Vec<(UnitRef, String)>,
}

/// A ready row with its input.
#[derive(Clone, Debug)]
pub struct ReadyItem {
    /// The row.
    pub row: ReadyRow,
    /// The input of the unit.
    pub input: Payload,
    /// The delivery that is noted in it.
    pub note: Option<Note>,
}

/// What the sweep compares of one execution.
#[derive(Clone, Debug)]
pub struct SweepRow {
    /// Its row.
    pub projection: Projection,
    /// How many ready rows it has.
    pub ready: u64,
    /// When the earliest of its timer rows is due.
    pub next_timer: Option<Timestamp>,
}

/// What the sandbox has in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InHand {
    /// The unit.
    pub unit: UnitRef,
    /// Its attempt.
    pub attempt: u32,
    /// The delivery.
    pub delivery: DeliveryId,
}

/// What a store counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were committed with a flush (or without, where durability is relaxed).
    pub commits: u64,
    /// Changes in them.
    pub changes: u64,
    /// How long commits took in all, in microseconds.
    pub commit_us: u64,
    /// Size of the database in bytes.
    pub database_bytes: u64,
    /// Size of the write-ahead log in bytes.
    pub log_bytes: u64,
}
