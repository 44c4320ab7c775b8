//! The recorder: one JSON line for each case, where `SANDKEEP_HOSTILE_TABLE` names a file.

use std::{fs::OpenOptions, io::Write as _};

use serde_json::json;

/// What was seen of a case.
pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) case: &'a str,
    pub(super) required: &'a str,
    pub(super) seen: &'a str,
    /// How long after its limit an attempt ended; none: no limit in time ended it.
    pub(super) late_ms: Option<u64>,
    pub(super) alone_ms: u64,
    pub(super) beside_ms: u64,
}

impl Row<'_> {
    /// Writes the row, if rows are wanted.
    pub(super) fn write(&self) {
        let Some(path) = std::env::var_os("SANDKEEP_HOSTILE_TABLE") else { return };
        let line = json!({
            "kind": self.kind, "case": self.case, "required": self.required, "seen": self.seen,
            "late_ms": self.late_ms, "alone_ms": self.alone_ms, "beside_ms": self.beside_ms,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the table can be written");
        // One write each: kinds run side by side.
        file.write_all(format!("{line}\n").as_bytes()).expect("the table can be written");
    }
}
