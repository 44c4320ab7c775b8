//! The database file from outside: whether it is ours, seen from its first bytes before SQLite opens it and with nothing
//! written to it.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::schema::{APPLICATION_ID, SCHEMA};
use crate::store::Error;

/// What every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The size of the header of an SQLite database.
const HEADER_BYTES: usize = 100;

/// What there is at the path of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or an empty file.
    Nothing,
    /// A database of ours, as far as its header says.
    Ours,
}

/// Returns the path of a file that lies beside `database`.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    name.into()
}

/// Says which file failed.
pub(super) fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Says that the file is not ours.
pub(super) fn not_ours(path: &Path, reason: impl Into<String>) -> Error {
    Error::NotOurs { path: path.to_owned(), reason: reason.into() }
}

/// Returns the path with links followed, so that one database has one lock whatever it is called.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, Error> {
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    let name = path.file_name().ok_or_else(|| not_ours(path, "the path names no file"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(parent.canonicalize().map_err(|source| io_error(parent, source))?.join(name))
}

/// Looks at the file without changing it.
pub(super) fn inspect(path: &Path) -> Result<Found, Error> {
    let failed = |source| io_error(path, source);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return nothing(path),
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(not_ours(path, "it is not a file"));
    }
    if metadata.len() == 0 {
        return nothing(path);
    }
    let mut header = [0; HEADER_BYTES];
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(MAGIC) => {}
        Ok(()) => return Err(not_ours(path, "it is not an SQLite database")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(not_ours(path, "it is too short for an SQLite database"));
        }
        Err(error) => return Err(failed(error)),
    }
    check_numbers(path, number(&header, 68), number(&header, 60))?;
    Ok(Found::Ours)
}

/// A log without its database would be taken for the log of a new one made in its place.
fn nothing(path: &Path) -> Result<Found, Error> {
    let log = beside(path, "-wal");
    match log.metadata() {
        Ok(metadata) if metadata.len() > 0 => {
            Err(not_ours(path, format!("it is missing or empty, but its log `{}` is there", log.display())))
        }
        _ => Ok(Found::Nothing),
    }
}

/// Checks the application and the schema that a database names.
pub(super) fn check_numbers(path: &Path, application: u32, schema: u32) -> Result<(), Error> {
    if application != APPLICATION_ID {
        return Err(not_ours(path, format!("it is a database of another application (id {application})")));
    }
    if schema > SCHEMA {
        return Err(Error::TooNew { path: path.to_owned(), found: schema, known: SCHEMA });
    }
    Ok(())
}

fn number(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
