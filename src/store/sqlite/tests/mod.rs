//! What only SQLite has: files, the lock, limits of the disk, threads. How every store behaves is in `store::suite`.

mod load;
mod opening;
mod plans;
mod size;
mod threads;

use tempfile::TempDir;

use super::{Options, Store};

/// A directory with a database in it.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> Options {
        Options::new(self.file("test.db"))
    }

    fn open(&self) -> Store {
        Store::open(self.options()).unwrap()
    }
}
