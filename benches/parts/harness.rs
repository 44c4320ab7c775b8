//! Measures one part at a time and tells a line of each.

use std::{
    hint::black_box,
    io::Write as _,
    time::{Duration, Instant},
};

use super::Failure;

/// How long a part runs before it is measured, and how long it is measured.
const WARM: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_secs(1);

/// The most rounds of a part, which bounds what is kept of them.
const ROUNDS_MAX: usize = 1_000_000;

/// Which parts are wanted, and how.
pub struct Harness {
    /// Words, one of which the name of a part must have; none: all parts.
    words: Vec<String>,
    /// Whether parts are measured; else each runs once.
    measures: bool,
}

impl Harness {
    /// Reads the arguments that `cargo bench` passes on.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let (flags, words): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.starts_with("--"));
        if let Some(unknown) = flags.iter().find(|flag| *flag != "--bench") {
            return Err(format!("unknown flag `{unknown}`; only words that the names of parts have").into());
        }
        let harness = Self { words, measures: !flags.is_empty() };
        if harness.measures {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{:<36}{:>12}{:>12}{:>12}{:>10}", "part", "p50 us", "p99 us", "mean us", "rounds")?;
        }
        Ok(harness)
    }

    /// Returns whether a part is wanted: what it needs can be spared otherwise.
    pub fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Measures `run` on what `set_up` makes for each round. Neither making it nor dropping the result counts.
    pub fn measure<S, R>(
        &self,
        name: &str,
        mut set_up: impl FnMut() -> S,
        mut run: impl FnMut(S) -> Result<R, Failure>,
    ) -> Result<(), Failure> {
        if !self.wants(name) {
            return Ok(());
        }
        let mut round = || {
            let given = set_up();
            let began = Instant::now();
            let result = black_box(run(black_box(given))?);
            let took = began.elapsed();
            drop(result);
            Ok::<_, Failure>(took)
        };
        let in_context = |error: Failure| Failure::from(format!("{name}: {error}"));
        round().map_err(in_context)?;
        if !self.measures {
            return Ok(());
        }
        let began = Instant::now();
        while began.elapsed() < WARM {
            round().map_err(in_context)?;
        }
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < MEASURED && times.len() < ROUNDS_MAX {
            times.push(round().map_err(in_context)?);
        }
        tell(name, &mut times)
    }
}

fn tell(name: &str, times: &mut [Duration]) -> Result<(), Failure> {
    times.sort_unstable();
    let us = |time: Duration| time.as_nanos() as f64 / 1_000.0;
    let at = |share: usize| us(times[(times.len() - 1) * share / 100]);
    let mean = us(times.iter().sum()) / times.len() as f64;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{name:<36}{:>12.2}{:>12.2}{mean:>12.2}{:>10}", at(50), at(99), times.len())?;
    Ok(())
}
