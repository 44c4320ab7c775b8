//! What one sandboxed call costs beside a bare wasmtime loop: the same component, a fresh instance for each call.
//!
//!     cargo run --release --example raw_call
//!
//! `bare` is wasmtime alone with its own defaults: a pooling allocator, no limits, no epochs, on one thread. `sandbox` is
//! `Sandbox::run` with all limits on, one call after the other: most of what it adds is the way to the guest thread and
//! back, which costs what waking a sleeping thread costs. `sandbox busy` has one guest thread too, and calls that wait for
//! it: the time of each is what the thread spends on a call. One JSON line each.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use sandkeep::{
    model::{
        ExecutionId, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName, WorkflowVersion, id::UnitRef,
    },
    sandbox::{Answers, Attempt, Cancel, Config, Info, Progress, Sandbox},
};
use wasmtime::{
    Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, Linker},
};

/// The component's interface, without any host behind it.
mod guest {
    wasmtime::component::bindgen!({ path: "wit", world: "task" });
}

use guest::TaskPre;

/// What stops a measurement.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const CALLS: usize = 20_000;
const WARM: usize = 500;
/// How many calls there are at once where the guest thread is kept busy.
const IN_FLIGHT: usize = 8;
const INPUT: &str = r#"{"n":1}"#;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dist/builtin.wasm");
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}; run scripts/setup"))?;
    for _ in 0..3 {
        tell("bare", &mut bare(&bytes)?)?;
        tell("sandbox", &mut sandboxed(&bytes, 1).await?)?;
        tell("sandbox busy", &mut sandboxed(&bytes, IN_FLIGHT).await?)?;
    }
    Ok(())
}

fn bare(bytes: &[u8]) -> Result<Vec<Duration>, Failure> {
    let mut config = wasmtime::Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(PoolingAllocationConfig::default()));
    let engine = Engine::new(&config).map_err(in_words)?;
    let component = Component::new(&engine, bytes).map_err(in_words)?;
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&component).map_err(in_words)?;
    let pre = TaskPre::new(linker.instantiate_pre(&component).map_err(in_words)?).map_err(in_words)?;
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS + WARM {
        let began = Instant::now();
        let mut store = Store::new(&engine, ());
        let task = pre.instantiate(&mut store).map_err(in_words)?;
        let answer = task.call_run(&mut store, "core.echo", INPUT).map_err(in_words)?;
        drop(store);
        times.push(began.elapsed());
        if answer.ok().as_deref() != Some(INPUT) {
            return Err("the component did not echo".into());
        }
    }
    Ok(times.split_off(WARM))
}

/// Keeps `at_once` calls on their way; the time of each is that since the last one ended.
async fn sandboxed(bytes: &[u8], at_once: usize) -> Result<Vec<Duration>, Failure> {
    let sandbox = Sandbox::new(Config { threads: 1, ..Config::default() })?;
    let tenant = TenantId::default_tenant();
    let module = sandbox.inspect(&tenant, bytes.to_vec().into()).await?.module;
    let info = Info {
        unit: UnitRef { run: RunKey { tenant, execution: ExecutionId::new("e")?, run: 1 }, unit: UnitKey::new("u")? },
        workflow: WorkflowName::new("w")?,
        workflow_version: WorkflowVersion::new("1")?,
        task: TaskName::new("core.echo")?,
        attempt: 1,
        redelivery: false,
        deadline: None,
    };
    let input = Payload::parse(INPUT.as_bytes())?;
    let attempt = || Attempt {
        info: info.clone(),
        input: input.clone(),
        limits: sandbox.limits(),
        grant: Arc::default(),
        wall: Millis(60_000),
        progress: Progress::default(),
        cancel: Cancel::new(),
        answers: Answers::Live,
    };
    let mut calls = FuturesUnordered::new();
    let mut times = Vec::with_capacity(CALLS);
    let mut last = Instant::now();
    for _ in 0..CALLS + WARM {
        while calls.len() < at_once {
            calls.push(sandbox.run(&module, attempt()));
        }
        let Some(finished) = calls.next().await.transpose()? else { break };
        times.push(last.elapsed());
        last = Instant::now();
        if finished.outcome.ok().as_ref().map(Payload::as_str) != Some(INPUT) {
            return Err("the component did not echo".into());
        }
    }
    sandbox.shutdown();
    Ok(times.split_off(WARM))
}

/// wasmtime's error is no `std::error::Error`.
fn in_words(error: wasmtime::Error) -> Failure {
    format!("{error:#}").into()
}

fn tell(case: &str, times: &mut [Duration]) -> std::io::Result<()> {
    times.sort_unstable();
    let us = |share: usize| times[(times.len() - 1) * share / 100].as_nanos() as f64 / 1_000.0;
    let line = serde_json::json!({ "case": case, "calls": times.len(), "p50_us": us(50), "p99_us": us(99) });
    writeln!(std::io::stdout(), "{line}")
}
