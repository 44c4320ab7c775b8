//! The dispatcher's state: what is ready, and what is out. Taking, polls, sessions and refills are beside it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    polls::{Parked, Work, can_take},
    session::Session,
    window::{Place, Ready, WINDOW_MAX, Window},
};
use crate::{
    model::{
        DeliveryId, Payload, SessionId, TenantId, Timestamp, WorkerId,
        execution::Target,
        id::UnitRef,
        policy::{Policy, Share},
        row::{Note, ReadyRow},
    },
    sandbox::{Cancel, Progress},
    store::{ReadyClass, ReadyItem},
};

/// Ready windows, sessions, and what is out.
pub(in crate::app) struct Dispatcher(Mutex<State>);

/// Who has a delivery in hand.
#[derive(Clone, Debug)]
pub(in crate::app) enum Holder {
    /// A session of a native worker.
    Session(SessionId, WorkerId),
    /// The sandbox, until cancelled; with what it tells of its progress.
    Sandbox(Cancel, Progress),
    /// Nobody that is heard yet: a delivery noted before a restart, held until the given time.
    Noted(WorkerId, Timestamp),
}

/// A delivery that is out.
#[derive(Clone, Debug)]
pub(in crate::app) struct Held {
    pub(in crate::app) ready: Arc<Ready>,
    pub(in crate::app) delivery: DeliveryId,
    pub(in crate::app) holder: Holder,
    pub(in crate::app) handed_at: Timestamp,
    pub(in crate::app) deadline: Timestamp,
    /// When it was last heard of.
    pub(in crate::app) heard_at: Timestamp,
    pub(in crate::app) confirmed: bool,
    pub(in crate::app) progress: Option<Payload>,
    /// Whether its work is not wanted any more.
    pub(in crate::app) stop: bool,
    pub(super) class: usize,
}

/// A unit that was just taken.
#[derive(Clone, Debug)]
pub(in crate::app) struct Taken {
    pub(in crate::app) ready: Arc<Ready>,
    pub(in crate::app) delivery: DeliveryId,
    pub(in crate::app) handed_at: Timestamp,
    pub(in crate::app) deadline: Timestamp,
    /// The place in the in-flight file, of what the sandbox has.
    pub(in crate::app) slot: usize,
    pub(in crate::app) cancel: Cancel,
    pub(in crate::app) progress: Progress,
}

/// What became of a delivery that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum GivenBack {
    /// It was not out.
    NotOut,
    /// Its unit is ready again.
    Ready,
    /// Its unit was told to stop, and so is taken back for good.
    Stopped,
}

/// A class of ready units.
pub(super) struct Class {
    pub(super) name: ReadyClass,
    pub(super) window: Window,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) classes: Vec<Class>,
    pub(super) by_name: HashMap<ReadyClass, usize>,
    pub(super) by_work: HashMap<Work, Vec<usize>>,
    /// Units for the sandbox by tenant, over all classes, in order.
    pub(super) sandboxed: HashMap<TenantId, BTreeMap<Place, usize>>,
    /// Whose turn it is at the sandbox.
    pub(super) turns: VecDeque<TenantId>,
    /// How many units the first of them was given in its turn.
    pub(super) given: u32,
    /// How many slots each tenant has in use, of those that have any.
    pub(super) in_slots: HashMap<TenantId, usize>,
    /// The parts of tenants that were set.
    pub(super) shares: HashMap<TenantId, Share>,
    /// The part of every other tenant.
    pub(super) usual_share: Share,
    pub(super) out: HashMap<UnitRef, Held>,
    /// When the time in the queue ends of what was given back: its row may not say so yet.
    pub(super) queued_until: HashMap<UnitRef, Timestamp>,
    /// Units that were told to stop while nobody had them: they are handed out no more, whatever their rows say.
    pub(super) stopping: HashSet<UnitRef>,
    pub(super) sessions: HashMap<SessionId, Session>,
    pub(super) parked: BTreeMap<u64, Parked>,
    pub(super) parked_by_work: HashMap<Work, BTreeSet<u64>>,
    pub(super) next_parked: u64,
    pub(super) next_number: u64,
    pub(super) free_slots: Vec<usize>,
    /// Sandboxed deliveries of units that carry a loss: at most one, so that losses gather on the one that causes them.
    pub(super) suspect: Option<UnitRef>,
    /// Results of the sandbox that are not committed yet.
    pub(super) reporting: usize,
    pub(super) reporting_max: usize,
    /// Whether a window became low since somebody asked.
    pub(super) low: bool,
    pub(super) closed: bool,
}

impl Dispatcher {
    /// `slots`: how many instances the sandbox runs at once. Nothing is handed out before [`Dispatcher::open`].
    pub(in crate::app) fn new(slots: usize) -> Self {
        let free_slots = (0..slots).rev().collect();
        let usual_share = Policy::default().share(slots);
        let state = State { free_slots, usual_share, reporting_max: slots * 4 + 256, closed: true, ..State::default() };
        Self(Mutex::new(state))
    }

    /// Sets a tenant's part of the sandbox. What it has in hand beyond that runs on.
    pub(in crate::app) fn set_share(&self, tenant: &TenantId, share: Share) {
        self.lock().shares.insert(tenant.clone(), share);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a ready unit whose row is committed, and wakes one consumer that can take it.
    pub(in crate::app) fn offer(&self, row: ReadyRow, input: Payload) {
        let mut state = self.lock();
        if let Some(held) = state.out.get(&row.unit) {
            // A repair puts rows that are out, too.
            if held.ready.row.attempt == row.attempt && held.ready.row.losses == row.losses {
                return;
            }
            let unit = row.unit.clone();
            state.forget_out(&unit);
        }
        let class = state.class(&ReadyClass::from(&row));
        state.admit(class, Arc::new(Ready { row, input }), true);
    }

    /// The attempt of a unit is decided: it is not ready any more, and whoever has it is told to stop.
    pub(in crate::app) fn withdraw(&self, unit: &UnitRef) {
        let mut state = self.lock();
        state.stopping.remove(unit);
        if let Some(held) = state.forget_out(unit) {
            if let Holder::Sandbox(cancel, _) = &held.holder {
                cancel.cancel();
            }
            state.wake_for_room(&held);
            return;
        }
        state.drop_ready(unit);
    }

    /// A unit must stop, and is handed out no more. Returns whether it was queued until now, and so is taken back.
    pub(in crate::app) fn stop(&self, unit: &UnitRef, attempt: u32) -> bool {
        let mut state = self.lock();
        match state.out.get_mut(unit) {
            Some(held) if held.ready.row.attempt == attempt => {
                held.stop = true;
                if let Holder::Sandbox(cancel, _) = &held.holder {
                    cancel.cancel();
                }
                // What was noted before a restart may never be heard of again, but may be done all the same.
                false
            }
            _ => {
                state.drop_ready(unit);
                state.stopping.insert(unit.clone());
                true
            }
        }
    }

    /// Gives a delivery back: ready again, no attempt spent, and its time in the queue begins anew. One that was told to
    /// stop is not ready again.
    pub(in crate::app) fn give_back(&self, unit: &UnitRef, delivery: DeliveryId, now: Timestamp) -> GivenBack {
        let mut state = self.lock();
        if state.out.get(unit).is_none_or(|held| held.delivery != delivery) {
            return GivenBack::NotOut;
        }
        let Some(held) = state.forget_out(unit) else { return GivenBack::NotOut };
        if held.stop {
            state.stopping.insert(unit.clone());
            return GivenBack::Stopped;
        }
        if let Some(span) = held.ready.row.timeouts.queue_ms {
            state.queued_until.insert(unit.clone(), now.after(span));
        }
        let row = ReadyRow { redelivery: true, ..held.ready.row.clone() };
        state.admit(held.class, Arc::new(Ready { row, input: held.ready.input.clone() }), true);
        GivenBack::Ready
    }

    /// A delivery is decided: it is out no more, and its holder has room again. Mostly its commit said so already.
    pub(in crate::app) fn settle(&self, unit: &UnitRef, delivery: DeliveryId) {
        let mut state = self.lock();
        if state.out.get(unit).is_some_and(|held| held.delivery == delivery)
            && let Some(held) = state.forget_out(unit)
        {
            state.wake_for_room(&held);
        }
    }

    /// Takes a delivery out of the books, to be lost or failed by command; none: it is not out.
    pub(in crate::app) fn take_out(&self, unit: &UnitRef, delivery: DeliveryId) -> Option<Held> {
        let mut state = self.lock();
        if state.out.get(unit)?.delivery != delivery {
            return None;
        }
        state.forget_out(unit)
    }

    /// Puts a delivery back into the books after its command could not be committed.
    pub(in crate::app) fn keep_out(&self, held: Held) {
        let mut state = self.lock();
        let unit = held.ready.row.unit.clone();
        if let Holder::Session(session, _) = &held.holder
            && let Some(session) = state.sessions.get_mut(session)
        {
            session.held.insert(unit.clone());
        }
        state.out.entry(unit).or_insert(held);
    }

    /// Holds a delivery that was noted before a restart for a worker that may come back.
    pub(in crate::app) fn hold(&self, item: ReadyItem, note: Note, until: Timestamp) {
        let mut state = self.lock();
        let class = state.class(&ReadyClass::from(&item.row));
        state.classes[class].window.stored = state.classes[class].window.stored.saturating_sub(1);
        let timeout = item.row.timeouts.attempt_ms;
        let ready = Arc::new(Ready { row: item.row, input: item.input });
        let held = Held {
            delivery: note.delivery,
            holder: Holder::Noted(note.worker, until),
            handed_at: note.handed_at,
            deadline: note.handed_at.after(timeout),
            heard_at: note.handed_at,
            confirmed: true,
            progress: None,
            stop: false,
            class,
            ready,
        };
        state.out.insert(held.ready.row.unit.clone(), held);
    }

    /// Returns a delivery that is out.
    pub(in crate::app) fn held(&self, unit: &UnitRef) -> Option<Held> {
        self.lock().out.get(unit).cloned()
    }

    /// Every delivery that is out to a native worker or held for one.
    pub(in crate::app) fn held_by_workers(&self) -> Vec<Held> {
        let state = self.lock();
        let of_workers = |held: &&Held| matches!(held.holder, Holder::Session(..) | Holder::Noted(..));
        state.out.values().filter(of_workers).cloned().collect()
    }

    /// Every delivery that the sandbox has in hand.
    pub(in crate::app) fn held_by_sandbox(&self) -> usize {
        self.lock().out.values().filter(|held| matches!(held.holder, Holder::Sandbox(..))).count()
    }

    /// What the last server left is counted: handing out begins.
    pub(in crate::app) fn open(&self) {
        self.lock().closed = false;
    }

    /// Nothing is handed out any more.
    pub(in crate::app) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        // Parked polls answer empty at once: their wake is dropped.
        state.parked.clear();
        state.parked_by_work.clear();
    }

    /// Tells every sandboxed delivery to end, for the end of a drain.
    pub(in crate::app) fn cancel_sandboxed(&self) {
        for held in self.lock().out.values() {
            if let Holder::Sandbox(cancel, _) = &held.holder {
                cancel.cancel();
            }
        }
    }
}

impl State {
    pub(super) fn class(&mut self, name: &ReadyClass) -> usize {
        if let Some(class) = self.by_name.get(name) {
            return *class;
        }
        let class = self.classes.len();
        self.classes.push(Class { name: name.clone(), window: Window::default() });
        self.by_name.insert(name.clone(), class);
        if name.target == Target::Worker {
            let work = (name.tenant.clone(), name.queue.clone(), name.task.clone());
            self.by_work.entry(work).or_default().push(class);
        }
        class
    }

    /// Whether a consumer can take from a class.
    pub(super) fn is_served(&self, class: usize) -> bool {
        let name = &self.classes[class].name;
        name.target == Target::Module || self.sessions.values().any(|session| can_take(session, name))
    }

    /// Puts a unit into its window, or only counts it, and wakes one consumer that can take it.
    pub(super) fn admit(&mut self, class: usize, ready: Arc<Ready>, fresh: bool) {
        if self.stopping.contains(&ready.row.unit) {
            return;
        }
        let window = &self.classes[class].window;
        let full = window.len() >= WINDOW_MAX || (fresh && window.stored > 0 && window.len() >= WINDOW_MAX / 4);
        if full || !self.is_served(class) {
            if !window.contains(&ready.row.unit) {
                self.classes[class].window.count_stored();
            }
            return;
        }
        let unit = ready.row.unit.clone();
        self.take_ready(class, &unit);
        self.next_number += 1;
        let place = Window::place(&ready.row, self.next_number);
        self.classes[class].window.insert(place, ready);
        if self.classes[class].name.target == Target::Worker {
            return self.wake_for(class);
        }
        let tenant = unit.run.tenant;
        let line = self.sandboxed.entry(tenant.clone()).or_default();
        if line.is_empty() && !self.turns.contains(&tenant) {
            self.turns.push_back(tenant);
        }
        line.insert(place, class);
    }

    /// Takes a unit out of its window and out of the sandbox's line.
    pub(super) fn take_ready(&mut self, class: usize, unit: &UnitRef) -> Option<Arc<Ready>> {
        let (place, ready) = self.classes[class].window.remove(unit)?;
        self.low |= self.classes[class].window.wants_refill();
        if let Some(line) = self.sandboxed.get_mut(&unit.run.tenant) {
            line.remove(&place);
        }
        Some(ready)
    }

    pub(super) fn forget_out(&mut self, unit: &UnitRef) -> Option<Held> {
        let held = self.out.remove(unit)?;
        self.classes[held.class].window.departs(unit);
        if let Holder::Session(session, _) = &held.holder
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.held.remove(unit);
        }
        Some(held)
    }

    /// A unit that is not out is not ready any more: it leaves its window, or the count of its class.
    pub(super) fn drop_ready(&mut self, unit: &UnitRef) {
        self.queued_until.remove(unit);
        for class in 0..self.classes.len() {
            if self.classes[class].name.tenant == unit.run.tenant && self.take_ready(class, unit).is_some() {
                return;
            }
        }
        // It was only a row; which class it counted for is not known, and the next complete refill corrects the count.
    }
}
