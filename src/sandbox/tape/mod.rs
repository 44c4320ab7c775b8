//! The tape of an attempt: where the host's answers come from that differ from try to try.
//!
//! - [`Answers`]: which tape an attempt is served with
//! - [`Recording`]: what is on it: the seed of randomness, what the clocks said, which waits ended, what came over HTTP
//! - `Tape`: asked wherever the host gives such an answer
//!
//! The same module with the same input, settings and answers comes to the same end: everything else that a guest can see
//! is the same each time. A replay gives answers back in order, those over HTTP by method and address; what a recording
//! does not hold it says, and nothing of it leaves the machine.

mod clocks;
mod http;
mod recording;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use recording::{Answered, Broken, End, Exchange, Part, Recording, Response, Seed};

pub(super) use http::{Played, answer, keep};

/// How much of an attempt's answers is kept, in bytes of JSON, about.
pub const RECORDING_BYTES_MAX: usize = 1024 * 1024;
/// What a number takes, about.
const NUMBER_BYTES: usize = 20;

/// Where the host's answers come from.
#[derive(Clone, Debug, Default)]
pub enum Answers {
    /// From the world.
    #[default]
    Live,
    /// From the world, and kept as [`Finished::recording`](super::Finished::recording).
    Kept,
    /// From a recording.
    Replayed(Arc<Recording>),
    /// Over HTTP from this list, each as often as it is asked for; the rest from the world.
    Stubbed(Arc<[Exchange]>),
}

/// The tape of one attempt. Cheap to clone.
#[derive(Clone)]
pub(super) enum Tape {
    Live,
    Kept(Arc<Mutex<Keeping>>),
    Replayed(Arc<Mutex<Playing>>),
    Stubbed(Arc<Mutex<Stubs>>),
}

/// What is kept so far.
pub(super) struct Keeping {
    recording: Recording,
    bytes: usize,
    /// How often it was said that the attempt is not cancelled.
    not_cancelled: u64,
}

/// How far a recording was given back.
pub(super) struct Playing {
    recording: Arc<Recording>,
    wall: usize,
    monotonic: usize,
    ready: usize,
    asked_cancelled: u64,
    /// Of each exchange, whether it was given back.
    given: Vec<bool>,
    unrecorded: Option<String>,
}

pub(super) struct Stubs {
    list: Arc<[Exchange]>,
    unrecorded: Option<String>,
}

impl Keeping {
    /// Notes that so many bytes more are kept, where there is room for them; after the first that has none nothing is.
    fn spend(&mut self, bytes: usize) -> bool {
        let room = self.recording.complete && self.bytes + bytes <= RECORDING_BYTES_MAX;
        if room {
            self.bytes += bytes;
        } else {
            self.recording.complete = false;
        }
        room
    }
}

impl Playing {
    fn beyond(&mut self, what: impl Into<String>) {
        let cut = if self.recording.complete { "" } else { ", which was cut at its size limit" };
        self.unrecorded.get_or_insert_with(|| format!("{} is not in the recording{cut}", what.into()));
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// Begins the tape of an attempt.
    pub(super) fn new(answers: Answers) -> Self {
        match answers {
            Answers::Live => Self::Live,
            Answers::Kept => {
                let mut seed = [0; 32];
                // Without randomness of the system nothing works; then the sandbox's own hashing has already failed.
                getrandom::fill(&mut seed).expect("the system has random bytes");
                let recording = Recording { complete: true, seed: Seed(seed), ..Recording::default() };
                Self::Kept(Arc::new(Mutex::new(Keeping { recording, bytes: 0, not_cancelled: 0 })))
            }
            Answers::Replayed(recording) => {
                let given = vec![false; recording.http.len()];
                Self::Replayed(Arc::new(Mutex::new(Playing {
                    recording,
                    wall: 0,
                    monotonic: 0,
                    ready: 0,
                    asked_cancelled: 0,
                    given,
                    unrecorded: None,
                })))
            }
            Answers::Stubbed(list) => Self::Stubbed(Arc::new(Mutex::new(Stubs { list, unrecorded: None }))),
        }
    }

    /// Returns what all random bytes of the attempt come from; none: from the system.
    pub(super) fn seed(&self) -> Option<[u8; 32]> {
        match self {
            Self::Live | Self::Stubbed(_) => None,
            Self::Kept(keeping) => Some(locked(keeping).recording.seed.0),
            Self::Replayed(playing) => Some(locked(playing).recording.seed.0),
        }
    }

    /// Returns whether the attempt is told that it is cancelled, where it is so `now`.
    pub(super) fn cancelled(&self, now: bool) -> bool {
        match self {
            Self::Live | Self::Stubbed(_) => now,
            Self::Kept(keeping) => {
                let mut keeping = locked(keeping);
                let before = keeping.not_cancelled;
                match now {
                    true => _ = keeping.recording.cancelled_after.get_or_insert(before),
                    false => keeping.not_cancelled += 1,
                }
                now
            }
            Self::Replayed(playing) => {
                let mut playing = locked(playing);
                let asked = playing.asked_cancelled;
                playing.asked_cancelled += 1;
                now || playing.recording.cancelled_after.is_some_and(|after| asked >= after)
            }
        }
    }

    /// Keeps which of the handles that an attempt waited for were ready.
    pub(super) fn keep_ready(&self, ready: &[u32]) {
        if let Self::Kept(keeping) = self {
            let mut keeping = locked(keeping);
            if keeping.spend(2 + 4 * ready.len()) {
                keeping.recording.ready.push(ready.to_vec());
            }
        }
    }

    /// Returns which of so many handles are to be ready next; none: whichever are.
    pub(super) fn next_ready(&self, handles: usize) -> Option<Vec<u32>> {
        let Self::Replayed(playing) = self else { return None };
        let mut playing = locked(playing);
        let at = playing.ready;
        playing.ready += 1;
        let ready = playing.recording.ready.get(at).cloned();
        let fits = |ready: &Vec<u32>| ready.iter().all(|index| (*index as usize) < handles);
        let ready = ready.filter(fits);
        if ready.is_none() {
            playing.beyond(format!("wait {}", at + 1));
        }
        ready
    }

    /// Ends the tape: returns what was kept, and the first thing asked for that the tape does not hold.
    pub(super) fn end(self) -> (Option<Recording>, Option<String>) {
        match self {
            Self::Live => (None, None),
            // What still reads a response keeps nothing any more: it reads a copy.
            Self::Kept(keeping) => {
                let mut keeping = locked(&keeping);
                let kept = keeping.recording.clone();
                keeping.bytes = RECORDING_BYTES_MAX;
                (Some(kept), None)
            }
            Self::Replayed(playing) => (None, locked(&playing).unrecorded.take()),
            Self::Stubbed(stubs) => (None, locked(&stubs).unrecorded.take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn kept_of(tape: Tape) -> Recording {
        tape.end().0.expect("it was kept")
    }

    #[test]
    fn a_tape_is_cut_at_its_limit_and_says_so() {
        let tape = Tape::new(Answers::Kept);
        for _ in 0..RECORDING_BYTES_MAX {
            tape.keep_ready(&[0]);
        }
        let kept = kept_of(tape);
        assert!(!kept.complete && kept.ready.len() == RECORDING_BYTES_MAX / 6, "{}", kept.ready.len());
        assert!(serde_json::to_string(&kept).unwrap().len() <= RECORDING_BYTES_MAX + 1_000);

        let replayed = Tape::new(Answers::Replayed(Arc::new(Recording { ready: vec![vec![1]], ..kept })));
        assert_eq!(replayed.next_ready(2), Some(vec![1]));
        assert_eq!(replayed.next_ready(2), None);
        let (_, unrecorded) = replayed.end();
        assert_eq!(unrecorded.unwrap(), "wait 2 is not in the recording, which was cut at its size limit");
    }

    #[test]
    fn cancelling_is_told_as_often_as_it_was() {
        let tape = Tape::new(Answers::Kept);
        let told: Vec<_> = [false, false, true, true].map(|now| tape.cancelled(now)).into();
        let replayed = Tape::new(Answers::Replayed(Arc::new(kept_of(tape))));
        assert_eq!((0..4).map(|_| replayed.cancelled(false)).collect::<Vec<_>>(), told);
    }

    #[test]
    fn a_wait_for_other_handles_is_not_the_recorded_one() {
        let recording = Recording { complete: true, ready: vec![vec![3]], ..Recording::default() };
        let replayed = Tape::new(Answers::Replayed(Arc::new(recording)));
        assert_eq!(replayed.next_ready(3), None);
        assert_eq!(replayed.end().1.unwrap(), "wait 1 is not in the recording");
    }
}
