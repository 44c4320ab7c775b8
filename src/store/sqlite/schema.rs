//! The schema: its migrations, and how a database is made.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::file::{beside, io_error};
use crate::store::Error;

/// What the header of a database of ours names: `Sand`.
pub(super) const APPLICATION_ID: u32 = 0x5361_6e64;

/// Every migration in order. The first `user_version` of them are in a database; none is ever changed.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_lists.sql"),
    include_str!("migrations/0003_winding_down.sql"),
    include_str!("migrations/0004_uploads.sql"),
    include_str!("migrations/0005_module_life.sql"),
    include_str!("migrations/0006_tenants.sql"),
    include_str!("migrations/0007_recordings.sql"),
];

/// The newest schema known.
pub(super) const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// Bytes of a page. Set when a database is made and never changed.
const PAGE_BYTES: u32 = 4096;

/// Makes a new database. It is written under another name and then renamed, so that what is at `path` is always whole.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    create_with(path, SCHEMA)
}

/// Makes a new database of an old schema.
pub(super) fn create_with(path: &Path, schema: u32) -> Result<(), Error> {
    let draft = beside(path, ".new");
    let failed = |source| io_error(&draft, source);
    // What a server that died while it made one left.
    for left in [draft.clone(), beside(&draft, "-journal")] {
        if left.exists() {
            std::fs::remove_file(&left).map_err(failed)?;
        }
    }
    // SQLite gives the files beside a database the mode of the database.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    let mut connection = Connection::open_with_flags(&draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    apply_migrations(&transaction, 0, schema)?;
    let insert = "INSERT INTO meta (name, value) VALUES ('epoch', ?1), ('clean', 1)";
    transaction.execute(insert, [new_epoch()?])?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    std::fs::rename(&draft, path).map_err(failed)?;
    flush_directory(path)
}

/// Brings a database of ours up to the newest schema.
pub(super) fn migrate(connection: &mut Connection, found: u32) -> Result<(), Error> {
    if found == SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    apply_migrations(&transaction, found, SCHEMA)?;
    transaction.commit()?;
    Ok(())
}

/// Applies the migrations after the first `found`, up to the schema `wanted`.
fn apply_migrations(transaction: &Transaction<'_>, found: u32, wanted: u32) -> Result<(), Error> {
    for (schema, migration) in (1..=wanted).zip(MIGRATIONS) {
        if schema > found {
            transaction.execute_batch(migration)?;
        }
    }
    transaction.pragma_update(None, "user_version", wanted)?;
    Ok(())
}

/// A random number that SQLite can hold: 63 bits.
fn new_epoch() -> Result<i64, Error> {
    let drawn = getrandom::u64().map_err(|error| Error::Database(Box::new(error)))?;
    Ok((drawn >> 1).cast_signed())
}

fn flush_directory(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent() else { return Ok(()) };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(|source| io_error(directory, source))
}
