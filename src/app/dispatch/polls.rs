//! Polls of native workers that wait for work, and who is woken.

use tokio::sync::oneshot;

use super::{
    dispatcher::{Dispatcher, Held, Holder, State},
    session::Session,
};
use crate::{
    model::{QueueName, SessionId, TaskName, TenantId},
    store::ReadyClass,
};

/// A poll that waits for work.
pub(super) struct Parked {
    pub(super) session: SessionId,
    wake: oneshot::Sender<()>,
}

/// What a session takes from: one line of units for each of these.
pub(super) type Work = (TenantId, QueueName, TaskName);

impl Dispatcher {
    /// Parks a poll until something that its session can take is there. Dropping the guard takes it out of the line.
    pub(in crate::app) fn park(&self, session: &SessionId) -> Option<(u64, oneshot::Receiver<()>)> {
        let mut state = self.lock();
        let works: Vec<Work> = works_of(state.sessions.get(session)?);
        let id = state.next_parked;
        state.next_parked += 1;
        let (wake, woken) = oneshot::channel();
        state.parked.insert(id, Parked { session: session.clone(), wake });
        for work in works {
            state.parked_by_work.entry(work).or_default().insert(id);
        }
        Some((id, woken))
    }

    /// A parked poll leaves. One that was woken but took nothing passes its wake on.
    pub(in crate::app) fn leave(&self, id: u64, session: &SessionId, woken: bool) {
        let mut state = self.lock();
        if let Some(found) = state.sessions.remove(session) {
            state.unpark(id, &found);
            state.sessions.insert(session.clone(), found);
        } else {
            state.parked.remove(&id);
        }
        if woken {
            state.wake_session_work(session);
        }
    }
}

impl State {
    /// Wakes one parked poll that can take from a class.
    pub(super) fn wake_for(&mut self, class: usize) {
        let name = self.classes[class].name.clone();
        let work = (name.tenant.clone(), name.queue.clone(), name.task.clone());
        let Some(line) = self.parked_by_work.get(&work) else { return };
        let woken = line.iter().copied().find(|id| {
            let session = self.parked.get(id).and_then(|parked| self.sessions.get(&parked.session));
            session.is_some_and(|session| session.room() > 0 && can_take(session, &name))
        });
        if let Some(id) = woken {
            self.wake(id);
        }
    }

    pub(super) fn wake(&mut self, id: u64) {
        let Some(parked) = self.parked.remove(&id) else { return };
        let works = self.sessions.get(&parked.session).map(works_of).unwrap_or_default();
        for work in works {
            self.leave_line(&work, id);
        }
        // The poll may have gone in this instant; its guard passes the wake on.
        let _ = parked.wake.send(());
    }

    pub(super) fn leave_line(&mut self, work: &Work, id: u64) {
        if let Some(line) = self.parked_by_work.get_mut(work) {
            line.remove(&id);
            if line.is_empty() {
                self.parked_by_work.remove(work);
            }
        }
    }

    pub(super) fn unpark(&mut self, id: u64, session: &Session) {
        self.parked.remove(&id);
        for work in works_of(session) {
            self.leave_line(&work, id);
        }
    }

    /// A holder has room again: one of its parked polls is woken where there is work for it.
    pub(super) fn wake_for_room(&mut self, held: &Held) {
        if let Holder::Session(session, _) = &held.holder {
            let session = session.clone();
            self.wake_session_work(&session);
        }
    }

    /// Wakes a poll for what a session could take: one of its own, else one of another.
    pub(super) fn wake_session_work(&mut self, session: &SessionId) {
        let Some((class, _)) = self.best_for(session) else { return };
        self.wake_for(class);
    }
}

/// Every line that a session takes from.
pub(super) fn works_of(session: &Session) -> Vec<Work> {
    let mut works = Vec::new();
    for queue in &session.queues {
        for (task, _) in &session.contracts {
            works.push((session.tenant.clone(), queue.clone(), task.clone()));
        }
    }
    works.sort();
    works.dedup();
    works
}

pub(super) fn can_take(session: &Session, class: &ReadyClass) -> bool {
    session.tenant == class.tenant
        && session.queues.contains(&class.queue)
        && session.serves(&class.task, class.contract.as_ref())
        && session.has_node(class.node.as_ref())
}
