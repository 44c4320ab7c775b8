//! The lock that keeps a second server away: an operating system lock on `PATH.lock`, which ends with its process.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use super::file::{beside, io_error};
use crate::store::Error;

/// The most of a lock file that is shown as its holder.
const HOLDER_BYTES_MAX: u64 = 32;

/// The lock, held until it is dropped. The file stays: removing it would race with the next holder.
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// Whether the file was not there before.
    made: bool,
}

impl Lock {
    /// Takes the lock of `database` and writes the process id into it.
    pub(super) fn take(database: &Path) -> Result<Self, Error> {
        let path = beside(database, ".lock");
        let failed = |source| io_error(&path, source);
        let made = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: database.to_owned(), lock: path.clone(), holder: holder(&file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut lock = Self { file, path: path.clone(), made };
        lock.file.set_len(0).map_err(failed)?;
        writeln!(lock.file, "{}", std::process::id()).map_err(failed)?;
        Ok(lock)
    }

    /// Gives the lock up and leaves no file behind where there was none: the database turned out not to be ours.
    pub(super) fn withdraw(self) {
        if self.made {
            // What cannot be removed does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn holder(file: &File) -> String {
    let mut text = String::new();
    match file.take(HOLDER_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().escape_default().to_string(),
        _ => "unknown".into(),
    }
}
