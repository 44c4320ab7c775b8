//! Who waits for an execution to change. A change wakes those of its own execution and nobody else.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use crate::model::row::ExecutionKey;

/// Waiters by execution.
#[derive(Default)]
pub(super) struct Waiters(Mutex<HashMap<ExecutionKey, Arc<watch::Sender<u64>>>>);

impl Waiters {
    /// Returns a view of the last committed seq of an execution as changes tell it; 0 until the next change.
    pub(super) fn watch(&self, key: &ExecutionKey) -> watch::Receiver<u64> {
        let mut waiters = self.lock();
        // Those whose last watcher left are dropped when somebody new comes, so that the map stays as small as it is used.
        if waiters.len() >= 1_024 && !waiters.contains_key(key) {
            waiters.retain(|_, sender| sender.receiver_count() > 0);
        }
        waiters.entry(key.clone()).or_insert_with(|| Arc::new(watch::Sender::new(0))).subscribe()
    }

    /// Tells that a change was committed.
    pub(super) fn changed(&self, key: &ExecutionKey, seq: u64, terminal: bool) {
        let mut waiters = self.lock();
        let Some(sender) = waiters.get(key) else { return };
        let watched = sender.send(seq).is_ok();
        if terminal || !watched {
            waiters.remove(key);
        }
    }

    /// Wakes all: any execution may have changed.
    pub(super) fn all_changed(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionKey, Arc<watch::Sender<u64>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
