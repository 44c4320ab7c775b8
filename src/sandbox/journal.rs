//! What is said of an attempt while it runs: lines that the guest logs, what it prints, and what the host tells its
//! author. Shared by everything that speaks for the attempt; bounded by [`Logs`].

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::model::{
    Timestamp, UnitKey,
    row::{LogLevel, LogLine},
};

use super::{
    attempt::Info,
    config::Clock,
    logs::{self, Logs},
};

/// The longest line that is printed; a longer one is kept as several.
const PRINTED_BYTES_MAX: usize = 8 * 1024;

/// The journal of one attempt. Cheap to clone.
#[derive(Clone)]
pub(super) struct Journal(Arc<Inner>);

/// A standard stream of the guest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// Standard output, whose lines are informative.
    Out,
    /// Standard error, whose lines are warnings.
    Err,
}

struct Inner {
    clock: Clock,
    unit: UnitKey,
    attempt: u32,
    kept: Mutex<Kept>,
}

struct Kept {
    logs: Logs,
    /// What was printed since the last end of a line, by stream.
    printed: [Vec<u8>; 2],
}

impl Journal {
    pub(super) fn new(clock: Clock, info: &Info, bytes_max: usize) -> Self {
        Self(Arc::new(Inner {
            clock,
            unit: info.unit.unit.clone(),
            attempt: info.attempt,
            kept: Mutex::new(Kept { logs: Logs::new(bytes_max), printed: [Vec::new(), Vec::new()] }),
        }))
    }

    /// Keeps a line.
    pub(super) fn line(&self, level: LogLevel, message: String, fields: Option<String>) {
        let mut line = self.0.line_at((self.0.clock)(), level, message);
        line.fields = fields.map(logs::fields_of);
        self.0.kept().logs.push(line);
    }

    /// Keeps what the guest prints, line by line; the last one waits for its end.
    pub(super) fn print(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let at = (self.0.clock)();
        let mut kept = self.0.kept();
        let Kept { logs, printed } = &mut *kept;
        each_line(&mut printed[stream as usize], bytes, |text| logs.push(self.0.line_at(at, stream.level(), text)));
    }

    /// Returns the lines, with one in the place of those left out, and how many those are. What is said later is lost.
    pub(super) fn finish(&self) -> (Vec<LogLine>, u64) {
        let unended = !self.0.kept().printed.iter().all(Vec::is_empty);
        let at = if unended { (self.0.clock)() } else { Timestamp(0) };
        let mut kept = self.0.kept();
        for stream in [Stream::Out, Stream::Err] {
            let rest = std::mem::take(&mut kept.printed[stream as usize]);
            if !rest.is_empty() {
                kept.logs.push(self.0.line_at(at, stream.level(), text_of(&rest)));
            }
        }
        let logs = std::mem::replace(&mut kept.logs, Logs::new(0));
        drop(kept);
        logs.finish(&self.0.unit, self.0.attempt)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("unit", &self.0.unit).field("attempt", &self.0.attempt).finish_non_exhaustive()
    }
}

impl Inner {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line_at(&self, at_ms: Timestamp, level: LogLevel, message: String) -> LogLine {
        LogLine {
            at_ms,
            unit: self.unit.clone(),
            attempt: self.attempt,
            level,
            message: logs::message_of(message),
            fields: None,
        }
    }
}

impl Stream {
    fn level(self) -> LogLevel {
        match self {
            Self::Out => LogLevel::Info,
            Self::Err => LogLevel::Warn,
        }
    }
}

/// Adds `bytes` to `partial` and hands out every line that is complete or as long as a line may be.
fn each_line(partial: &mut Vec<u8>, mut bytes: &[u8], mut line: impl FnMut(String)) {
    while !bytes.is_empty() {
        let window = &bytes[..bytes.len().min(PRINTED_BYTES_MAX - partial.len())];
        match window.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                partial.extend_from_slice(&window[..end]);
                line(text_of(partial));
                partial.clear();
                bytes = &bytes[end + 1..];
            }
            None => {
                partial.extend_from_slice(window);
                bytes = &bytes[window.len()..];
                if partial.len() == PRINTED_BYTES_MAX {
                    let begun = begun_character(partial);
                    line(text_of(&partial[..begun]));
                    partial.drain(..begun);
                }
            }
        }
    }
}

/// Returns where a character begins that is not complete, or the end.
fn begun_character(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(writes: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
        let (mut partial, mut lines) = (Vec::new(), Vec::new());
        writes.iter().for_each(|bytes| each_line(&mut partial, bytes, |line| lines.push(line)));
        (lines, partial)
    }

    #[test]
    fn lines_end_where_they_end_however_they_are_written() {
        let (whole, rest) = lines(&[b"a", b"", b"b\nc\r\n", b"\n\xff\n", b"d"]);
        assert_eq!(whole, ["ab", "c", "", "\u{fffd}"]);
        assert_eq!(rest, b"d");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let long = format!("x{}", "é".repeat(PRINTED_BYTES_MAX));
        let (whole, rest) = lines(&[long.as_bytes()]);
        assert!(whole.iter().all(|line| line.len() <= PRINTED_BYTES_MAX && !line.contains('\u{fffd}')));
        assert_eq!(whole.concat() + std::str::from_utf8(&rest).unwrap(), long);
    }
}
