//! What guests of each language cost: compiling, loading again, the first call and many calls, and how many fit a GiB.
//!
//!     cargo run --release --example guests -- [--calls 2000] [--instances 1000]
//!
//! For each module in `guests/dist` that is named below, one JSON line: how long it takes to compile (in this process), how
//! large the artefact is and how long it takes to load, how long one call takes in a fresh instance on a busy guest thread,
//! and how much linear memory a call holds. The last line keeps `--instances` instances at once, each of which has spent
//! its turn and waits for the next, and tells what the process holds then.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use sandkeep::{
    model::{
        Digest, ExecutionId, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName, WorkflowVersion,
        id::UnitRef,
    },
    sandbox::{
        Answers, Attempt, Cancel, CompileConfig, Config, Info, Module, Progress, Rejected, Sandbox, ShelfConfig,
    },
};

/// What stops a measurement.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How many calls there are at once, so that the guest thread is busy.
const IN_FLIGHT: usize = 8;
const MIB: f64 = 1024.0 * 1024.0;

/// The guests: module, language, task and input.
const GUESTS: [(&str, &str, &str, &str); 4] = [
    ("builtin", "Rust", "core.echo", r#"{"n":1}"#),
    ("hello", "Rust", "greet.hello", r#"{"name":"Ada"}"#),
    (
        "markdown",
        "JavaScript",
        "markdown.render",
        r##"{"markdown":"# Title\n\nSome *text* and a [link](https://example.com)."}"##,
    ),
    ("csv-stats", "Python", "csv.stats", r#"{"csv":"a,b\n1,2\n3,4\n"}"#),
];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let calls = argument("--calls", 2_000)?;
    let instances = argument("--instances", 1_000)?;
    for guest in GUESTS {
        measure(guest, calls).await?;
    }
    density(instances).await
}

fn argument(name: &str, usual: usize) -> Result<usize, Failure> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    Ok(arguments.next().map(|text| text.parse()).transpose()?.unwrap_or(usual))
}

async fn measure((name, language, task, input): (&str, &str, &str, &str), calls: usize) -> Result<(), Failure> {
    let bytes = component(name)?;
    let folder = std::env::temp_dir().join(format!("sandkeep-guests-{}", std::process::id()));
    let tenant = TenantId::default_tenant();
    let began = Instant::now();
    let first = sandbox(&folder, 1)?;
    let inspected = first.inspect(&tenant, bytes.clone()).await?;
    let compile = began.elapsed();
    first.shutdown();
    // As after a restart: nothing in memory, the artefact on disk.
    let sandbox = sandbox(&folder, 1)?;
    let began = Instant::now();
    let module = load(&sandbox, &inspected.digest, bytes.clone()).await?;
    let loaded = began.elapsed();
    let began = Instant::now();
    let memory = call(&sandbox, &module, task, input).await?;
    let cold = began.elapsed();
    let mut times = many(&sandbox, &module, task, input, calls).await?;
    times.sort_unstable();
    let us = |share: usize| times[(times.len() - 1) * share / 100].as_nanos() as f64 / 1_000.0;
    let ms = |span: Duration| span.as_secs_f64() * 1_000.0;
    tell(&serde_json::json!({
        "guest": name, "language": language, "component_mib": bytes.len() as f64 / MIB,
        "code_mib": module.size_bytes() as f64 / MIB, "compile_ms": ms(compile), "load_ms": ms(loaded),
        "first_call_ms": ms(cold), "call_p50_us": us(50), "call_p99_us": us(99), "memory_mib": memory as f64 / MIB,
    }))?;
    sandbox.shutdown();
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Calls on their way at once; the time of each is that since the last one ended.
async fn many(
    sandbox: &Sandbox,
    module: &Module,
    task: &str,
    input: &str,
    calls: usize,
) -> Result<Vec<Duration>, Failure> {
    let mut under_way = FuturesUnordered::new();
    let mut times = Vec::with_capacity(calls);
    let mut last = Instant::now();
    while times.len() < calls {
        while under_way.len() < IN_FLIGHT {
            under_way.push(call(sandbox, module, task, input));
        }
        under_way.next().await.transpose()?;
        times.push(last.elapsed());
        last = Instant::now();
    }
    Ok(times)
}

/// One call that must succeed; returns how much linear memory it held.
async fn call(sandbox: &Sandbox, module: &Module, task: &str, input: &str) -> Result<u64, Failure> {
    let finished = sandbox.run(module, attempt(sandbox, task, input, Cancel::new())?).await?;
    match finished.outcome {
        Ok(_) => Ok(finished.usage.memory_peak_bytes),
        Err(failure) => Err(format!("{task} failed with {}: {}", failure.code, failure.message).into()),
    }
}

/// Keeps many instances at once and tells what they take.
async fn density(instances: usize) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("sandkeep-density-{}", std::process::id()));
    let sandbox = sandbox(&folder, instances)?;
    let tenant = TenantId::default_tenant();
    let module = sandbox.inspect(&tenant, component("hostile")?).await?.module;
    let before = resident_bytes()?;
    let cancel = Cancel::new();
    let began = Instant::now();
    let runs = (0..instances)
        .map(|_| attempt(&sandbox, "hostile.spin", "{}", cancel.clone()).map(|attempt| sandbox.run(&module, attempt)));
    let mut runs: FuturesUnordered<_> = runs.collect::<Result<_, _>>()?;
    // Each of them has had a turn when every tenant's line was served through; they loop until they are cancelled.
    let settle = tokio::time::sleep(Duration::from_secs(10));
    tokio::pin!(settle);
    tokio::select! {
        () = &mut settle => (),
        ended = runs.next() => return Err(format!("an instance ended early: {ended:?}").into()),
    }
    let held = resident_bytes()?.saturating_sub(before);
    cancel.cancel();
    while runs.next().await.is_some() {}
    let each = held as f64 / instances as f64;
    tell(&serde_json::json!({
        "instances": instances, "held_mib": held as f64 / MIB, "each_kib": each / 1024.0,
        "per_gib": (MIB * 1024.0 / each) as u64, "seconds": began.elapsed().as_secs_f64(),
        "resident_after_mib": resident_bytes()? as f64 / MIB,
    }))?;
    sandbox.shutdown();
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn sandbox(folder: &Path, slots: usize) -> Result<Sandbox, Failure> {
    let shelf = ShelfConfig { folder: folder.to_owned(), bytes_max: 1 << 30, key: [7; 32] };
    let config = Config {
        threads: 1,
        max_concurrent: Some(slots.max(IN_FLIGHT)),
        limits: sandkeep::sandbox::Limits { cpu: Millis(600_000), ..sandkeep::sandbox::Limits::default() },
        compile: CompileConfig { shelf: Some(shelf), ..CompileConfig::default() },
        ..Config::default()
    };
    Ok(Sandbox::new(config)?)
}

async fn load(sandbox: &Sandbox, digest: &Digest, bytes: Bytes) -> Result<Module, Rejected> {
    sandbox.load(&TenantId::default_tenant(), digest, async { Ok(bytes) }).await
}

fn component(name: &str) -> Result<Bytes, Failure> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/guests/dist")).join(format!("{name}.wasm"));
    Ok(std::fs::read(&path).map_err(|error| format!("{}: {error}; run `make guests`", path.display()))?.into())
}

fn attempt(sandbox: &Sandbox, task: &str, input: &str, cancel: Cancel) -> Result<Attempt, Failure> {
    let run = RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e")?, run: 1 };
    Ok(Attempt {
        info: Info {
            unit: UnitRef { run, unit: UnitKey::new("u")? },
            workflow: WorkflowName::new("w")?,
            workflow_version: WorkflowVersion::new("1")?,
            task: TaskName::new(task)?,
            attempt: 1,
            redelivery: false,
            deadline: None,
        },
        input: Payload::parse(input.as_bytes())?,
        limits: sandbox.limits(),
        grant: Arc::default(),
        wall: Millis(600_000),
        progress: Progress::default(),
        cancel,
        answers: Answers::Live,
    })
}

/// What this process holds in memory.
fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let fields: BTreeMap<&str, &str> = status.lines().filter_map(|line| line.split_once(':')).collect();
    let kib: u64 = fields.get("VmRSS").and_then(|text| text.split_whitespace().next()).ok_or("no VmRSS")?.parse()?;
    Ok(kib * 1024)
}

fn tell(line: &serde_json::Value) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
