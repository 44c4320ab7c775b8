//! The timer wheel: what is due within ten minutes, bounded, refilled by index. The rows are the truth: what the wheel
//! forgets is found again by the next refill.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Inner, counters::count};
use crate::{
    engine::Command,
    model::{
        Millis, RunKey, Timestamp,
        row::{TimerKey, TimerRow},
    },
};

/// How far ahead the wheel looks.
const HORIZON: Millis = Millis(600_000);
/// The most timers in the wheel.
const WHEEL_MAX: usize = 100_000;
/// How many timers one refill reads.
const REFILL: usize = 10_000;
/// The most fired timers that wait for their commit.
const FIRED_MAX: usize = 4_096;
/// How long the wheel waits after the store failed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

type Name = (RunKey, TimerKey);

#[derive(Default)]
struct Wheel {
    due: BTreeSet<(Timestamp, Name)>,
    by_name: HashMap<Name, Timestamp>,
    /// Rows due up to here are in the wheel.
    loaded_until: Timestamp,
    /// What is armed up to here goes into the wheel: raised before a refill reads, so that a timer that commits meanwhile
    /// is not passed over.
    accepts_until: Timestamp,
}

impl Wheel {
    fn insert(&mut self, name: Name, due: Timestamp) {
        self.remove(&name);
        self.by_name.insert(name.clone(), due);
        self.due.insert((due, name));
    }

    fn remove(&mut self, name: &Name) {
        if let Some(due) = self.by_name.remove(name) {
            self.due.remove(&(due, name.clone()));
        }
    }

    /// Past the bound the latest go, and the wheel looks less far ahead.
    fn shrink(&mut self) {
        while self.due.len() > WHEEL_MAX {
            let Some((due, name)) = self.due.pop_last() else { return };
            self.by_name.remove(&name);
            self.loaded_until = self.loaded_until.min(Timestamp(due.0 - 1));
            self.accepts_until = self.loaded_until;
        }
    }
}

/// Armed timers that are due soon.
#[derive(Default)]
pub(super) struct Timers {
    wheel: Mutex<Wheel>,
    changed: Notify,
}

impl Timers {
    fn lock(&self) -> std::sync::MutexGuard<'_, Wheel> {
        self.wheel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms a timer whose row is committed.
    pub(super) fn arm(&self, run: &RunKey, timer: &TimerKey, due: Timestamp) {
        let mut wheel = self.lock();
        if due > wheel.accepts_until {
            return;
        }
        let first = wheel.due.first().is_none_or(|(first, _)| due < *first);
        wheel.insert((run.clone(), timer.clone()), due);
        wheel.shrink();
        drop(wheel);
        if first {
            self.changed.notify_one();
        }
    }

    /// Disarms a timer whose row is gone.
    pub(super) fn disarm(&self, run: &RunKey, timer: &TimerKey) {
        self.lock().remove(&(run.clone(), timer.clone()));
    }

    /// Forgets the timers that a terminal run touched last; any other fires into nothing.
    pub(super) fn forget(&self, run: &RunKey, timers: &std::collections::BTreeMap<TimerKey, Option<Timestamp>>) {
        if timers.is_empty() {
            return;
        }
        let mut wheel = self.lock();
        for timer in timers.keys() {
            wheel.remove(&(run.clone(), timer.clone()));
        }
    }

    /// There may be rows of which the wheel was not told: all that are due soon are read again.
    pub(super) fn read_again(&self) {
        self.lock().loaded_until = Timestamp(i64::MIN);
        self.changed.notify_one();
    }

    /// How many timers the wheel holds.
    pub(super) fn len(&self) -> usize {
        self.lock().due.len()
    }

    fn take_due(&self, now: Timestamp) -> Vec<Name> {
        let mut wheel = self.lock();
        let mut taken = Vec::new();
        while taken.len() < FIRED_MAX {
            match wheel.due.first() {
                Some((due, _)) if *due <= now => {}
                _ => break,
            }
            let Some((_, name)) = wheel.due.pop_first() else { break };
            wheel.by_name.remove(&name);
            taken.push(name);
        }
        taken
    }

    /// When to look again: the first timer, or the time to refill.
    fn next_look(&self) -> Timestamp {
        let wheel = self.lock();
        let refill = Timestamp(wheel.loaded_until.0.saturating_sub(i64::try_from(HORIZON.0 / 10).unwrap_or(0)));
        wheel.due.first().map_or(refill, |(due, _)| (*due).min(refill))
    }

    fn needs_refill(&self, now: Timestamp) -> bool {
        let wheel = self.lock();
        Timestamp(wheel.loaded_until.0.saturating_sub(i64::try_from(HORIZON.0 / 10).unwrap_or(0))) <= now
    }

    fn refilled(&self, rows: Vec<TimerRow>, until: Timestamp) {
        let mut wheel = self.lock();
        let complete = rows.len() < REFILL;
        let last = rows.last().map(|row| row.due_at);
        for row in rows {
            wheel.insert((row.run, row.timer), row.due_at);
        }
        // Rows of the last instant may be missing from a full page.
        wheel.loaded_until = match last {
            Some(last) if !complete => Timestamp(last.0 - 1).max(wheel.loaded_until),
            _ => until,
        };
        wheel.accepts_until = wheel.loaded_until;
        wheel.shrink();
    }
}

/// Fires timers until the server stops.
pub(super) async fn run(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        let now = app.clock.now();
        if app.timers.needs_refill(now) {
            let until = now.after(HORIZON);
            app.timers.lock().accepts_until = until;
            match app.store.timers_until(until, REFILL).await {
                Ok(rows) => app.timers.refilled(rows, until),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "timers cannot be read; trying again");
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            }
        }
        fire(&app, now).await;
        let next = app.timers.next_look();
        tokio::select! {
            () = app.clock.sleep_until(next) => {}
            () = app.timers.changed.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Fires what is due, and waits for the commits, so that a burst is bounded.
async fn fire(app: &Arc<Inner>, now: Timestamp) {
    let due = app.timers.take_due(now);
    let asks = due.into_iter().map(|(run, timer)| async move {
        count(&app.counters.timers_fired);
        let command = Command::TimerDue(timer.clone());
        let answer = app.ask(run.execution_key(), Some(run.run), command, None, Vec::new()).await;
        // A timer whose commit failed is tried again; nothing in memory marks it as handled.
        if answer.is_err_and(|error| error.is_transient()) {
            app.timers.arm(&run, &timer, app.clock.now().after(Millis(1_000)));
        }
    });
    futures_util::future::join_all(asks).await;
}
