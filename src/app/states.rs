//! A lane's cache of states, bounded in bytes. What is in flight, or has asks behind it, stays.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use hashlink::LinkedHashMap;

use super::lane::{Ask, LoadError};
use crate::{
    model::{Digest, Execution, ModuleName, row::ExecutionKey},
    workflow::Definition,
};

/// A state with its definition.
pub(super) struct Entry {
    pub(super) execution: Execution,
    pub(super) definition: Arc<Definition>,
    /// Whether a change of it is with the writer.
    pub(super) in_flight: bool,
    /// What was asked meanwhile.
    pub(super) deferred: VecDeque<Ask>,
    /// The digests that rows say the run needs, as of the last change that was made of the state.
    pins: Pins,
    bytes: usize,
}

/// Digests of modules that a run needs.
type Pins = Vec<(ModuleName, Digest)>;

impl Entry {
    pub(super) fn new(execution: Execution, definition: Arc<Definition>) -> Self {
        let bytes = execution.memory_bytes();
        let pins = pins(&execution);
        Self { execution, definition, in_flight: false, deferred: VecDeque::new(), pins, bytes }
    }

    /// Returns the pins to put and to drop since this was asked last. Nearly always there are none.
    pub(super) fn changed_pins(&mut self) -> (Pins, Pins) {
        let held = &self.execution.held;
        let same = held.len() == self.pins.len()
            && held
                .iter()
                .zip(&self.pins)
                .all(|(held, (module, digest))| held.digest == *digest && held.module == *module);
        if same {
            return (Pins::new(), Pins::new());
        }
        let before = std::mem::replace(&mut self.pins, pins(&self.execution));
        let put = self.pins.iter().filter(|pin| !before.contains(pin)).cloned().collect();
        let gone = before.into_iter().filter(|pin| !self.pins.contains(pin)).collect();
        (put, gone)
    }
}

fn pins(execution: &Execution) -> Pins {
    execution.held.iter().map(|held| (held.module.clone(), held.digest.clone())).collect()
}

/// States by key, the least recently used first.
pub(super) struct States {
    entries: LinkedHashMap<ExecutionKey, Entry>,
    errors: HashMap<ExecutionKey, LoadError>,
    bytes: usize,
    bytes_max: usize,
}

impl States {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: LinkedHashMap::new(), errors: HashMap::new(), bytes: 0, bytes_max }
    }

    pub(super) fn contains(&self, key: &ExecutionKey) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn get_mut(&mut self, key: &ExecutionKey) -> Option<&mut Entry> {
        self.entries.to_back(key)
    }

    pub(super) fn insert(&mut self, key: ExecutionKey, entry: Entry) {
        self.bytes += entry.bytes;
        if let Some(old) = self.entries.insert(key, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// Takes in what a load found. That there is no such execution is not kept.
    pub(super) fn loaded(&mut self, key: ExecutionKey, state: Result<Option<Entry>, LoadError>) {
        match state {
            Ok(Some(entry)) => self.insert(key, entry),
            Ok(None) => {}
            Err(error) => {
                self.errors.insert(key, error);
            }
        }
    }

    /// Returns why the state is not there; the errors of a batch are forgotten with it.
    pub(super) fn error(&self, key: &ExecutionKey) -> Option<LoadError> {
        self.errors.get(key).cloned()
    }

    pub(super) fn remove(&mut self, key: &ExecutionKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Measures a state again after a change.
    pub(super) fn resize(&mut self, key: &ExecutionKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            let bytes = entry.execution.memory_bytes();
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
    }

    /// Drops the least recently used states past the bound, and the errors of the batch.
    pub(super) fn shrink(&mut self) {
        self.errors.clear();
        let mut kept = 0;
        while self.bytes > self.bytes_max && kept < self.entries.len() {
            let Some((key, entry)) = self.entries.pop_front() else { return };
            if entry.in_flight || !entry.deferred.is_empty() {
                self.entries.insert(key, entry);
                kept += 1;
            } else {
                self.bytes -= entry.bytes;
            }
        }
    }
}
