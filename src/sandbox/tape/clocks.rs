//! Clocks that say what the tape says.

use std::{
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::{NUMBER_BYTES, Playing, Recording, Tape, locked};

/// Which clock.
#[derive(Clone, Copy)]
enum Which {
    Wall,
    Monotonic,
}

impl Which {
    fn kept(self, recording: &Recording) -> &Vec<u64> {
        match self {
            Self::Wall => &recording.wall_ns,
            Self::Monotonic => &recording.monotonic_ns,
        }
    }

    fn keep(self, recording: &mut Recording, now: u64) {
        match self {
            Self::Wall => recording.wall_ns.push(now),
            Self::Monotonic => recording.monotonic_ns.push(now),
        }
    }

    fn turn(self, playing: &mut Playing) -> &mut usize {
        match self {
            Self::Wall => &mut playing.wall,
            Self::Monotonic => &mut playing.monotonic,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wall => "time",
            Self::Monotonic => "monotonic time",
        }
    }
}

/// A clock of the world that goes through a tape.
struct Taped {
    tape: Tape,
    which: Which,
    began: Instant,
    /// What it said last, and what the world's clock said then.
    last: Mutex<Option<(u64, u64)>>,
}

impl Taped {
    fn new(tape: &Tape, which: Which) -> Self {
        Self { tape: tape.clone(), which, began: Instant::now(), last: Mutex::new(None) }
    }

    fn world(&self) -> u64 {
        let now = match self.which {
            Which::Wall => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            Which::Monotonic => self.began.elapsed(),
        };
        // Nanoseconds of more than five centuries do not occur.
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        let world = self.world();
        match &self.tape {
            Tape::Live | Tape::Stubbed(_) => world,
            Tape::Kept(keeping) => {
                let mut keeping = locked(keeping);
                if keeping.spend(NUMBER_BYTES) {
                    self.which.keep(&mut keeping.recording, world);
                }
                world
            }
            Tape::Replayed(playing) => self.replayed(&mut locked(playing), world),
        }
    }

    /// What the recording says; behind its end the clock goes on from there.
    fn replayed(&self, playing: &mut Playing, world: u64) -> u64 {
        let at = *self.which.turn(playing);
        *self.which.turn(playing) += 1;
        let mut last = locked(&self.last);
        let said = match self.which.kept(&playing.recording).get(at) {
            Some(said) => *said,
            None => {
                playing.beyond(format!("{} {}", self.which.name(), at + 1));
                last.map_or(world, |(said, then)| said.saturating_add(world.saturating_sub(then)))
            }
        };
        *last = Some((said, world));
        said
    }
}

impl HostWallClock for Taped {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(Self::now(self))
    }
}

impl HostMonotonicClock for Taped {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        Self::now(self)
    }
}

impl Tape {
    /// Has the clocks of a context go through the tape, where there is one.
    pub(in super::super) fn set_clocks(&self, builder: &mut WasiCtxBuilder) {
        if matches!(self, Self::Kept(_) | Self::Replayed(_)) {
            builder.wall_clock(Taped::new(self, Which::Wall));
            builder.monotonic_clock(Taped::new(self, Which::Monotonic));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::Answers, *};

    #[test]
    fn a_replayed_clock_says_what_it_said_and_goes_on_from_there() {
        let tape = Tape::new(Answers::Kept);
        let clock = Taped::new(&tape, Which::Wall);
        let said: Vec<u64> = (0..3).map(|_| clock.now()).collect();
        let (recording, _) = tape.end();
        let tape = Tape::new(Answers::Replayed(Arc::new(recording.unwrap())));
        let clock = Taped::new(&tape, Which::Wall);
        assert_eq!((0..3).map(|_| clock.now()).collect::<Vec<_>>(), said);
        let beyond = clock.now();
        assert!(beyond >= said[2] && beyond < said[2] + 60_000_000_000);
        assert_eq!(tape.end().1.unwrap(), "time 4 is not in the recording");
    }
}
