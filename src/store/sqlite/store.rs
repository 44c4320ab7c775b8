//! The store itself: its threads, and what is asked on behalf of a tenant.

use std::sync::{Arc, atomic::Ordering};

use async_trait::async_trait;
use rusqlite::{Connection, Transaction};

use super::{
    Options, aliases,
    connect::{self, Opened},
    crew::{Crew, Hand},
    events, executions,
    file::{self, Found, io_error},
    in_hand::InHandFile,
    keys, list,
    lock::Lock,
    logs, modules, pins, recordings, schema, tenants, uploads, workflows,
    writer::{Counters, Writer},
};
use crate::{
    model::{
        Alias, Digest, ExecutionId, ModuleName, StoredEvent, TenantId, Timestamp, WorkflowName, WorkflowVersion,
        id::{RunKey, UnitRef},
        row::{
            AliasRow, ExecutionKey, KeyRow, LogLine, ModuleRow, Projection, RecordingRow, SettingsRow, UploadRow,
            WorkflowRow,
        },
    },
    store::{self, Batch, Committed, Error, ExecutionQuery, HistoryQuery, InHand, Loaded, Stats},
};

/// A store in an SQLite database. Dropping it waits for a commit that has begun; only
/// [`close`](store::System::close) makes its end a clean one.
pub struct Store {
    // The readers end first: the connection that writes is then the last, and tidies up as it closes.
    readers: Crew<Reader>,
    pub(super) writer: Crew<Writer>,
    pub(super) in_hand: InHandFile,
    pub(super) found_in_hand: Vec<InHand>,
    pub(super) ended_uncleanly: bool,
    pub(super) epoch: u64,
    counters: Arc<Counters>,
    path: std::path::PathBuf,
}

/// The state of a reader's thread.
pub(super) struct Reader(Connection);

impl Hand for Reader {
    const SKIPS_ABANDONED: bool = true;
    fn rest(&mut self) {}
}

impl Store {
    /// Opens a database, and makes it where it is not there. Blocks on the disk. A file that is not ours is left as it is.
    pub fn open(options: Options) -> Result<Self, Error> {
        let path = file::resolve(&options.path)?;
        let lock = Lock::take(&path)?;
        let opened = file::inspect(&path).and_then(|found| {
            if found == Found::Nothing {
                schema::create(&path)?;
            }
            connect::open_writer(&path, &options)
        });
        let Opened { connection, epoch, ended_cleanly } = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // Whoever else tries will be refused as well, so that nobody relies on the lock.
                if matches!(error, Error::NotOurs { .. } | Error::TooNew { .. }) {
                    lock.withdraw();
                }
                return Err(error);
            }
        };
        let counters = Arc::new(Counters::default());
        let in_hand = InHandFile::open(&path, epoch)?;
        let found_in_hand = if ended_cleanly { Vec::new() } else { in_hand.read()? };
        let readers = (0..options.readers.max(1)).map(|_| connect::open_reader(&path).map(Reader));
        let readers = readers.collect::<Result<Vec<_>, _>>()?;
        let writer = Writer::new(connection, counters.clone(), (&path, lock), (options.log_bytes, options.max_bytes))?;
        Ok(Self {
            readers: Crew::start("store-reader", readers).map_err(|source| io_error(&path, source))?,
            writer: Crew::start("store-writer", vec![writer]).map_err(|source| io_error(&path, source))?,
            in_hand,
            found_in_hand,
            ended_uncleanly: !ended_cleanly,
            epoch,
            counters,
            path,
        })
    }

    /// Reads in one read transaction, which ends with it.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.readers.run(move |reader| read(&reader.0.transaction()?)).await
    }

    /// Returns what was counted, and the sizes of the files.
    pub(super) fn count(&self) -> Stats {
        let size = |suffix| file::beside(&self.path, suffix).metadata().map_or(0, |metadata| metadata.len());
        Stats {
            commits: self.counters.commits.load(Ordering::Relaxed),
            changes: self.counters.changes.load(Ordering::Relaxed),
            commit_us: self.counters.commit_us.load(Ordering::Relaxed),
            database_bytes: size(""),
            log_bytes: size("-wal"),
        }
    }
}

#[async_trait]
impl store::Store for Store {
    async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        self.writer.run(move |writer| writer.commit(&batch)).await
    }

    async fn load(&self, keys: Vec<ExecutionKey>) -> Result<Vec<Result<Option<Loaded>, Error>>, Error> {
        self.read(move |connection| keys.iter().map(|key| events::load(connection, key)).collect()).await
    }

    async fn find_execution(&self, tenant: &TenantId, id: &ExecutionId) -> Result<Option<Projection>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |connection| executions::find(connection, &tenant, &id)).await
    }

    async fn list_executions(&self, tenant: &TenantId, query: ExecutionQuery) -> Result<Vec<Projection>, Error> {
        let tenant = tenant.clone();
        self.read(move |connection| list::list_executions(connection, &tenant, &query)).await
    }

    async fn history(&self, run: &RunKey, query: HistoryQuery) -> Result<Vec<StoredEvent>, Error> {
        let run = run.clone();
        self.read(move |connection| events::history(connection, &run, &query)).await
    }

    async fn logs(&self, run: &RunKey, after: u64, limit: usize) -> Result<Vec<(u64, LogLine)>, Error> {
        let run = run.clone();
        self.read(move |connection| logs::read(connection, &run, after, limit)).await
    }

    async fn find_keys(&self, scopes: Vec<(TenantId, String)>, now: Timestamp) -> Result<Vec<Option<KeyRow>>, Error> {
        self.read(move |connection| keys::find(connection, &scopes, now)).await
    }

    async fn find_workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: Option<&WorkflowVersion>,
    ) -> Result<Option<WorkflowRow>, Error> {
        let (tenant, name, version) = (tenant.clone(), name.clone(), version.cloned());
        self.read(move |connection| workflows::find(connection, &tenant, &name, version.as_ref())).await
    }

    async fn list_workflows(
        &self,
        tenant: &TenantId,
        after: Option<(Timestamp, WorkflowName, WorkflowVersion)>,
        limit: usize,
    ) -> Result<Vec<WorkflowRow>, Error> {
        let tenant = tenant.clone();
        self.read(move |connection| workflows::list(connection, &tenant, after.as_ref(), limit)).await
    }

    async fn workflow_in_use(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: &WorkflowVersion,
    ) -> Result<bool, Error> {
        let (tenant, name, version) = (tenant.clone(), name.clone(), version.clone());
        self.read(move |connection| executions::workflow_in_use(connection, &tenant, &name, &version)).await
    }

    async fn list_modules(
        &self,
        tenant: &TenantId,
        name: Option<&ModuleName>,
        after: Option<(Timestamp, ModuleName, Digest)>,
        limit: usize,
    ) -> Result<Vec<ModuleRow>, Error> {
        let (tenant, name) = (tenant.clone(), name.cloned());
        self.read(move |connection| modules::list(connection, &tenant, name.as_ref(), after.as_ref(), limit)).await
    }

    async fn list_aliases(&self, tenant: &TenantId) -> Result<Vec<AliasRow>, Error> {
        let tenant = tenant.clone();
        self.read(move |connection| aliases::list(connection, &tenant)).await
    }

    async fn alias_moves(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        alias: &Alias,
    ) -> Result<Vec<(u64, AliasRow)>, Error> {
        let (tenant, module, alias) = (tenant.clone(), module.clone(), alias.clone());
        self.read(move |connection| aliases::moves(connection, &tenant, &module, &alias)).await
    }

    async fn pinned_by(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        digest: &Digest,
        after: Option<&ExecutionId>,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, Error> {
        let (tenant, module, digest, after) = (tenant.clone(), module.clone(), digest.clone(), after.cloned());
        self.read(move |connection| pins::holders(connection, &tenant, &module, &digest, after.as_ref(), limit)).await
    }

    async fn list_uploads(&self, tenant: &TenantId) -> Result<Vec<UploadRow>, Error> {
        let tenant = tenant.clone();
        self.read(move |connection| uploads::list(connection, &tenant)).await
    }

    async fn module_content(
        &self,
        tenant: &TenantId,
        name: &ModuleName,
        digest: &Digest,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (tenant, name, digest) = (tenant.clone(), name.clone(), digest.clone());
        self.read(move |connection| modules::content(connection, &tenant, &name, &digest)).await
    }

    async fn count_modules(&self, tenant: &TenantId) -> Result<(u64, u64), Error> {
        let tenant = tenant.clone();
        self.read(move |connection| modules::count(connection, &tenant)).await
    }

    async fn find_settings(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        revision: u64,
    ) -> Result<Option<SettingsRow>, Error> {
        let (tenant, module) = (tenant.clone(), module.clone());
        self.read(move |connection| tenants::find_settings(connection, &tenant, &module, revision)).await
    }

    async fn find_recording(&self, unit: &UnitRef, attempt: u32) -> Result<Option<RecordingRow>, Error> {
        let unit = unit.clone();
        self.read(move |connection| recordings::find(connection, &unit, attempt)).await
    }
}
