//! Stored events: a database may be old, newer than the server, or damaged.

use sandkeep::model::{
    Timestamp,
    event::{Event, FORMAT, StoredEvent},
};

use crate::{SHARE, driver::Fuzz};

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "\"unit\":",
    "\"attempt\":",
    "\"output\":",
    "\"error\":",
    "\"code\":",
    "\"origin\":\"engine\"",
    "\"retryable\":",
    "\"served\":",
    "\"usage\":",
    "\"input\":",
    "\\u0000",
    "\\ud800",
];

fn stored(kind: &str, format: u8, fields: String) -> StoredEvent {
    StoredEvent { seq: 1, at: Timestamp(0), kind: kind.to_owned(), format, fields }
}

#[test]
fn events_are_read_or_refused() {
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/events/1");
    let samples =
        std::fs::read_dir(samples).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    Fuzz { name: "events", time: SHARE / 2, samples, words: WORDS }.run(|bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        for kind in Event::TYPES {
            let Ok(event) = Event::read(&stored(kind, FORMAT, text.to_owned())) else { continue };
            assert_eq!(event.kind(), *kind);
            let fields = event.fields();
            let again = Event::read(&stored(kind, FORMAT, fields.clone()));
            let again = again.unwrap_or_else(|error| panic!("{kind} cannot be read again: {error}: {fields}"));
            assert_eq!(again.fields(), fields, "{kind}");
        }
        assert!(Event::read(&stored(text, FORMAT, text.to_owned())).is_err());
        assert!(Event::read(&stored("TimerFired", FORMAT + 1, text.to_owned())).is_err());
    });
}
