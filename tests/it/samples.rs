//! A stored sample of every event in every format that was ever written: this version still reads them.

use std::{collections::BTreeSet, path::PathBuf};

use sandkeep::model::{
    StoredEvent, Timestamp,
    event::{Event, FORMAT},
};
use serde_json::Value;

fn folder(format: u8) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/samples/events/{format}"))
}

/// The samples of a format: type and fields.
fn samples(format: u8) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder(format)).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            assert_eq!(path.extension().unwrap(), "json", "{}", path.display());
            let kind = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (kind, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

#[test]
fn every_type_has_a_sample_of_this_format() {
    let there: BTreeSet<_> = samples(FORMAT).into_iter().map(|(kind, _)| kind).collect();
    let wanted: BTreeSet<_> = Event::TYPES.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(there, wanted);
}

#[test]
fn samples_of_every_format_are_read() {
    for format in 1..=FORMAT {
        for (kind, fields) in samples(format) {
            let stored = StoredEvent { seq: 1, at: Timestamp(0), kind: kind.clone(), format, fields: fields.clone() };
            let event = Event::read(&stored).unwrap_or_else(|error| panic!("{kind} of format {format}: {error:?}"));
            assert_eq!(event.kind(), kind);
            if format == FORMAT {
                let (written, stored): (Value, Value) =
                    (serde_json::from_str(&event.fields()).unwrap(), serde_json::from_str(&fields).unwrap());
                assert_eq!(written, stored, "{kind}: every field of the sample is known and written as it was");
            }
        }
    }
}
