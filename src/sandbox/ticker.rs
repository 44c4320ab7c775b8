//! The ticker: one OS thread that moves the engine's epoch while guests run, and ends attempts whose time is up.
//!
//! It is a thread and not a task, so that no guest can starve the clock that stops it. It sleeps when there is nothing
//! to do: until the next deadline when attempts only wait, for ever when there are none.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use wasmtime::Engine;

use crate::model::Millis;

use super::control::{Control, Stop};

/// How many ticks without a guest pass before the ticker sleeps: calls in quick succession do not wake it each time.
const LINGER_TICKS: u32 = 25;

/// The longest wall limit; a longer one is cut to it, since instants end somewhere.
const WALL_MAX: Duration = Duration::from_secs(10 * 366 * 86_400);

/// The ticker, shared by its thread, the guest threads and the calls.
pub(super) struct Ticker {
    engine: Engine,
    period: Duration,
    /// Guest threads that are not asleep.
    busy: AtomicUsize,
    asleep: AtomicBool,
    ticks: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    deadlines: BTreeMap<Deadline, Arc<Control>>,
    last_id: u64,
}

type Deadline = (Instant, u64);

impl Ticker {
    /// Starts the thread.
    pub(super) fn start(engine: Engine, period: Millis) -> io::Result<Arc<Self>> {
        let ticker = Arc::new(Self {
            engine,
            period: Duration::from(period).max(Duration::from_millis(1)),
            busy: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            ticks: AtomicU64::new(0),
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let running = Arc::clone(&ticker);
        thread::Builder::new().name("sandbox-tick".to_owned()).spawn(move || running.run())?;
        Ok(ticker)
    }

    /// Notes that a guest thread has work.
    pub(super) fn enter(&self) {
        // In one order with the ticker's store to `asleep` and load of `busy`: either it sees the thread, or the
        // thread sees it asleep.
        self.busy.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            drop(self.lock());
            self.wake.notify_one();
        }
    }

    /// Notes that a guest thread has no work.
    pub(super) fn leave(&self) {
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }

    /// Stops the attempt of `control` with [`Stop::TimedOut`] once `wall` has passed, or when the sandbox closes, until
    /// the returned value is dropped.
    pub(super) fn watch(self: &Arc<Self>, control: &Arc<Control>, wall: Millis) -> Watched {
        let due = Instant::now() + Duration::from(wall).min(WALL_MAX);
        let mut state = self.lock();
        state.last_id += 1;
        let deadline = (due, state.last_id);
        state.deadlines.insert(deadline, Arc::clone(control));
        let closed = state.closed;
        drop(state);
        // No need to wake the ticker: a guest thread takes up the attempt and thereby does, and before the ticker
        // sleeps again it looks for the next deadline.
        if closed {
            control.stop(Stop::Closed);
        }
        Watched { ticker: Arc::clone(self), deadline }
    }

    /// Waits until the ticker has ticked, at most `patience`; returns whether it did.
    pub(super) fn ticks_within(&self, patience: Duration) -> bool {
        let before = self.ticks.load(Ordering::SeqCst);
        let give_up = Instant::now() + patience;
        self.enter();
        let mut ticked = false;
        while !ticked && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(1));
            ticked = self.ticks.load(Ordering::SeqCst) != before;
        }
        self.leave();
        ticked
    }

    /// Stops every attempt with [`Stop::Closed`], and the thread.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let all: Vec<_> = state.deadlines.values().cloned().collect();
        drop(state);
        self.wake.notify_one();
        for control in all {
            control.stop(Stop::Closed);
        }
        // Running guests look up only when the epoch moves, and the thread may be gone before they do.
        self.engine.increment_epoch();
    }

    fn run(&self) {
        let mut idle_ticks = 0;
        let mut state = self.lock();
        while !state.closed {
            state = self.pause(state, &mut idle_ticks);
            self.ticks.fetch_add(1, Ordering::SeqCst);
            self.engine.increment_epoch();
            let due = take_due(&mut state.deadlines, Instant::now());
            if !due.is_empty() {
                // Waking an attempt takes the lock of the queue; never hold two locks.
                drop(state);
                for control in due {
                    control.stop(Stop::TimedOut);
                }
                state = self.lock();
            }
        }
    }

    /// Waits a tick while guests run or did a moment ago, else for the next deadline or a guest.
    fn pause<'a>(&self, state: MutexGuard<'a, State>, idle_ticks: &mut u32) -> MutexGuard<'a, State> {
        *idle_ticks = if self.busy.load(Ordering::SeqCst) > 0 { 0 } else { *idle_ticks + 1 };
        if *idle_ticks < LINGER_TICKS {
            return self.wait(state, Some(self.period));
        }
        self.asleep.store(true, Ordering::SeqCst);
        let mut state = state;
        if self.busy.load(Ordering::SeqCst) == 0 {
            let next =
                state.deadlines.first_key_value().map(|((due, _), _)| due.saturating_duration_since(Instant::now()));
            state = self.wait(state, next);
        }
        self.asleep.store(false, Ordering::SeqCst);
        *idle_ticks = 0;
        state
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, span: Option<Duration>) -> MutexGuard<'a, State> {
        match span {
            Some(span) => self.wake.wait_timeout(state, span).unwrap_or_else(PoisonError::into_inner).0,
            None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what is due by `now` out of `deadlines`.
fn take_due(deadlines: &mut BTreeMap<Deadline, Arc<Control>>, now: Instant) -> Vec<Arc<Control>> {
    let mut due = Vec::new();
    while let Some(first) = deadlines.first_entry() {
        if first.key().0 > now {
            break;
        }
        due.push(first.remove());
    }
    due
}

/// An attempt that the ticker watches; dropping this ends it.
pub(super) struct Watched {
    ticker: Arc<Ticker>,
    deadline: Deadline,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ticker.lock().deadlines.remove(&self.deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticker() -> Arc<Ticker> {
        Ticker::start(Engine::default(), Millis(1)).unwrap()
    }

    #[test]
    fn a_deadline_passes_also_where_no_guest_runs() {
        let ticker = ticker();
        let control = Arc::new(Control::default());
        let watched = ticker.watch(&control, Millis(5));
        while control.stopped().is_none() {
            thread::yield_now();
        }
        assert_eq!(control.stopped(), Some(Stop::TimedOut));
        drop(watched);
        assert!(ticker.lock().deadlines.is_empty());
        ticker.close();
    }

    #[test]
    fn what_is_no_longer_watched_is_not_stopped() {
        let ticker = ticker();
        let control = Arc::new(Control::default());
        drop(ticker.watch(&control, Millis(0)));
        ticker.close();
        assert!(matches!(control.stopped(), None | Some(Stop::TimedOut)));
        let late = Arc::new(Control::default());
        let _watched = ticker.watch(&late, Millis(u64::MAX));
        assert_eq!(late.stopped(), Some(Stop::Closed));
    }

    #[test]
    fn a_ticker_that_slept_ticks_again_for_a_guest() {
        let ticker = ticker();
        while !ticker.asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        assert!(ticker.ticks_within(Duration::from_secs(10)));
        ticker.close();
        drop(ticker);
    }
}
