//! The driver: runs a target on the kept corpus, then on fresh inputs until its time is over.
//!
//! An input is made of a seed alone, so that a seed is enough to see a failure again:
//! `SANDKEEP_FUZZ_SEED=17 cargo test TARGET`. Where the process itself ends, the seed is found in `target/fuzz/TARGET.seed`.

use std::{
    any::Any,
    fs,
    io::{Seek as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long one input may take. Far more than any needs, on a machine with much else to do.
const INPUT_TIME_MAX: Duration = Duration::from_secs(10);
/// The most inputs of one run.
const INPUTS_MAX: u64 = 1_000_000;
/// The largest input that mutation makes, in bytes.
const INPUT_BYTES_MAX: usize = 256 * 1024;

/// One target, and what its inputs are made of.
pub struct Fuzz {
    /// Its name: of its corpus, and in what is said about a failure.
    pub name: &'static str,
    /// How long fresh inputs are made.
    pub time: Duration,
    /// Good inputs that mutation begins with, beside those of the corpus.
    pub samples: Vec<Vec<u8>>,
    /// Words of the language that inputs are written in.
    pub words: &'static [&'static str],
}

impl Fuzz {
    /// Runs `target` on all inputs. It panics where a property does not hold.
    pub fn run(mut self, target: impl Fn(&[u8])) {
        let corpus = corpus(self.name);
        for (path, bytes) in &corpus {
            guard(&format!("{}: {}", self.name, path.display()), bytes, &target);
        }
        self.samples.extend(corpus.into_iter().map(|(_, bytes)| bytes));
        let given = std::env::var("SANDKEEP_FUZZ_SEED").ok();
        if let Some(seed) = given {
            let seed = seed.parse().expect("SANDKEEP_FUZZ_SEED is a number");
            return self.one(seed, &target);
        }
        let mut first = [0; 8];
        getrandom::fill(&mut first).expect("the system has random bytes");
        let first = u64::from_le_bytes(first) >> 16;
        let mut note = note(self.name);
        let end = Instant::now() + self.time;
        for seed in (first..).take(usize::try_from(INPUTS_MAX).expect("it fits")) {
            if Instant::now() >= end {
                break;
            }
            // Written over itself: of a process that ends, the last seed is left.
            note.rewind().and_then(|()| writeln!(note, "{seed:020}")).expect("the seed can be written down");
            self.one(seed, &target);
        }
    }

    fn one(&self, seed: u64, target: &impl Fn(&[u8])) {
        let input = self.input(&mut Random(seed));
        let what = format!("{}: run it again with SANDKEEP_FUZZ_SEED={seed} cargo test {}", self.name, self.name);
        guard(&what, &input, target);
    }

    /// Makes an input: random bytes, random words, or a sample that was changed in a few places.
    fn input(&self, random: &mut Random) -> Vec<u8> {
        let mut input = match random.below(8) {
            0 => random.bytes(512),
            1 | 2 if !self.words.is_empty() => {
                (0..random.below(40)).flat_map(|_| random.pick(self.words).unwrap_or(&"").bytes()).collect()
            }
            _ => random.pick(&self.samples).cloned().unwrap_or_default(),
        };
        for _ in 0..random.below(6) {
            self.change(&mut input, random);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(input.len() + 1);
        let length = random.below(64).min(input.len() - at);
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => {
                input[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'$']).unwrap_or(&0)
            }
            2 => drop(input.drain(at..at + length)),
            3 => input.truncate(at),
            4 => {
                let piece = input[at..at + length].to_vec();
                let times = 1 + random.below(50);
                input.splice(at..at, piece.repeat(times));
            }
            5 => drop(input.splice(at..at, random.bytes(16))),
            6 => {
                let other = random.pick(&self.samples).cloned().unwrap_or_default();
                let from = random.below(other.len() + 1);
                let to = (from + random.below(256)).min(other.len());
                input.splice(at..at + length, other[from..to].iter().copied());
            }
            7 => {
                let number = random.pick(&["0", "-1", "1e999", "9223372036854775808", "18446744073709551615", "0.1"]);
                input.splice(at..at + length, number.unwrap_or(&"0").bytes());
            }
            _ => {
                let word = random.pick(self.words).copied().unwrap_or("x");
                input.splice(at..at, word.bytes());
            }
        }
    }
}

/// Runs `target` on one input, and says which it was where it fails.
fn guard(what: &str, input: &[u8], target: &impl Fn(&[u8])) {
    let began = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| target(input)));
    let took = began.elapsed();
    if let Err(panic) = ended {
        // Said again at the end: of a long log, the end is what is kept.
        panic!("{what}\ninput ({} bytes): {}\nit said: {}", input.len(), shown(input), said(panic.as_ref()));
    }
    assert!(took < INPUT_TIME_MAX, "{what}: it took {took:?}; input: {}", shown(input));
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("nothing")
}

fn shown(input: &[u8]) -> String {
    input[..input.len().min(2_000)].escape_ascii().to_string()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The kept inputs of a target: what once failed, and what is worth beginning with.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = root().join("tests/fuzz/corpus").join(name);
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the corpus can be read").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(&path).expect("the corpus can be read"))).collect()
}

fn note(name: &str) -> fs::File {
    let folder = root().join("target/fuzz");
    fs::create_dir_all(&folder).expect("target can be written");
    fs::File::create(folder.join(format!("{name}.seed"))).expect("target can be written")
}

/// Random numbers of a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("it fits")).expect("it is below")
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }

    /// Up to `length_max` random bytes.
    pub fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        (0..self.below(length_max + 1)).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
