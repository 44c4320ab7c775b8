//! What follows from a command: events, and effects as data.

use crate::model::{
    Event, Payload, Timestamp, UnitKey,
    row::{KeyRow, ReadyRow, TimerKey, TimerRow},
};

/// What follows from a command.
#[derive(Debug)]
#[must_use = "a decision that is not carried out is lost"]
pub struct Decision {
    /// The events, which are already part of the state.
    pub events: Vec<Event>,
    /// The time of all of them.
    pub at: Timestamp,
    /// What is to be done once they are committed; the rows among them are part of the commit.
    pub effects: Vec<Effect>,
    /// What the one who asked is told.
    pub answer: Answer,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A unit is ready, with its input: its row is put, and it is offered to consumers.
    Ready(Box<ReadyRow>, Payload),
    /// The attempt of a unit is decided: its row goes, and whoever holds it is told to stop.
    Withdraw(UnitKey),
    /// A unit must stop: taken back where it is still queued (command `Stopped`), else its holder is told.
    Stop(UnitKey, u32),
    /// A timer is armed.
    Arm(TimerRow),
    /// A timer is disarmed.
    Disarm(TimerKey),
    /// An answer is kept for an `Idempotency-Key`.
    Keep(KeyRow),
    /// The turn reached its bound: command `Continue` follows.
    Continue,
    /// The result, evaluated at this time, is to be checked against the document's `output` schema: command `Checked`
    /// follows.
    Check(Timestamp, Payload),
}

/// What the one who asked is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// A start; whether the execution is new.
    Started {
        /// Whether the execution is new.
        created: bool,
    },
    /// A report; whether it counts.
    Reported {
        /// Whether it counts; if not, it is stale.
        accepted: bool,
    },
    /// A repin; whether a pin moved.
    Repinned {
        /// Whether a pin moved; if not, it was there already.
        moved: bool,
    },
    /// A signal was taken in.
    Signalled {
        /// The seq of its event.
        seq: u64,
    },
}
