//! Why a store could not answer.

use std::path::PathBuf;

/// Why a store could not answer. Nothing of what was asked to be written is written, unless the error
/// [leaves doubt](Error::leaves_doubt).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk, or the size that the operator allows, is full.
    #[error("the database is full ({limit})")]
    Full {
        /// What bounds it, in words.
        limit: String,
    },
    /// The file is not one of ours.
    #[error("`{}` is not a Sandkeep database: {reason}", .path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A newer version wrote it.
    #[error("`{}` needs a newer version of Sandkeep (schema {found}, this version knows {known})", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The schema found.
        found: u32,
        /// The newest schema known.
        known: u32,
    },
    /// Another server holds it.
    #[error("`{}` is in use by another server (process {holder}); the lock is `{}`", .path.display(), .lock.display())]
    Locked {
        /// The database.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
        /// The process that holds it, as it noted itself.
        holder: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A row cannot be read.
    #[error("a stored row cannot be read: {what}")]
    Unreadable {
        /// Which, and why.
        what: String,
    },
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file system failed.
    #[error("failed to use `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Returns whether the same request can succeed later without anybody changing it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Database(_) | Self::Io { .. })
    }

    /// Returns whether a commit that failed so may have been written all the same: its answer was lost on the way.
    pub fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Database(_) | Self::Io { .. })
    }
}
