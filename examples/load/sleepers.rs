//! Many executions that sleep: what starting them, holding them and starting a server with them costs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use serde::Serialize;
use serde_json::json;

use super::{Failure, api::Api, drive::rounded, process::Process, process::Server};

/// How many are started at once.
const CONCURRENCY: usize = 256;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    executions: usize,
    executions_per_s: f64,
    resident_mib: Option<f64>,
    peak_mib: Option<f64>,
    restart_ready_ms: Option<f64>,
    restart_resident_mib: Option<f64>,
}

/// Starts `count` executions that sleep, and restarts the server where it is ours.
pub async fn measure(server: &mut Server, count: usize) -> Result<Line, Failure> {
    let api = Api::new(server.url())?;
    api.register(&json!({
        "ir_version": "sandkeep-ir/1",
        "name": "sleep",
        "version": "1",
        "steps": [{ "id": "nap", "sleep": "30d" }],
    }))
    .await?;
    let begin = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let loops: Vec<_> = (0..CONCURRENCY).map(|_| tokio::spawn(start(api.clone(), Arc::clone(&next), count))).collect();
    for each in loops {
        each.await??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let resident = server.process().and_then(Process::resident_mib);
    let peak = server.process().and_then(Process::peak_mib);
    let restart_ms = server.restart().await?.map(|took| took.as_secs_f64() * 1e3);
    let resident_again = server.process().filter(|_| restart_ms.is_some()).and_then(Process::resident_mib);
    Ok(Line {
        scenario: "sleep",
        executions: count,
        executions_per_s: rounded(count as f64 / seconds),
        resident_mib: resident.map(rounded),
        peak_mib: peak.map(rounded),
        restart_ready_ms: restart_ms.map(rounded),
        restart_resident_mib: resident_again.map(rounded),
    })
}

async fn start(api: Api, next: Arc<AtomicUsize>, count: usize) -> Result<(), Failure> {
    while next.fetch_add(1, Ordering::Relaxed) < count {
        api.start("sleep").await?;
    }
    Ok(())
}
