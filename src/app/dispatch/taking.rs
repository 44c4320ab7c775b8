//! Taking: the one routine by which native workers and the sandbox get units.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    dispatcher::{Dispatcher, Held, Holder, State, Taken},
    polls::{can_take, works_of},
    window::{Place, Ready},
};
use crate::{
    model::{DeliveryId, SessionId, TenantId, Timestamp, id::UnitRef, row::ReadyRow},
    sandbox::{Cancel, Progress},
};

impl Dispatcher {
    /// Takes units for a session, at most `max` and at most what it has room for.
    pub(in crate::app) fn take_for_session(
        &self,
        session: &SessionId,
        max: usize,
        now: Timestamp,
    ) -> Option<Vec<Taken>> {
        let mut state = self.lock();
        let room = state.sessions.get(session)?.room().min(max);
        let mut taken = Vec::new();
        while taken.len() < room && !state.closed {
            let Some((class, unit)) = state.best_for(session) else { break };
            let Some(ready) = state.take_ready(class, &unit) else { break };
            let worker = state.sessions[session].worker.clone();
            let holder = Holder::Session(session.clone(), worker);
            taken.push(state.hand_out(class, ready, holder, now, 0));
        }
        if let Some(session) = state.sessions.get_mut(session) {
            session.held.extend(taken.iter().map(|taken| taken.ready.row.unit.clone()));
        }
        Some(taken)
    }

    /// Takes the next unit for the sandbox, where it has room. `enough` says of a tenant with so many units in hand
    /// whether more would only wait in line.
    pub(in crate::app) fn take_for_sandbox(
        &self,
        now: Timestamp,
        enough: impl Fn(&TenantId, usize) -> bool,
    ) -> Option<Taken> {
        let mut state = self.lock();
        if state.closed || state.free_slots.is_empty() || state.reporting >= state.reporting_max {
            return None;
        }
        let (class, unit) = state.next_sandboxed(enough)?;
        let ready = state.take_ready(class, &unit)?;
        let slot = state.free_slots.pop()?;
        *state.in_slots.entry(ready.row.unit.run.tenant.clone()).or_default() += 1;
        if ready.row.losses > 0 {
            state.suspect = Some(unit);
        }
        let (cancel, progress) = (Cancel::new(), Progress::default());
        let mut taken = state.hand_out(class, ready, Holder::Sandbox(cancel.clone(), progress.clone()), now, slot);
        taken.cancel = cancel;
        taken.progress = progress;
        state.reporting += 1;
        Some(taken)
    }

    /// Takes a unit as a consumer would, to end its time in the queue; false: it is out already, or was given back and
    /// has time left.
    pub(in crate::app) fn take_for_queue_end(&self, row: &ReadyRow, now: Timestamp) -> bool {
        let mut state = self.lock();
        let has_time = state.queued_until.get(&row.unit).is_some_and(|end| *end > now);
        if has_time || state.out.contains_key(&row.unit) {
            return false;
        }
        state.drop_ready(&row.unit);
        true
    }

    /// The sandbox is done with a delivery; its result is not reported yet.
    pub(in crate::app) fn free_slot(&self, taken: &Taken) {
        let mut state = self.lock();
        state.free_slots.push(taken.slot);
        state.leave_slot(&taken.ready.row.unit.run.tenant);
        if state.suspect.as_ref() == Some(&taken.ready.row.unit) {
            state.suspect = None;
        }
    }

    /// The result of a sandboxed delivery is committed, or given up.
    pub(in crate::app) fn reported(&self) {
        let mut state = self.lock();
        state.reporting = state.reporting.saturating_sub(1);
    }
}

impl State {
    /// The unit that a session should take: of all classes that it can take from, the one that stands first.
    pub(super) fn best_for(&self, session: &SessionId) -> Option<(usize, UnitRef)> {
        let session = self.sessions.get(session)?;
        let mut best: Option<(Place, usize, &UnitRef)> = None;
        for work in works_of(session) {
            for class in self.by_work.get(&work).into_iter().flatten() {
                let found = &self.classes[*class];
                if !can_take(session, &found.name) {
                    continue;
                }
                if let Some((place, ready)) = found.window.first()
                    && best.as_ref().is_none_or(|(other, ..)| place.0 < other.0)
                {
                    best = Some((place, *class, &ready.row.unit));
                }
            }
        }
        best.map(|(_, class, unit)| (class, unit.clone()))
    }

    /// The unit that the sandbox should take: of the tenant whose turn it is, the one that stands first. A turn is as many
    /// units as the tenant weighs; one that has all its slots in use, or enough in hand, has none. A unit that carries a loss waits while
    /// another such unit is in hand.
    pub(super) fn next_sandboxed(&mut self, enough: impl Fn(&TenantId, usize) -> bool) -> Option<(usize, UnitRef)> {
        for _ in 0..self.turns.len() {
            let tenant = self.turns.pop_front()?;
            if self.sandboxed.get(&tenant).is_none_or(BTreeMap::is_empty) {
                self.sandboxed.remove(&tenant);
                self.given = 0;
                continue;
            }
            let share = self.shares.get(&tenant).copied().unwrap_or(self.usual_share);
            let in_hand = self.in_slots.get(&tenant).copied().unwrap_or_default();
            let has_room = in_hand < share.instances && !enough(&tenant, in_hand);
            let found = if has_room { self.first_sandboxed(&tenant) } else { None };
            self.given += 1;
            if found.is_some() && self.given < share.weight {
                self.turns.push_front(tenant);
            } else {
                self.turns.push_back(tenant);
                self.given = 0;
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn first_sandboxed(&self, tenant: &TenantId) -> Option<(usize, UnitRef)> {
        let suspect_out = self.suspect.is_some();
        let allowed = |(place, class): (&Place, &usize)| {
            let ready = self.classes[*class].window.at(*place)?;
            (ready.row.losses == 0 || !suspect_out).then(|| (*class, ready.row.unit.clone()))
        };
        self.sandboxed.get(tenant)?.iter().find_map(allowed)
    }

    /// A tenant has a slot less in use.
    fn leave_slot(&mut self, tenant: &TenantId) {
        if let Some(held) = self.in_slots.get_mut(tenant) {
            *held -= 1;
            if *held == 0 {
                self.in_slots.remove(tenant);
            }
        }
    }

    pub(super) fn hand_out(
        &mut self,
        class: usize,
        ready: Arc<Ready>,
        holder: Holder,
        now: Timestamp,
        slot: usize,
    ) -> Taken {
        let delivery = DeliveryId(uuid::Uuid::new_v4().as_u128());
        let deadline = now.after(ready.row.timeouts.attempt_ms);
        let held = Held {
            ready: ready.clone(),
            delivery,
            holder,
            handed_at: now,
            deadline,
            heard_at: now,
            confirmed: false,
            progress: None,
            stop: false,
            class,
        };
        self.queued_until.remove(&ready.row.unit);
        self.out.insert(ready.row.unit.clone(), held);
        Taken { ready, delivery, handed_at: now, deadline, slot, cancel: Cancel::new(), progress: Progress::default() }
    }
}
