//! Opens connections: the one that writes, and those that only read.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use super::{
    Durability, Options,
    columns::signed,
    file::{check_numbers, not_ours},
    schema,
};
use crate::store::Error;

/// How long a connection waits for a lock. Ours never wait for each other; this is for tools that look into the database.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements that a connection keeps prepared: all that this room has.
const STATEMENTS_MAX: usize = 128;

/// Memory for pages, in KiB, of the connection that writes and of one that reads.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
const READER_CACHE_KIB: i64 = 4 * 1024;

/// What was found in a database when it was opened for writing.
pub(super) struct Opened {
    /// The connection that writes.
    pub(super) connection: Connection,
    /// The random number of the database.
    pub(super) epoch: u64,
    /// Whether the last server ended with a close.
    pub(super) ended_cleanly: bool,
}

/// Opens an existing database for writing, brings its schema up to date and notes, flushed, that it is in use.
pub(super) fn open_writer(path: &Path, options: &Options) -> Result<Opened, Error> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Until it is known to be ours, closing must not bring its log into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let schema = check(&connection, path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;

    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(not_ours(path, "its file system does not support a write-ahead log"));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", signed(options.log_bytes))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    limit_size(&connection, options.max_bytes)?;
    schema::migrate(&mut connection, schema)?;
    let (epoch, ended_cleanly) = begin_use(&connection)?;
    if options.durability == Durability::Relaxed {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
    }
    Ok(Opened { connection, epoch, ended_cleanly })
}

/// Opens an existing database for reading.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    Ok(connection)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Returns the schema of a database of ours. Asked of SQLite, because what the file's header says may be older than the log.
fn check(connection: &Connection, path: &Path) -> Result<u32, Error> {
    let ask = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let numbers = ask("application_id").and_then(|application| Ok((application, ask("user_version")?)));
    let (application, schema) = numbers.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => not_ours(path, "it is damaged or cut off"),
        Some(ErrorCode::NotADatabase) => not_ours(path, "it is not an SQLite database"),
        _ => error.into(),
    })?;
    check_numbers(path, application, schema)?;
    Ok(schema)
}

/// Bounds the pages of the database. It never shrinks for it.
fn limit_size(connection: &Connection, max_bytes: Option<u64>) -> Result<(), Error> {
    let Some(max_bytes) = max_bytes else { return Ok(()) };
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = (signed(max_bytes) / page_bytes.max(1)).clamp(1, i64::from(u32::MAX - 1));
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    Ok(())
}

/// Reads who the database is and how the last server ended, and notes that this one has begun: from here on, until
/// [`end_use`], its end counts as unclean.
fn begin_use(connection: &Connection) -> Result<(u64, bool), Error> {
    let ask = |name| connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get::<_, i64>(0));
    let (epoch, clean) = (ask("epoch")?, ask("clean")?);
    connection.execute("UPDATE meta SET value = 0 WHERE name = 'clean' AND value <> 0", [])?;
    // Nothing refers to these any more, and who asked for them may never come back.
    connection.execute("DELETE FROM ready_classes WHERE id NOT IN (SELECT class FROM ready)", [])?;
    Ok((epoch.cast_unsigned(), clean == 1))
}

/// Notes, flushed with all that was written before, that the server ended cleanly.
pub(super) fn end_use(connection: &Connection) -> Result<(), Error> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute("UPDATE meta SET value = 1 WHERE name = 'clean'", [])?;
    Ok(())
}
