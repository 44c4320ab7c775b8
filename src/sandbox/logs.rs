//! The log of one attempt: bounded, head and tail kept, the gap counted.

use std::collections::VecDeque;

use crate::model::{
    Payload, Timestamp, UnitKey,
    code::cut,
    row::{LogLevel, LogLine},
};

use super::inert;

/// The longest message of a line, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// The longest fields of a line, in bytes.
const FIELDS_BYTES_MAX: usize = 8 * 1024;
/// What a line costs besides its text, so that a million empty lines are not free.
const LINE_BYTES: usize = 64;

/// Collects the lines of one attempt.
#[derive(Debug)]
pub(super) struct Logs {
    bytes_max: usize,
    head: Vec<LogLine>,
    head_bytes: usize,
    head_is_full: bool,
    tail: VecDeque<LogLine>,
    tail_bytes: usize,
    left_out: LeftOut,
}

/// The gap between head and tail.
#[derive(Clone, Copy, Debug, Default)]
struct LeftOut {
    lines: u64,
    bytes: u64,
    /// When the first line of the gap was written.
    at: Option<Timestamp>,
}

impl Logs {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            head: Vec::new(),
            head_bytes: 0,
            head_is_full: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Adds a line, and forgets the oldest of the tail when there is no room.
    pub(super) fn push(&mut self, line: LogLine) {
        let bytes = size_bytes(&line);
        if !self.head_is_full && self.head_bytes + bytes <= self.bytes_max / 2 {
            self.head_bytes += bytes;
            self.head.push(line);
            return;
        }
        self.head_is_full = true;
        self.tail_bytes += bytes;
        self.tail.push_back(line);
        while self.tail_bytes > self.bytes_max / 2 {
            let Some(oldest) = self.tail.pop_front() else { break };
            let bytes = size_bytes(&oldest);
            self.tail_bytes -= bytes;
            self.left_out.lines += 1;
            self.left_out.bytes += bytes as u64;
            self.left_out.at.get_or_insert(oldest.at_ms);
        }
    }

    /// Returns the lines, with one in the place of those left out, and how many those are.
    pub(super) fn finish(self, unit: &UnitKey, attempt: u32) -> (Vec<LogLine>, u64) {
        let LeftOut { lines, bytes, at } = self.left_out;
        let gap = at.map(|at_ms| LogLine {
            at_ms,
            unit: unit.clone(),
            attempt,
            level: LogLevel::Warn,
            message: format!(
                "{lines} lines ({bytes} bytes) left out: an attempt keeps {} bytes of log",
                self.bytes_max
            ),
            fields: Payload::parse(br#"{"truncated":true}"#).ok(),
        });
        let mut kept = self.head;
        kept.extend(gap);
        kept.extend(self.tail);
        (kept, lines)
    }
}

fn size_bytes(line: &LogLine) -> usize {
    LINE_BYTES + line.message.len() + line.fields.as_ref().map_or(0, Payload::size_bytes)
}

/// Returns what a guest calls a message as one that can be kept.
pub(super) fn message_of(text: String) -> String {
    inert::line(text, MESSAGE_BYTES_MAX)
}

/// Returns what a guest calls fields as JSON: as they are, or as a string where they are not JSON or too long.
pub(super) fn fields_of(text: String) -> Payload {
    let fitting = text.len() <= FIELDS_BYTES_MAX;
    match Payload::parse(text.as_bytes()) {
        Ok(fields) if fitting => fields,
        _ => Payload::from_value(&cut(text, FIELDS_BYTES_MAX).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, message: &str) -> LogLine {
        LogLine {
            at_ms: Timestamp(number as i64),
            unit: UnitKey::new("u").unwrap(),
            attempt: 1,
            level: LogLevel::Info,
            message: message_of(message.to_owned()),
            fields: None,
        }
    }

    fn finish(logs: Logs) -> (Vec<LogLine>, u64) {
        logs.finish(&UnitKey::new("u").unwrap(), 1)
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        let mut logs = Logs::new(256 * 1024);
        (0..100).for_each(|number| logs.push(line(number, "hello")));
        let (lines, left_out) = finish(logs);
        assert_eq!((lines.len(), left_out), (100, 0));
    }

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_counted() {
        for message in ["", "x", "forged\nline", &"y".repeat(16 * 1024)] {
            let mut logs = Logs::new(256 * 1024);
            (0..10_000).for_each(|number| logs.push(line(number, message)));
            let (lines, left_out) = finish(logs);
            let at: Vec<i64> = lines.iter().map(|line| line.at_ms.0).collect();
            assert_eq!(at[0], 0, "C063");
            assert_eq!(*at.last().unwrap(), 9_999);
            assert!(at.is_sorted());
            assert_eq!(lines.len() as u64 - 1 + left_out, 10_000, "every line is kept or counted");
            let marker = lines.iter().find(|line| line.fields.is_some()).unwrap();
            assert!(marker.message.starts_with(&format!("{left_out} lines")), "{}", marker.message);
            assert!(lines.iter().map(size_bytes).sum::<usize>() <= 257 * 1024);
        }
    }

    #[test]
    fn fields_that_are_not_json_are_kept_as_text() {
        for (text, kept) in [(r#"{"a": 1}"#, r#"{"a":1}"#), ("{a}", r#""{a}""#), ("", r#""""#), ("\0", r#""\u0000""#)] {
            assert_eq!(fields_of(text.to_owned()).as_str(), kept);
        }
        let deep = "[".repeat(100_000);
        assert!(fields_of(deep).size_bytes() < 10_000);
    }

    #[test]
    fn a_log_without_room_keeps_nothing_but_the_count() {
        let mut logs = Logs::new(0);
        (0..3).for_each(|number| logs.push(line(number, "a")));
        let (lines, left_out) = finish(logs);
        assert_eq!((lines.len(), left_out), (1, 3));
    }
}
