//! How long the disk takes to flush: small appends to one file, each followed by `fdatasync`.

use std::{fs::OpenOptions, io::Write, path::Path, time::Instant};

use serde::Serialize;

use super::{Failure, drive::quantile};

/// What is appended: a page.
const APPEND_BYTES: usize = 4096;

/// How often.
const APPENDS: usize = 300;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    appends: usize,
    bytes: usize,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Measures in a folder.
pub fn measure(dir: &Path) -> Result<Line, Failure> {
    let mut file = OpenOptions::new().append(true).create_new(true).open(dir.join("flush"))?;
    let page = vec![0x5a; APPEND_BYTES];
    let mut millis = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let begin = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        millis.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Line {
        scenario: "flush",
        appends: APPENDS,
        bytes: APPEND_BYTES,
        p50_ms: quantile(&millis, 0.5),
        p99_ms: quantile(&millis, 0.99),
    })
}
