//! The dispatcher's state and its one routine for taking.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{
    session::Session,
    window::{Place, Ready, WINDOW_MAX, Window},
};
use crate::{
    model::{
        DeliveryId, Payload, QueueName, SessionId, TaskName, TenantId, Timestamp, WorkerId,
        execution::Target,
        id::UnitRef,
        row::{Note, ReadyRow},
    },
    sandbox::{Cancel, Progress},
    store::{ReadyClass, ReadyItem, ReadyOrder, ReadyPage},
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
    class: usize,
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

/// A class of ready units.
struct Class {
    name: ReadyClass,
    window: Window,
}

/// A poll that waits for work.
struct Parked {
    session: SessionId,
    wake: oneshot::Sender<()>,
}

type Work = (TenantId, QueueName, TaskName);

#[derive(Default)]
struct State {
    classes: Vec<Class>,
    by_name: HashMap<ReadyClass, usize>,
    by_work: HashMap<Work, Vec<usize>>,
    /// Units for the sandbox by tenant, over all classes, in order.
    sandboxed: HashMap<TenantId, BTreeMap<Place, usize>>,
    /// Whose turn it is at the sandbox.
    turns: VecDeque<TenantId>,
    out: HashMap<UnitRef, Held>,
    sessions: HashMap<SessionId, Session>,
    parked: BTreeMap<u64, Parked>,
    parked_by_work: HashMap<Work, BTreeSet<u64>>,
    next_parked: u64,
    next_number: u64,
    free_slots: Vec<usize>,
    /// Sandboxed deliveries of units that carry a loss: at most one, so that losses gather on the one that causes them.
    suspect: Option<UnitRef>,
    /// Results of the sandbox that are not committed yet.
    reporting: usize,
    reporting_max: usize,
    /// Whether a window became low since somebody asked.
    low: bool,
    closed: bool,
}

impl Dispatcher {
    /// `slots`: how many instances the sandbox runs at once. Nothing is handed out before [`Dispatcher::open`].
    pub(in crate::app) fn new(slots: usize) -> Self {
        let free_slots = (0..slots).rev().collect();
        let state = State { free_slots, reporting_max: slots * 4 + 256, closed: true, ..State::default() };
        Self(Mutex::new(state))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
        if let Some(held) = state.forget_out(unit) {
            if let Holder::Sandbox(cancel, _) = &held.holder {
                cancel.cancel();
            }
            state.wake_for_room(&held);
            return;
        }
        state.drop_ready(unit);
    }

    /// A unit must stop; returns whether it was still queued, and so is taken back.
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
                true
            }
        }
    }

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

    /// Takes the next unit for the sandbox, where it has room.
    pub(in crate::app) fn take_for_sandbox(&self, now: Timestamp) -> Option<Taken> {
        let mut state = self.lock();
        if state.closed || state.free_slots.is_empty() || state.reporting >= state.reporting_max {
            return None;
        }
        let (class, unit) = state.next_sandboxed()?;
        let ready = state.take_ready(class, &unit)?;
        let slot = state.free_slots.pop()?;
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

    /// The sandbox is done with a delivery; its result is not reported yet.
    pub(in crate::app) fn free_slot(&self, taken: &Taken) {
        let mut state = self.lock();
        state.free_slots.push(taken.slot);
        if state.suspect.as_ref() == Some(&taken.ready.row.unit) {
            state.suspect = None;
        }
    }

    /// The result of a sandboxed delivery is committed, or given up.
    pub(in crate::app) fn reported(&self) {
        let mut state = self.lock();
        state.reporting = state.reporting.saturating_sub(1);
    }

    /// Gives a delivery back: ready again, no attempt spent.
    pub(in crate::app) fn give_back(&self, unit: &UnitRef, delivery: DeliveryId) -> bool {
        let mut state = self.lock();
        if state.out.get(unit).is_none_or(|held| held.delivery != delivery) {
            return false;
        }
        let Some(held) = state.forget_out(unit) else { return false };
        let row = ReadyRow { redelivery: true, ..held.ready.row.clone() };
        state.admit(held.class, Arc::new(Ready { row, input: held.ready.input.clone() }), true);
        true
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

    /// Takes a unit as a consumer would, to end its time in the queue; false: it is out already.
    pub(in crate::app) fn take_for_queue_end(&self, row: &ReadyRow) -> bool {
        let mut state = self.lock();
        if state.out.contains_key(&row.unit) {
            return false;
        }
        state.drop_ready(&row.unit);
        true
    }

    // Sessions.

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

    // Windows.

    /// Sets how many rows of a class there are, at start.
    pub(in crate::app) fn set_stored(&self, name: &ReadyClass, count: u64) {
        let mut state = self.lock();
        let class = state.class(name);
        state.classes[class].window.stored = count;
    }

    /// Whether a window became low since this was asked last.
    pub(in crate::app) fn became_low(&self) -> bool {
        std::mem::take(&mut self.lock().low)
    }

    /// Returns the classes whose window is low while rows are stored and somebody can take them, with how many rows to
    /// read: those that are out are still rows.
    pub(in crate::app) fn refills(&self) -> Vec<(ReadyClass, usize)> {
        let mut state = self.lock();
        let wanted: Vec<usize> = (0..state.classes.len())
            .filter(|class| state.classes[*class].window.wants_refill() && state.is_served(*class))
            .collect();
        let mut refills = Vec::new();
        for class in wanted {
            let out = state.out.values().filter(|held| held.class == class).count();
            let found = &mut state.classes[class];
            found.window.refill_begins();
            refills.push((found.name.clone(), WINDOW_MAX + out));
        }
        refills
    }

    /// Takes in what a refill read; `limit` as it was asked with.
    pub(in crate::app) fn refilled(&self, name: &ReadyClass, pages: Vec<(ReadyOrder, ReadyPage)>, limit: usize) {
        let mut state = self.lock();
        let class = state.class(name);
        let (left, arrived) = state.classes[class].window.refill_ends();
        let mut complete = true;
        for (_, page) in pages {
            complete &= page.items.len() + page.unreadable.len() < limit;
            for item in page.items {
                let unit = &item.row.unit;
                let window = &state.classes[class].window;
                let full = window.len() >= WINDOW_MAX;
                if full || left.contains(unit) || window.contains(unit) || state.out.contains_key(unit) {
                    complete &= !full;
                    continue;
                }
                let window = &mut state.classes[class].window;
                window.stored = window.stored.saturating_sub(1);
                state.admit(class, Arc::new(Ready { row: item.row, input: item.input }), false);
            }
        }
        if complete {
            state.classes[class].window.stored = arrived;
        }
    }

    /// A refill could not read.
    pub(in crate::app) fn refill_failed(&self, name: &ReadyClass) {
        let mut state = self.lock();
        let class = state.class(name);
        state.classes[class].window.refill_ends();
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

    /// Ready units in windows and rows beyond them.
    pub(in crate::app) fn ready_count(&self) -> u64 {
        let state = self.lock();
        state.classes.iter().map(|class| class.window.stored + u64::try_from(class.window.len()).unwrap_or(0)).sum()
    }
}

/// Every line that a session takes from.
fn works_of(session: &Session) -> Vec<Work> {
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

impl State {
    fn class(&mut self, name: &ReadyClass) -> usize {
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
    fn is_served(&self, class: usize) -> bool {
        let name = &self.classes[class].name;
        name.target == Target::Module || self.sessions.values().any(|session| can_take(session, name))
    }

    /// Puts a unit into its window, or only counts it, and wakes one consumer that can take it.
    fn admit(&mut self, class: usize, ready: Arc<Ready>, fresh: bool) {
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
    fn take_ready(&mut self, class: usize, unit: &UnitRef) -> Option<Arc<Ready>> {
        let (place, ready) = self.classes[class].window.remove(unit)?;
        self.low |= self.classes[class].window.wants_refill();
        if let Some(line) = self.sandboxed.get_mut(&unit.run.tenant) {
            line.remove(&place);
        }
        Some(ready)
    }

    /// The unit that a session should take: of all classes that it can take from, the one that stands first.
    fn best_for(&self, session: &SessionId) -> Option<(usize, UnitRef)> {
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

    /// The unit that the sandbox should take: of the tenant whose turn it is, the one that stands first. A unit that
    /// carries a loss waits while another such unit is in hand.
    fn next_sandboxed(&mut self) -> Option<(usize, UnitRef)> {
        let suspect_out = self.suspect.is_some();
        for _ in 0..self.turns.len() {
            let tenant = self.turns.pop_front()?;
            let Some(line) = self.sandboxed.get(&tenant) else { continue };
            if line.is_empty() {
                self.sandboxed.remove(&tenant);
                continue;
            }
            let allowed = |(place, class): (&Place, &usize)| {
                let ready = self.classes[*class].window.at(*place)?;
                (ready.row.losses == 0 || !suspect_out).then(|| (*class, ready.row.unit.clone()))
            };
            let found = line.iter().find_map(allowed);
            self.turns.push_back(tenant);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn hand_out(&mut self, class: usize, ready: Arc<Ready>, holder: Holder, now: Timestamp, slot: usize) -> Taken {
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
        self.out.insert(ready.row.unit.clone(), held);
        Taken { ready, delivery, handed_at: now, deadline, slot, cancel: Cancel::new(), progress: Progress::default() }
    }

    fn forget_out(&mut self, unit: &UnitRef) -> Option<Held> {
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
    fn drop_ready(&mut self, unit: &UnitRef) {
        for class in 0..self.classes.len() {
            if self.classes[class].name.tenant == unit.run.tenant && self.take_ready(class, unit).is_some() {
                return;
            }
        }
        // It was only a row; which class it counted for is not known, and the next complete refill corrects the count.
    }

    /// Wakes one parked poll that can take from a class.
    fn wake_for(&mut self, class: usize) {
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

    fn wake(&mut self, id: u64) {
        let Some(parked) = self.parked.remove(&id) else { return };
        let works = self.sessions.get(&parked.session).map(works_of).unwrap_or_default();
        for work in works {
            self.leave_line(&work, id);
        }
        // The poll may have gone in this instant; its guard passes the wake on.
        let _ = parked.wake.send(());
    }

    fn leave_line(&mut self, work: &Work, id: u64) {
        if let Some(line) = self.parked_by_work.get_mut(work) {
            line.remove(&id);
            if line.is_empty() {
                self.parked_by_work.remove(work);
            }
        }
    }

    fn unpark(&mut self, id: u64, session: &Session) {
        self.parked.remove(&id);
        for work in works_of(session) {
            self.leave_line(&work, id);
        }
    }

    /// A holder has room again: one of its parked polls is woken where there is work for it.
    fn wake_for_room(&mut self, held: &Held) {
        if let Holder::Session(session, _) = &held.holder {
            let session = session.clone();
            self.wake_session_work(&session);
        }
    }

    /// Wakes a poll for what a session could take: one of its own, else one of another.
    fn wake_session_work(&mut self, session: &SessionId) {
        let Some((class, _)) = self.best_for(session) else { return };
        self.wake_for(class);
    }

    /// Classes that nobody can take from any more are only counted.
    fn spill_unserved(&mut self, gone: &Session) {
        for work in works_of(gone) {
            for class in self.by_work.get(&work).cloned().unwrap_or_default() {
                if !self.is_served(class) {
                    self.classes[class].window.spill();
                }
            }
        }
    }
}

fn can_take(session: &Session, class: &ReadyClass) -> bool {
    session.tenant == class.tenant
        && session.queues.contains(&class.queue)
        && session.serves(&class.task, class.contract.as_ref())
        && session.has_node(class.node.as_ref())
}
