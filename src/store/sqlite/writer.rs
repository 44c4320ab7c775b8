//! The one connection that writes: transactions, and the bound on the write-ahead log.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, Transaction, TransactionBehavior, hooks::Wal};

use super::{
    classes::Classes,
    connect::{BUSY_TIMEOUT, end_use},
    crew::Hand,
    lock::Lock,
    write,
};
use crate::store::{Batch, Committed, Error};

/// The log is cut, with a short wait for readers, when it is this many times longer than where it is brought in.
const CUT_FACTOR: u64 = 4;

/// How long cutting the log waits for readers, and so how long it can hold up the next commit.
const CUT_WAIT: Duration = Duration::from_millis(100);

/// What the writer counted since it was opened.
#[derive(Default)]
pub(super) struct Counters {
    /// Transactions.
    pub(super) commits: AtomicU64,
    /// Changes in them.
    pub(super) changes: AtomicU64,
    /// Time that they took, in microseconds.
    pub(super) commit_us: AtomicU64,
}

/// The state of the writer's thread.
pub(super) struct Writer {
    /// None once the store is closed.
    connection: Option<Connection>,
    classes: Classes,
    counters: Arc<Counters>,
    log: Log,
    /// The database, for saying what is full.
    path: PathBuf,
    max_bytes: Option<u64>,
    /// Given up last: after the connection, when nobody writes any more.
    _lock: Lock,
}

impl Writer {
    pub(super) fn new(
        mut connection: Connection,
        counters: Arc<Counters>,
        (path, lock): (&Path, Lock),
        (log_bytes, max_bytes): (u64, Option<u64>),
    ) -> Result<Self, Error> {
        let log = Log::watch(&mut connection, log_bytes)?;
        Ok(Self {
            connection: Some(connection),
            classes: Classes::default(),
            counters,
            log,
            path: path.to_owned(),
            max_bytes,
            _lock: lock,
        })
    }

    /// Writes a batch in one transaction.
    pub(super) fn commit(&mut self, batch: &Batch) -> Result<Committed, Error> {
        let begun = Instant::now();
        let changes = self.transact(|transaction, classes| write::write_batch(transaction, classes, batch))?;
        let took = begun.elapsed();
        let count =
            |counter: &AtomicU64, by: usize| counter.fetch_add(by.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        count(&self.counters.commits, 1);
        count(&self.counters.changes, changes.iter().filter(|change| change.is_ok()).count());
        self.counters.commit_us.fetch_add(took.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(Committed { changes, took })
    }

    /// Does `work` in one transaction: all of it or, on an error or a panic, nothing.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &mut Classes) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let connection = self.connection.as_mut().ok_or(Error::Closed)?;
        self.classes.begin();
        let result = (|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction, &mut self.classes)?;
            transaction.commit()?;
            Ok(done)
        })();
        match result {
            Ok(done) => {
                self.classes.keep();
                Ok(done)
            }
            Err(Error::Full { .. }) => Err(Error::Full { limit: self.full() }),
            Err(error) => Err(error),
        }
    }

    /// Ends the writing, and notes that the end was clean.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        end_use(&connection)?;
        // With readers about the log stays as it is, which is as good.
        let _ = connection.busy_timeout(CUT_WAIT);
        let _ = checkpoint(&connection, CUT);
        connection.close().map_err(|(_, error)| error.into())
    }

    /// Says which bound was met: SQLite gives the disk's and ours the same code.
    fn full(&self) -> String {
        /// A disk with less than this is taken for full.
        const DISK_BYTES_MIN: u64 = 1024 * 1024;
        let free = self.path.parent().and_then(|directory| rustix::fs::statvfs(directory).ok());
        let disk_is_full = free.is_some_and(|free| free.f_bavail.saturating_mul(free.f_frsize) < DISK_BYTES_MIN);
        match self.max_bytes {
            Some(max_bytes) if !disk_is_full => format!("it may have {max_bytes} bytes"),
            _ => format!("no space is left on the disk of `{}`", self.path.display()),
        }
    }
}

impl Hand for Writer {
    /// A commit may have been counted on by then.
    const SKIPS_ABANDONED: bool = false;

    fn rest(&mut self) {
        if let Some(connection) = &self.connection {
            self.log.bound(connection);
        }
    }
}

/// Keeps the write-ahead log short. Done after a commit was answered, so that it is at most the next one that waits.
struct Log {
    page_bytes: u64,
    /// How many pages the log had after the last commit.
    pages: Arc<AtomicU64>,
    /// The log is brought into the database from here on.
    bring_in_bytes: u64,
    /// Where the next try is made: a reader can hold up the last one.
    next_try_bytes: u64,
}

impl Log {
    /// Has the log's length told with each commit, which asking would cost more than.
    fn watch(connection: &mut Connection, bring_in_bytes: u64) -> Result<Self, rusqlite::Error> {
        let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            told.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { page_bytes: page_bytes.into(), pages, bring_in_bytes, next_try_bytes: bring_in_bytes })
    }

    fn bound(&mut self, connection: &Connection) {
        if let Err(error) = self.try_bound(connection) {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to bring the log into the database");
        }
    }

    fn try_bound(&mut self, connection: &Connection) -> Result<(), rusqlite::Error> {
        if self.pages.load(Ordering::Relaxed) * self.page_bytes < self.bring_in_bytes {
            self.next_try_bytes = self.bring_in_bytes;
            return Ok(());
        }
        let state = checkpoint(connection, LOOK)?;
        let bytes = state.pages * self.page_bytes;
        // A log that is brought in whole begins anew with the next transaction, unless a reader still looks at it.
        if state.brought_in == state.pages || bytes < self.next_try_bytes {
            return Ok(());
        }
        self.next_try_bytes = bytes + self.bring_in_bytes / 4;
        let after = if bytes < self.bring_in_bytes * CUT_FACTOR {
            checkpoint(connection, BRING_IN)?
        } else {
            connection.busy_timeout(CUT_WAIT)?;
            let cut = checkpoint(connection, CUT);
            connection.busy_timeout(BUSY_TIMEOUT)?;
            cut?
        };
        // The log begins anew, and may be long enough again with the very next commit.
        if after.brought_in == after.pages {
            self.next_try_bytes = self.bring_in_bytes;
        }
        Ok(())
    }
}

/// Changes nothing.
const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Brings in what readers allow.
const BRING_IN: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Waits for readers, brings in everything and empties the file.
const CUT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// How far the log is brought into the database.
struct LogState {
    pages: u64,
    brought_in: u64,
}

fn checkpoint(connection: &Connection, statement: &str) -> Result<LogState, rusqlite::Error> {
    connection.prepare_cached(statement)?.query_row([], |row| {
        // -1: there is no log yet.
        let count = |at| row.get::<_, i64>(at).map(|pages| u64::try_from(pages).unwrap_or(0));
        Ok(LogState { pages: count(1)?, brought_in: count(2)? })
    })
}
