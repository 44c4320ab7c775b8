//! One line for one event of a history.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::Timestamp;

use super::{json, output::cut, units::short};

/// The longest value of an event's field in a line, in characters.
const VALUE_CHARS_MAX: usize = 64;

/// Fields that are columns of their own, and those that say nothing to people; `--output json` has all.
const LEFT_OUT: [&str; 6] = ["seq", "run", "at_ms", "type", "delivery", "request_hash"];

/// Fields that come first, where they are there.
const FIRST: [&str; 5] = ["unit", "step", "timer", "name", "attempt"];

/// An event: what all have, and its own fields.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// Its number in the run.
    pub(super) seq: u64,
    at_ms: i64,
    #[serde(rename = "type")]
    kind: String,
}

/// The columns that [`Event::cells`] fills.
pub(super) const HEADINGS: [&str; 4] = ["SEQ", "TIME", "EVENT", "FIELDS"];

impl Event {
    /// Returns its cells; `text` is the event itself.
    pub(super) fn cells(&self, text: &str) -> Vec<String> {
        vec![self.seq.to_string(), Timestamp(self.at_ms).to_string(), self.kind.clone(), fields(text)]
    }

    /// Returns its line in a list that has no end yet.
    pub(super) fn line(&self, text: &str) -> String {
        format!("{:>5}  {}  {:<22}  {}", self.seq, Timestamp(self.at_ms), self.kind, fields(text)).trim_end().to_owned()
    }
}

/// Returns an event's own fields as `name=value`, long values cut.
fn fields(text: &str) -> String {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    let first = FIRST.iter().filter_map(|name| fields.remove_entry(*name)).collect::<Vec<_>>();
    let shown = |(name, value): (String, Box<RawValue>)| {
        let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| json::compact(value.get()));
        format!("{name}={}", cut(&short(&text), VALUE_CHARS_MAX))
    };
    first.into_iter().chain(fields).map(shown).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let text =
            r#"{"seq":7,"run":1,"at_ms":1000,"type":"StepSucceeded","output":{"a": 1},"unit":"charge","delivery":"d"}"#;
        let event: Event = serde_json::from_str(text).unwrap();
        assert_eq!(
            event.line(text),
            "    7  1970-01-01T00:00:01.000Z  StepSucceeded           unit=charge output={\"a\":1}"
        );
    }
}
