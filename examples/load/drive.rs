//! Closed loops: each starts an execution, waits for its end, and begins again. What ends while the window is open counts.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, api::Api, process::Process};

/// What is driven, and how hard.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Its name.
    pub name: &'static str,
    /// How many steps an execution has.
    pub steps: usize,
    /// Whether each step waits for the one before.
    pub chained: bool,
    /// How many executions there are at once.
    pub concurrency: usize,
    /// How long it runs before the window opens.
    pub warm: Duration,
    /// How long the window is open.
    pub window: Duration,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    steps: usize,
    concurrency: usize,
    seconds: f64,
    executions: usize,
    errors: u64,
    executions_per_s: f64,
    steps_per_s: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    peak_mib: Option<f64>,
    cpu_s_per_1000_steps: Option<f64>,
    commits: Option<u64>,
    first_error: Option<String>,
}

#[derive(Default)]
struct Counts {
    millis: Vec<f64>,
    errors: u64,
    first_error: Option<String>,
}

/// Drives a load and returns what was measured.
pub async fn measure(api: &Api, process: Option<Process>, load: Load) -> Result<Line, Failure> {
    api.register(&document(&load)).await?;
    let counts = Arc::new(Mutex::new(Counts::default()));
    let begin = Instant::now() + load.warm;
    let end = begin + load.window;
    let loops: Vec<_> = (0..load.concurrency)
        .map(|_| tokio::spawn(repeat(api.clone(), load.name, begin, end, Arc::clone(&counts))))
        .collect();

    tokio::time::sleep_until(begin.into()).await;
    let (cpu_before, commits_before) = (process.map(|process| process.cpu_seconds()), api.commits().await.ok());
    tokio::time::sleep_until(end.into()).await;
    let (cpu_after, commits_after) = (process.map(|process| process.cpu_seconds()), api.commits().await.ok());
    for each in loops {
        each.await?;
    }

    let counts = std::mem::take(&mut *counts.lock().unwrap_or_else(PoisonError::into_inner));
    let executions = counts.millis.len();
    let steps = executions * load.steps;
    let seconds = load.window.as_secs_f64();
    let cpu = cpu_before.flatten().zip(cpu_after.flatten()).map(|(before, after)| after - before);
    let commits = commits_before.zip(commits_after).map(|(before, after)| after.saturating_sub(before));
    Ok(Line {
        scenario: load.name,
        steps: load.steps,
        concurrency: load.concurrency,
        seconds,
        executions,
        errors: counts.errors,
        executions_per_s: rounded(executions as f64 / seconds),
        steps_per_s: rounded(steps as f64 / seconds),
        p50_ms: quantile(&counts.millis, 0.5),
        p99_ms: quantile(&counts.millis, 0.99),
        peak_mib: process.and_then(Process::peak_mib).map(rounded),
        cpu_s_per_1000_steps: cpu.filter(|_| steps > 0).map(|cpu| (cpu * 1e6 / steps as f64).round() / 1e3),
        commits,
        first_error: counts.first_error,
    })
}

async fn repeat(api: Api, workflow: &'static str, begin: Instant, end: Instant, counts: Arc<Mutex<Counts>>) {
    while Instant::now() < end {
        let started = Instant::now();
        let done = async { api.wait(&api.start(workflow).await?).await }.await;
        let ended = Instant::now();
        let failed = done.is_err();
        note(
            &mut counts.lock().unwrap_or_else(PoisonError::into_inner),
            done,
            ended - started,
            (begin..end).contains(&ended),
        );
        if failed {
            // A server that refuses at once must not make this a busy loop.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn note(counts: &mut Counts, done: Result<(), Failure>, took: Duration, within: bool) {
    match done {
        Ok(()) if within => counts.millis.push(took.as_secs_f64() * 1e3),
        Ok(()) => {}
        Err(failure) => {
            counts.errors += 1;
            counts.first_error.get_or_insert_with(|| failure.to_string());
        }
    }
}

fn document(load: &Load) -> Value {
    let step = |at: usize| {
        let input =
            if load.chained && at > 0 { format!("${{ steps.s{}.output }}", at - 1) } else { "${ input }".to_owned() };
        json!({ "id": format!("s{at}"), "task": "core.echo", "input": input })
    };
    json!({
        "ir_version": "sandkeep-ir/1",
        "name": load.name,
        "version": format!("{}", load.steps),
        "steps": (0..load.steps).map(step).collect::<Vec<_>>(),
    })
}

/// Returns the value below which a share of the values is.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map(|value| (value * 100.0).round() / 100.0)
}

/// Rounds to one digit after the point.
pub fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
