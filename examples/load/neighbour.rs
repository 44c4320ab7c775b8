//! A tenant beside one that takes all it can: how long its small executions take alone, and beside each kind of greed.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Failure,
    api::Api,
    drive::{quantile, rounded},
};

/// How many executions of the flood are live at once, and the steps of each: 10,000 units.
const FLOOD: usize = 100;
const FLOOD_STEPS: usize = 100;
/// How many executions loop for ever at once, more than a server of this size has instances for one tenant.
const SPINNING: usize = 1_000;

/// How far a piece of work counts, and how many fewer of them are run.
const WORK_TURNS: u64 = 20_000_000;
const WORK_FEWER: usize = 4;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    /// Executions of one task that does nothing.
    small: Beside,
    /// Executions of one task that computes for some 20 ms.
    work: Beside,
}

/// How long executions took alone, and beside each kind of greed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Beside {
    executions: usize,
    alone: Times,
    flood: Times,
    loops: Times,
    /// The 99th percentiles beside, as multiples of that alone.
    flood_ratio: Option<f64>,
    loops_ratio: Option<f64>,
}

/// How long executions took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Times {
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Measures `count` executions of one step, one at a time, in each situation. `module` has a task `hostile.spin`.
pub async fn measure(url: &str, count: usize, module: &Path) -> Result<Line, Failure> {
    let (neighbour, greedy) = (Api::new(url)?.tenant("neighbour").await?, Api::new(url)?.tenant("greedy").await?);
    let echo = |id: usize| json!({ "id": format!("s{id}"), "task": "core.echo", "input": "${ input }" });
    let document = |name: &str, steps: Vec<Value>| json!({ "ir_version": "sandkeep-ir/1", "name": name, "version": "1", "steps": steps });
    neighbour.register(&document("small", vec![echo(0)])).await?;
    greedy.register(&document("flood", (0..FLOOD_STEPS).map(echo).collect())).await?;
    let bytes = std::fs::read(module).map_err(|error| format!("{}: {error}; run `make guests`", module.display()))?;
    greedy.upload("hostile", bytes.clone()).await?;
    let spin = json!({ "id": "s", "task": "hostile.spin", "input": {}, "retry": { "max_attempts": 1 } });
    greedy.register(&document("spin", vec![spin])).await?;

    neighbour.upload("hostile", bytes).await?;
    let count_up = json!({ "id": "s", "task": "hostile.count", "input": { "turns": WORK_TURNS } });
    neighbour.register(&document("work", vec![count_up])).await?;

    // Both once before it counts: what is loaded is loaded.
    both(&neighbour, count / 10 + 1).await?;
    let (small_alone, work_alone) = both(&neighbour, count).await?;
    let flood = Greed::begin(&greedy, "flood", FLOOD).await?;
    let (small_flood, work_flood) = both(&neighbour, count).await?;
    flood.end().await?;
    let loops = Greed::begin(&greedy, "spin", SPINNING).await?;
    let (small_loops, work_loops) = both(&neighbour, count).await?;
    // Those that loop are not waited for: the server is stopped next.
    drop(loops);
    let beside = |executions, alone: Times, flood: Times, loops: Times| {
        let ratio = |beside: Times| Some(rounded(beside.p99_ms? / alone.p99_ms?));
        Beside { executions, alone, flood, loops, flood_ratio: ratio(flood), loops_ratio: ratio(loops) }
    };
    Ok(Line {
        scenario: "neighbour",
        small: beside(count, small_alone, small_flood, small_loops),
        work: beside(count / WORK_FEWER, work_alone, work_flood, work_loops),
    })
}

/// Runs executions of both kinds, those that take longer fewer times.
async fn both(api: &Api, count: usize) -> Result<(Times, Times), Failure> {
    Ok((one_by_one(api, "small", count).await?, one_by_one(api, "work", count / WORK_FEWER).await?))
}

/// Runs executions one at a time.
async fn one_by_one(api: &Api, workflow: &str, count: usize) -> Result<Times, Failure> {
    let mut millis = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        let id = api.start(workflow).await?;
        api.wait(&id).await?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Times { p50_ms: quantile(&millis, 0.5), p99_ms: quantile(&millis, 0.99) })
}

/// Executions that are kept going: where one ends, another begins.
struct Greed {
    over: Arc<AtomicBool>,
    loops: JoinSet<Result<(), Failure>>,
}

impl Greed {
    /// Begins, and returns when all of the first executions are started.
    async fn begin(api: &Api, workflow: &'static str, executions: usize) -> Result<Self, Failure> {
        let over = Arc::new(AtomicBool::new(false));
        let mut first = Vec::with_capacity(executions);
        for _ in 0..executions {
            first.push(api.start(workflow).await?);
        }
        let mut loops = JoinSet::new();
        for mut id in first {
            let (api, over) = (api.clone(), Arc::clone(&over));
            loops.spawn(async move {
                loop {
                    // A loop for ever ends badly, and another takes its place.
                    let ended = api.wait(&id).await;
                    if over.load(Ordering::Relaxed) {
                        return if workflow == "flood" { ended } else { Ok(()) };
                    }
                    id = api.start(workflow).await?;
                }
            });
        }
        Ok(Self { over, loops })
    }

    async fn end(mut self) -> Result<(), Failure> {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.loops.join_next().await {
            ended??;
        }
        Ok(())
    }
}
