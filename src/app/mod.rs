//! The operations: everything that edges can ask, and what the server does by itself.
//!
//! - [`App`]: the handle; one file per resource adds its operations
//! - lanes and the writer: how a command becomes a committed change
//! - dispatch: how a ready unit reaches a module or a worker
//! - timers, sweep, recovery: what happens without being asked
//! - [`Error`], [`view`]: how refusals and answers look, for every edge alike

mod aliases;
mod allowance;
mod ambiguity;
mod contract_breaks;
mod contracts;
mod counters;
mod cursor;
mod defaults;
mod definitions;
mod dispatch;
mod doubt;
mod error;
mod executions;
mod history;
mod inbox;
mod key;
mod lane;
mod module_diff;
mod module_removal;
mod module_settings;
mod modules;
mod owners;
mod policies;
mod present;
mod recordings;
mod recovery;
mod repin;
mod server;
mod stage;
mod states;
mod sweep;
mod tenants;
mod timers;
mod uploads;
pub mod view;
mod waiters;
mod workers;
mod workflows;
mod writer;

#[cfg(test)]
mod tests;

pub use dispatch::token::Tokens;
pub use error::{Error, ErrorCode};
pub use key::{KeyError, Purpose, ServerKey};
pub use uploads::{UploadRoom, Uploaded};
pub use view::*;
pub use workers::Handed;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify, watch};

use crate::{
    clock::Clock,
    model::{Millis, TenantId, facts::Limits},
    sandbox::Sandbox,
    store::{self, NotePut, System},
    tenancy::Directory,
};

/// What an operator can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many lanes decide.
    pub lanes: usize,
    /// How many requests wait in one lane before starts and signals are refused.
    pub inbox: usize,
    /// Bytes of states that are kept in memory.
    pub cache_bytes: usize,
    /// How often a worker sends a sign of life.
    pub heartbeat_interval: Millis,
    /// After how much silence a session is over.
    pub session_timeout: Millis,
    /// How often the sweep compares.
    pub sweep: Millis,
    /// How long running work may take to end at shutdown.
    pub drain: Millis,
    /// Limits of runs.
    pub limits: Limits,
    /// The bytes of the built-in component.
    pub builtin: Bytes,
}

/// The server's operations. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

/// What all operations share.
struct Inner {
    store: Arc<dyn System>,
    sandbox: Sandbox,
    clock: Clock,
    settings: Settings,
    lanes: lane::Lanes,
    writer: writer::Writer,
    dispatch: dispatch::Dispatcher,
    tokens: dispatch::token::Tokens,
    cursors: cursor::Cursors,
    definitions: definitions::Definitions,
    default_versions: defaults::DefaultVersions,
    tenants: tenants::Tenants,
    directory: Directory,
    timers: timers::Timers,
    waiters: waiters::Waiters,
    counters: counters::Counters,
    /// Registrations of documents and modules, one at a time.
    registering: Mutex<()>,
    uploads: uploads::Uploads,
    /// Whether the server stops.
    stopping: watch::Sender<bool>,
    /// There is something to watch over again.
    watch_wake: Notify,
    /// A unit with a time in its queue became ready.
    queue_wake: Notify,
    /// A commit failed and may have been written all the same.
    doubt: Notify,
    /// A window may be low.
    refill_wake: Notify,
}

impl Inner {
    /// Makes the snapshot of a tenant's modules anew. The caller holds the lock of registering, or is alone.
    async fn refresh_facts(&self, tenant: &TenantId) -> Result<(), store::Error> {
        self.tenants.refresh(&*self.store, &self.directory, tenant).await
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Notes a delivery in its row, with the next batch.
    fn note(&self, note: NotePut) {
        self.writer.send(writer::Job::Note(Box::new(note)));
    }
}
