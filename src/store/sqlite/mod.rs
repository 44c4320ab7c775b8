//! The store of one machine: an SQLite database beside the server.
//!
//! - [`Store`]: the store; [`Options`]: how it is opened
//! - `writer`: the one connection that writes, on a thread of its own; `crew`: how callers reach such threads
//! - `schema`, `connect`, `file`, `lock`: how a database is made, recognised, opened, and kept from a second server
//! - one file for each table or two, with all of its SQL: `executions`, `events`, `ready`, `timers`, …
//! - `in_hand`: the small file beside it that says what the sandbox has in hand
//!
//! Every transaction that writes is begun as such, by one thread; readers have their own connections and end their read
//! with the request. So nobody waits for a lock, and no read keeps the write-ahead log from being brought in.

mod aliases;
mod classes;
mod columns;
mod connect;
mod crew;
mod error;
mod events;
mod executions;
mod file;
mod in_hand;
mod keys;
mod list;
mod lock;
mod logs;
mod modules;
mod pins;
mod ready;
mod recordings;
mod schema;
mod store;
mod system;
mod tenants;
mod timers;
mod uploads;
mod workflows;
mod write;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use store::Store;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database. Beside it lie its log (`-wal`, `-shm`), `.lock` and `.inflight`.
    pub path: PathBuf,
    /// When a commit counts as done.
    pub durability: Durability,
    /// The most bytes that the database may have, rounded down to pages. Its log comes on top. What is in it when the
    /// bound is met stays readable, rows can still be dropped, and a larger bound at the next start continues.
    pub max_bytes: Option<u64>,
    /// How many connections read, each on its own thread; at least one.
    pub readers: usize,
    /// The log is brought into the database when it has this many bytes, and cut when readers let it grow to four times
    /// as many.
    pub log_bytes: u64,
}

impl Options {
    /// Returns the usual options for a database.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::Full,
            max_bytes: None,
            readers: 4,
            log_bytes: 16 * 1024 * 1024,
        }
    }
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk: it outlives the machine.
    #[default]
    Full,
    /// When the operating system has it: it outlives the process; the last commits may not outlive the machine.
    Relaxed,
}
