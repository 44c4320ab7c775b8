//! `module run`: one attempt in the sandbox of this process, without a server: a new one, or a recorded one again.

use std::{path::PathBuf, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use clap::Args;
use serde_json::value::RawValue;

use crate::{
    app::{BUNDLE_FORMAT, Bundle, BundledAttempt, BundledEnd},
    clock::Clock,
    model::{
        Digest, EgressPolicy, ExecutionId, Failure, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName,
        WorkflowVersion, delivery::Usage, egress::EgressEntry, id::UnitRef, row::LogLine,
    },
    sandbox::{self, Answers, Attempt, Cancel, Closed, Finished, Grant, Info, Progress},
};

use super::{
    Error, input,
    module::MODULE_BYTES_MAX,
    module_local::{examine, sandbox},
    output::{Output, say},
    stubs,
};

/// How much processor time an attempt may take where nothing is said.
const CPU: Millis = Millis(10_000);
/// How long it may take on the wall where nothing is said.
const TIMEOUT: Millis = Millis(300_000);
/// How much linear memory it may have where nothing is said, in MiB.
const MEMORY_MIB: u32 = 64;
/// The most linear memory that can be asked for, in MiB.
const MEMORY_MIB_MAX: u32 = 4096;
/// The largest file of a recorded attempt, in bytes: a module in base64, and the rest.
const BUNDLE_BYTES_MAX: usize = MODULE_BYTES_MAX / 3 * 4 + 64 * 1024 * 1024;

/// Runs one task of a component, without a server
///
/// Its output goes to standard output; its log, processor time and memory go to standard error. The exit code is 1 when
/// the task fails, 3 when the component would be refused.
///
/// Requests that it sends are denied unless `--http` answers them or `--allow` lets them out. With `--replay` it runs as
/// a recorded attempt did, with the answers that came then, and sends nothing; a component, an input, variables or
/// limits that are given take the place of the recorded ones.
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module run guests/dist/orders.wasm orders.price --input @order.json")]
pub(super) struct Run {
    /// The component
    #[arg(required_unless_present = "replay")]
    file: Option<PathBuf>,
    /// The task
    #[arg(required_unless_present = "replay", conflicts_with = "replay")]
    task: Option<String>,
    /// The input: JSON, `@FILE`, or `@-` for standard input; without it `null`, or the recorded one
    #[arg(long, short, value_name = "JSON|@FILE")]
    input: Option<String>,
    /// A recorded attempt, as `attempt pull` brings it, to run again
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// A JSON list of answers to the requests that it sends: `[{"url": "https://…", "body": …}]`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "allow"])]
    http: Option<PathBuf>,
    /// Lets requests out to where the entry of a policy says, such as `https://api.example`
    #[arg(long, value_name = "ENTRY", conflicts_with = "replay")]
    allow: Vec<EgressEntry>,
    /// A variable of its environment
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// How much processor time it may take; without it 10s, or as recorded
    #[arg(long, value_name = "DURATION", value_parser = Millis::parse)]
    cpu: Option<Millis>,
    /// How long it may take on the wall; without it 5m, or as recorded
    #[arg(long, value_name = "DURATION", value_parser = Millis::parse)]
    timeout: Option<Millis>,
    /// How much linear memory it may have, in MiB; without it 64, or as recorded
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=i64::from(MEMORY_MIB_MAX)))]
    memory: Option<u32>,
    /// Count the instructions that it executes, which the same input makes the same; it runs slower
    #[arg(long)]
    fuel: bool,
    /// The attempt that the task is told; without it 1, or the recorded one
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    #[command(flatten)]
    output: Output,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable reads like `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// What is run.
struct Plan {
    component: Bytes,
    attempt: Attempt,
    /// How it ended when it was recorded.
    recorded: Option<BundledEnd>,
}

pub(super) async fn run(args: Run) -> Result<(), Error> {
    let (output, count_instructions) = (args.output, args.fuel);
    let Plan { component, attempt, recorded } = match &args.replay {
        Some(path) => {
            let bundle = read_bundle(path)?;
            replay(args, bundle)?
        }
        None => fresh(args)?,
    };
    let limits = attempt.limits;
    let usual = sandbox::Config::default();
    let memory_bytes = usual.memory_bytes.max(limits.memory_bytes as u64);
    let sandbox =
        sandbox(sandbox::Config { limits, max_concurrent: Some(1), memory_bytes, count_instructions, ..usual })?;
    let found = examine(&sandbox, component).await?;
    let task = &attempt.info.task;
    if !found.tasks.iter().any(|spec| spec.name == *task) {
        let known: Vec<_> = found.tasks.iter().map(|spec| format!("`{}`", spec.name)).collect();
        return Err(Error::Usage(format!("the module has no task `{task}`; it has {}", known.join(", "))));
    }
    let finished = sandbox.run(&found.module, attempt).await.map_err(|Closed| Error::Server(Closed.into()))?;
    tell(&finished, limits);
    if let Some(recorded) = recorded {
        say(&compared(&finished.outcome, recorded));
    }
    match finished.outcome {
        Ok(payload) => output.json(&raw(&payload)?),
        Err(failure) => Err(Error::Failed(sentence(&failure))),
    }
}

/// Plans an attempt that was none before.
fn fresh(args: Run) -> Result<Plan, Error> {
    let name = args.task.as_deref().unwrap_or_default();
    let task = TaskName::new(name).map_err(|error| Error::Usage(error.to_string()))?;
    let input = input::payload(args.input.as_deref().unwrap_or("null"))?;
    let path = args.file.as_deref().ok_or_else(|| Error::Usage("a component is needed".to_owned()))?;
    let component = Bytes::from(input::file(path, MODULE_BYTES_MAX)?);
    let answers = match &args.http {
        Some(path) => Answers::Stubbed(stubs::read(path)?.into()),
        None => Answers::Live,
    };
    let wall = args.timeout.unwrap_or(TIMEOUT);
    let attempt = Attempt {
        info: info(task, args.attempt.unwrap_or(1), wall)?,
        input,
        limits: sandbox::Limits {
            memory_bytes: mib(args.memory.unwrap_or(MEMORY_MIB)),
            cpu: args.cpu.unwrap_or(CPU),
            ..sandbox::Limits::default()
        },
        grant: Arc::new(Grant {
            settings: args.environment.into_iter().collect(),
            egress: EgressPolicy { allow: args.allow, private: Vec::new() },
        }),
        wall,
        progress: Progress::default(),
        cancel: Cancel::new(),
        answers,
    };
    Ok(Plan { component, attempt, recorded: None })
}

/// Plans a recorded attempt again, with what is given in the place of what was recorded.
fn replay(args: Run, bundle: Bundle) -> Result<Plan, Error> {
    let Bundle { module, attempt: told, last_progress, mut environment, mut limits, end, recording, .. } = bundle;
    let component = match &args.file {
        Some(path) => Bytes::from(input::file(path, MODULE_BYTES_MAX)?),
        None => content(module.content.as_deref(), &module.digest)?,
    };
    environment.extend(args.environment);
    limits.cpu = args.cpu.unwrap_or(limits.cpu);
    limits.memory_bytes = args.memory.map_or(limits.memory_bytes, mib);
    if limits.memory_bytes > mib(MEMORY_MIB_MAX) {
        return Err(Error::Usage(format!("the recorded attempt has more than {MEMORY_MIB_MAX} MiB of memory")));
    }
    let BundledAttempt { tenant, execution_id, run, workflow, workflow_version, unit, task, .. } = told;
    let attempt = Attempt {
        info: Info {
            unit: UnitRef { run: RunKey { tenant, execution: execution_id, run }, unit },
            workflow,
            workflow_version,
            task,
            attempt: args.attempt.unwrap_or(told.attempt),
            redelivery: told.redelivery,
            deadline: told.deadline_ms,
        },
        input: match &args.input {
            Some(input) => input::payload(input)?,
            None => bundle.input,
        },
        limits,
        grant: Arc::new(Grant { settings: environment, egress: EgressPolicy::default() }),
        wall: args.timeout.unwrap_or(bundle.timeout_ms),
        progress: Progress::starting_with(last_progress),
        cancel: Cancel::new(),
        answers: Answers::Replayed(Arc::new(recording)),
    };
    Ok(Plan { component, attempt, recorded: Some(end) })
}

fn read_bundle(path: &std::path::Path) -> Result<Bundle, Error> {
    let bytes = input::file(path, BUNDLE_BYTES_MAX)?;
    let wrong = |problem: String| Error::Usage(format!("`{}` is not a recorded attempt: {problem}", path.display()));
    let bundle: Bundle = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match bundle.format {
        BUNDLE_FORMAT => Ok(bundle),
        other => Err(wrong(format!("its form is {other}, and this program reads form {BUNDLE_FORMAT}"))),
    }
}

/// Returns the component of a bundle, when it is the one that was recorded.
fn content(content: Option<&str>, digest: &Digest) -> Result<Bytes, Error> {
    let missing = "the recorded attempt comes without its module: name the component before `--replay`";
    let content = content.ok_or_else(|| Error::Usage(missing.to_owned()))?;
    let bytes = STANDARD.decode(content).ok().filter(|bytes| Digest::of(bytes) == *digest);
    let damaged = "the module in the recorded attempt is damaged: pull it again";
    bytes.map(Bytes::from).ok_or_else(|| Error::Usage(damaged.to_owned()))
}

fn mib(mib: u32) -> usize {
    usize::try_from(u64::from(mib) * 1024 * 1024).unwrap_or(usize::MAX)
}

/// Says whether an attempt came to the end that was recorded.
fn compared(outcome: &Result<Payload, Failure>, recorded: BundledEnd) -> String {
    if BundledEnd::from(outcome.clone()) == recorded {
        return "it ended as it was recorded".to_owned();
    }
    match recorded {
        BundledEnd::Output(_) => "it ended otherwise than it was recorded: then it had another output".to_owned(),
        BundledEnd::Error(Failure { code, message, .. }) => {
            format!("it ended otherwise than it was recorded: then it failed: {code}: {message}")
        }
    }
}

/// What the task is told of its execution: there is none, so that the names say so.
fn info(task: TaskName, attempt: u32, timeout: Millis) -> Result<Info, Error> {
    let odd = |error: crate::model::Invalid| Error::Server(error.into());
    let execution = ExecutionId::new("module-run").map_err(odd)?;
    Ok(Info {
        unit: UnitRef {
            run: RunKey { tenant: TenantId::default_tenant(), execution, run: 1 },
            unit: UnitKey::new("run").map_err(odd)?,
        },
        workflow: WorkflowName::new("module-run").map_err(odd)?,
        workflow_version: WorkflowVersion::new("1").map_err(odd)?,
        task,
        attempt,
        redelivery: false,
        deadline: Some(Clock::system().now().after(timeout)),
    })
}

/// Says what the attempt logged and reported, and what it used of what it may.
fn tell(finished: &Finished, limits: sandbox::Limits) {
    for LogLine { level, message, fields, .. } in &finished.logs {
        let fields = fields.as_ref().map(|fields| format!(" {}", fields.as_str())).unwrap_or_default();
        say(&format!("{:<5} {message}{fields}", format!("{level:?}").to_uppercase()));
    }
    if finished.log_lines_left_out > 0 {
        say(&format!("{} lines of the log were left out", finished.log_lines_left_out));
    }
    if let Some(progress) = &finished.progress {
        say(&format!("progress {}", progress.as_str()));
    }
    if let Some(unrecorded) = &finished.unrecorded {
        say(unrecorded);
    }
    if let Some(instructions) = finished.instructions {
        say(&format!("{instructions} instructions"));
    }
    say(&used(&finished.usage, limits));
}

fn used(usage: &Usage, limits: sandbox::Limits) -> String {
    let Usage { cpu_ms, wall_ms, memory_peak_bytes, input_bytes, output_bytes, .. } = usage;
    let (memory_kib, memory_kib_max) = (memory_peak_bytes.div_ceil(1024), limits.memory_bytes / 1024);
    format!(
        "processor time {cpu_ms} ms of {} ms, wall {wall_ms} ms, memory {memory_kib} KiB of {memory_kib_max} KiB, \
         input {input_bytes} bytes, output {output_bytes} bytes",
        limits.cpu.0
    )
}

fn sentence(failure: &Failure) -> String {
    let details = failure.details.as_ref().map(|details| format!("\n  {}", details.as_str())).unwrap_or_default();
    let retryable = if failure.retryable { ", worth another try" } else { "" };
    format!("the task failed: {}: {} ({:?}{retryable}){details}", failure.code, failure.message, failure.origin)
}

fn raw(payload: &Payload) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(payload.as_str().to_owned()).map_err(|error| Error::Server(error.into()))
}
