//! What SQLite's errors mean to the callers of a store.

use rusqlite::{Error as Failure, ErrorCode};

use crate::store::Error;

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            // The writer, who knows the limits, says which one it was.
            Failure::SqliteFailure(code, _) if code.code == ErrorCode::DiskFull => {
                Self::Full { limit: "the disk".into() }
            }
            Failure::FromSqlConversionFailure(..)
            | Failure::IntegralValueOutOfRange(..)
            | Failure::InvalidColumnType(..)
            | Failure::Utf8Error(..) => unreadable(&failure),
            other => Self::Database(Box::new(other)),
        }
    }
}

/// Says that a stored row cannot be read, and why.
pub(super) fn unreadable(why: impl std::fmt::Display) -> Error {
    Error::Unreadable { what: why.to_string() }
}
