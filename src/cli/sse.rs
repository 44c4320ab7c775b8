//! Reads server-sent events.

use std::collections::VecDeque;

/// The longest event that is taken, in bytes.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its number, where it has one.
    pub(super) id: Option<u64>,
    /// What kind it is; empty for the usual kind.
    pub(super) kind: String,
    /// What it says.
    pub(super) data: String,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    rest: Vec<u8>,
    event: Event,
    has_data: bool,
    ready: VecDeque<Event>,
}

/// An event larger than any that is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Reader {
    /// Takes more of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.rest.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.rest[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[begin..begin + length]).trim_end_matches('\r').to_owned();
            begin += length + 1;
            self.line(&line);
        }
        self.rest.drain(..begin);
        if self.rest.len() + self.event.data.len() > EVENT_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }

    /// Returns the next event that is complete.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                self.ready.push_back(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.event.kind),
            "id" => self.event.id = value.parse().ok(),
            // A line that begins with a colon is a sign of life.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = ": ping\n\nid: 1\ndata: {\"seq\":1}\n\nevent: end\r\ndata:a\r\ndata: ü\r\n\r\ndata: cut";
        let events = [
            Event { id: Some(1), kind: String::new(), data: "{\"seq\":1}".to_owned() },
            Event { id: None, kind: "end".to_owned(), data: "a\nü".to_owned() },
        ];
        for size in 1..stream.len() {
            let mut reader = Reader::default();
            for chunk in stream.as_bytes().chunks(size) {
                reader.push(chunk).unwrap();
            }
            assert_eq!(std::iter::from_fn(|| reader.next()).collect::<Vec<_>>(), events, "cut into {size}");
        }
    }

    #[test]
    fn endless_events_are_refused() {
        let mut reader = Reader::default();
        let pushed = (0..200).map(|_| reader.push(&[b'x'; 65_536])).find(Result::is_err);
        assert_eq!(pushed, Some(Err(TooLong)));
    }
}
