//! Histories and log lines.

use serde::Serialize;

use crate::model::row::LogLine;

/// One event: `seq`, `run`, `at_ms`, `type` and its fields, already as JSON.
#[derive(Clone, Debug)]
pub struct EventView {
    /// Its number in the run.
    pub seq: u64,
    /// The event as a JSON object.
    pub json: String,
}

/// A page of a history.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    /// The run that it is of.
    pub run: u32,
    /// Its events.
    pub events: Vec<EventView>,
    /// The seq after which the next page begins; none: nothing follows now.
    pub next_seq: Option<u64>,
    /// Whether the run is terminal and the page reaches its end.
    pub closed: bool,
}

/// Which part of a history is wanted.
#[derive(Clone, Debug, Default)]
pub struct HistoryRequest {
    /// The run; the last where absent.
    pub run: Option<u32>,
    /// Only events after this seq (before it, when `reverse`).
    pub after_seq: u64,
    /// At most this many; without it up to 5,000 events or 4 MiB.
    pub limit: Option<u64>,
    /// Newest first.
    pub reverse: bool,
}

/// A captured log line with its number.
#[derive(Clone, Debug, Serialize)]
pub struct LogView {
    /// Its number, by which following goes on.
    pub id: u64,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}
