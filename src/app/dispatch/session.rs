//! Sessions: each is one registration of a native worker.

use std::collections::{HashMap, HashSet};

use super::{
    dispatcher::{Dispatcher, Holder, State},
    polls::works_of,
};
use crate::model::{
    ContractVersion, DeliveryId, NodeLabel, Payload, QueueName, SessionId, TaskName, TenantId, Timestamp, WorkerId,
    id::UnitRef,
};

/// What a worker said of itself, and what it holds.
#[derive(Debug)]
pub(in crate::app) struct Session {
    pub(in crate::app) id: SessionId,
    pub(in crate::app) worker: WorkerId,
    pub(in crate::app) tenant: TenantId,
    pub(in crate::app) runtime: String,
    pub(in crate::app) sdk: Option<String>,
    pub(in crate::app) identity: Option<String>,
    pub(in crate::app) queues: Vec<QueueName>,
    pub(in crate::app) node: Option<NodeLabel>,
    /// None: as many as it polls.
    pub(in crate::app) capacity: Option<u32>,
    pub(in crate::app) contracts: Vec<(TaskName, ContractVersion)>,
    pub(in crate::app) registered_at: Timestamp,
    pub(in crate::app) last_seen: Timestamp,
    /// Whether it ever sent `active`: then only that confirms a delivery.
    pub(in crate::app) names_active: bool,
    pub(in crate::app) held: HashSet<UnitRef>,
}

impl Session {
    /// How many more units it may be handed.
    pub(in crate::app) fn room(&self) -> usize {
        match self.capacity {
            Some(capacity) => (capacity as usize).saturating_sub(self.held.len()),
            None => usize::MAX,
        }
    }

    /// Whether it serves the task in a version that fits.
    pub(in crate::app) fn serves(&self, task: &TaskName, asked: Option<&ContractVersion>) -> bool {
        let fits = |offered: &ContractVersion| asked.is_none_or(|asked| offered.serves(asked));
        self.contracts.iter().any(|(name, version)| name == task && fits(version))
    }

    /// Whether it may take a unit with this label.
    pub(in crate::app) fn has_node(&self, asked: Option<&NodeLabel>) -> bool {
        asked.is_none_or(|asked| self.node.as_ref() == Some(asked))
    }
}

impl Dispatcher {
    /// Adds a session.
    pub(in crate::app) fn register(&self, session: Session) {
        self.lock().sessions.insert(session.id.clone(), session);
    }

    /// Removes a session; returns it.
    pub(in crate::app) fn unregister(&self, session: &SessionId) -> Option<Session> {
        let mut state = self.lock();
        let removed = state.sessions.remove(session)?;
        let gone: Vec<u64> =
            state.parked.iter().filter(|(_, parked)| parked.session == *session).map(|(id, _)| *id).collect();
        for id in gone {
            state.unpark(id, &removed);
        }
        state.spill_unserved(&removed);
        Some(removed)
    }

    /// Looks at a session; none: there is none.
    pub(in crate::app) fn with_session<T>(
        &self,
        session: &SessionId,
        look: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        self.lock().sessions.get_mut(session).map(look)
    }

    /// Looks at every session.
    pub(in crate::app) fn sessions<T>(&self, mut look: impl FnMut(&Session) -> T) -> Vec<T> {
        self.lock().sessions.values().map(&mut look).collect()
    }

    /// Looks at every session with how many of its polls wait.
    pub(in crate::app) fn sessions_with_polls<T>(&self, mut look: impl FnMut(&Session, u32) -> T) -> Vec<T> {
        let state = self.lock();
        let mut waiting: HashMap<&SessionId, u32> = HashMap::new();
        for parked in state.parked.values() {
            *waiting.entry(&parked.session).or_default() += 1;
        }
        state.sessions.values().map(|session| look(session, waiting.get(&session.id).copied().unwrap_or(0))).collect()
    }

    /// How many sessions there are.
    pub(in crate::app) fn session_count(&self) -> usize {
        self.lock().sessions.len()
    }

    /// A session names a delivery: it is confirmed, or taken up again by a worker that came back. Returns whether its work
    /// is still wanted.
    pub(in crate::app) fn confirm(
        &self,
        session: &SessionId,
        unit: &UnitRef,
        delivery: DeliveryId,
        progress: Option<Payload>,
        now: Timestamp,
    ) -> bool {
        let mut state = self.lock();
        let Some(worker) = state.sessions.get(session).map(|session| session.worker.clone()) else { return false };
        let Some(held) = state.out.get_mut(unit) else { return false };
        let same_worker = match &held.holder {
            Holder::Session(_, holder) | Holder::Noted(holder, _) => *holder == worker,
            Holder::Sandbox(..) => false,
        };
        if held.delivery != delivery || !same_worker {
            return false;
        }
        held.confirmed = true;
        held.heard_at = now;
        if progress.is_some() {
            held.progress = progress;
        }
        let wanted = !held.stop;
        let before = std::mem::replace(&mut held.holder, Holder::Session(session.clone(), worker));
        if let Holder::Session(old, _) = before
            && old != *session
            && let Some(old) = state.sessions.get_mut(&old)
        {
            old.held.remove(unit);
        }
        if let Some(session) = state.sessions.get_mut(session) {
            session.held.insert(unit.clone());
        }
        wanted
    }

    /// Any call of a session that never names what it works on confirms all that it holds.
    pub(in crate::app) fn heard(&self, session: &SessionId, now: Timestamp) -> bool {
        let mut state = self.lock();
        let Some(found) = state.sessions.get_mut(session) else { return false };
        found.last_seen = now;
        if !found.names_active {
            let held: Vec<UnitRef> = found.held.iter().cloned().collect();
            for unit in held {
                if let Some(held) = state.out.get_mut(&unit) {
                    held.confirmed = true;
                    held.heard_at = now;
                }
            }
        }
        true
    }
}

impl State {
    /// Classes that nobody can take from any more are only counted.
    pub(super) fn spill_unserved(&mut self, gone: &Session) {
        for work in works_of(gone) {
            for class in self.by_work.get(&work).cloned().unwrap_or_default() {
                if !self.is_served(class) {
                    self.classes[class].window.spill();
                }
            }
        }
    }
}
