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

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Line {
    scenario: &'static str,
    executions: usize,
    alone: Times,
    beside_flood: Times,
    beside_loops: Times,
    /// The 99th percentiles beside, as multiples of that alone.
    flood_ratio: Option<f64>,
    loops_ratio: Option<f64>,
}

/// How long executions took.
#[derive(Clone, Copy, Debug, Serialize)]
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
    greedy.upload("hostile", bytes).await?;
    let spin = json!({ "id": "s", "task": "hostile.spin", "input": {}, "retry": { "max_attempts": 1 } });
    greedy.register(&document("spin", vec![spin])).await?;

    small(&neighbour, count).await?;
    let alone = small(&neighbour, count).await?;
    let flood = Greed::begin(&greedy, "flood", FLOOD).await?;
    let beside_flood = small(&neighbour, count).await?;
    flood.end().await?;
    let loops = Greed::begin(&greedy, "spin", SPINNING).await?;
    let beside_loops = small(&neighbour, count).await?;
    // Those that loop are not waited for: the server is stopped next.
    drop(loops);
    let ratio = |beside: Times| Some(rounded(beside.p99_ms? / alone.p99_ms?));
    Ok(Line {
        scenario: "neighbour",
        executions: count,
        alone,
        beside_flood,
        beside_loops,
        flood_ratio: ratio(beside_flood),
        loops_ratio: ratio(beside_loops),
    })
}

/// Runs small executions one at a time.
async fn small(api: &Api, count: usize) -> Result<Times, Failure> {
    let mut millis = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        let id = api.start("small").await?;
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
