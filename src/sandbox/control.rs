//! One attempt as seen from outside: why it must stop, whom to wake, and how much processor time it has spent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::Waker,
};

use futures_util::task::AtomicWaker;
use rustix::time::{ClockId, clock_gettime};

/// Why an attempt must stop. The first reason stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stop {
    /// Nobody wants it any more.
    Cancelled = 1,
    /// It took longer than it may.
    TimedOut = 2,
    /// It spent its processor time.
    CpuSpent = 3,
    /// The sandbox is shut down.
    Closed = 4,
}

/// Stops an attempt: made for one attempt, cheap to clone. A running guest is interrupted within a tick.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Control>);

impl Cancel {
    /// Makes one for an attempt to come.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the attempt with `CANCELLED`, unless it has ended or must stop for another reason.
    pub fn cancel(&self) {
        self.0.stop(Stop::Cancelled);
    }

    /// Returns whether the attempt was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.stopped() == Some(Stop::Cancelled)
    }

    pub(super) fn control(&self) -> &Arc<Control> {
        &self.0
    }
}

/// What the ticker, the guest thread and the caller share of an attempt.
#[derive(Debug, Default)]
pub(super) struct Control {
    stop: AtomicU8,
    waker: AtomicWaker,
    pub(super) meter: Meter,
}

impl Control {
    /// Asks the attempt to stop and wakes it, so that it does also where it waits for the host.
    pub(super) fn stop(&self, reason: Stop) {
        if self.stop.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.waker.wake();
        }
    }

    /// Returns why the attempt must stop.
    pub(super) fn stopped(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::TimedOut),
            3 => Some(Stop::CpuSpent),
            4 => Some(Stop::Closed),
            _ => None,
        }
    }

    /// Has `waker` woken when the attempt must stop. To be called before [`Control::stopped`] is looked at.
    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// Processor time of a guest: the clock of the thread that runs it, summed over its turns. Time that it waits for its
/// turn is not in it, so a busy neighbour does not spend anybody's budget.
///
/// Only the thread that has the turn writes; relaxed orderings do, since a turn is handed over through a lock.
#[derive(Debug, Default)]
pub(super) struct Meter {
    spent_ns: AtomicU64,
    began_ns: AtomicU64,
}

impl Meter {
    /// Notes that a turn begins on this thread.
    pub(super) fn begin(&self) {
        self.began_ns.store(thread_cpu_ns(), Ordering::Relaxed);
    }

    /// Notes that the turn ends.
    pub(super) fn end(&self) {
        self.spent_ns.store(self.spent_in_turn_ns(), Ordering::Relaxed);
    }

    /// Returns the time spent between turns, in nanoseconds.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns.load(Ordering::Relaxed)
    }

    /// Returns the time spent with the turn that this thread has, in nanoseconds.
    pub(super) fn spent_in_turn_ns(&self) -> u64 {
        self.spent_ns() + thread_cpu_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed))
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock begins with the thread and is never negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_to_stop_stays() {
        let cancel = Cancel::new();
        assert_eq!(cancel.control().stopped(), None);
        cancel.control().stop(Stop::TimedOut);
        cancel.cancel();
        assert_eq!(cancel.control().stopped(), Some(Stop::TimedOut));
        assert!(!cancel.is_cancelled());
    }

    #[test]
    fn every_reason_reads_back() {
        for reason in [Stop::Cancelled, Stop::TimedOut, Stop::CpuSpent, Stop::Closed] {
            let control = Control::default();
            control.stop(reason);
            assert_eq!(control.stopped(), Some(reason));
        }
    }

    #[test]
    fn only_turns_are_metered() {
        let meter = Meter::default();
        let burn = || (0..2_000_000u64).map(std::hint::black_box).sum::<u64>();
        burn();
        assert_eq!(meter.spent_ns(), 0);
        meter.begin();
        burn();
        meter.end();
        let spent = meter.spent_ns();
        assert!(spent > 0);
        burn();
        assert_eq!(meter.spent_ns(), spent);
    }
}
