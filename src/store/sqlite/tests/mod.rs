//! What only SQLite has: files, the lock, limits of the disk, threads. How every store behaves is in `store::suite`.

mod load;
mod opening;
mod plans;
mod size;
mod threads;

use async_trait::async_trait;
use tempfile::TempDir;

use super::{Options, Store};
use crate::{model::row::ExecutionKey, store::suite::Spoil};

#[async_trait]
impl Spoil for Store {
    async fn spoil(&self, key: &ExecutionKey) {
        let key = key.clone();
        let spoil = move |connection: &rusqlite::Transaction<'_>| {
            let update = "UPDATE executions SET waiting = 'invented' WHERE tenant = ?1 AND id = ?2";
            Ok(connection.execute(update, [key.tenant.as_str(), key.execution.as_str()])?)
        };
        self.writer.run(move |writer| writer.transact(|connection, _| spoil(connection))).await.unwrap();
    }
}

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
