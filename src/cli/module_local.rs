//! `module inspect` and `module run`: a component in the sandbox of this process, without a server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    clock::Clock,
    model::{
        ExecutionId, Failure, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName, WorkflowVersion,
        delivery::Usage, facts::TaskSpec, id::UnitRef, row::LogLine,
    },
    sandbox::{self, Attempt, Cancel, Closed, Finished, Info, Inspected, Progress, Rejected, Sandbox},
};

use super::{
    Error,
    error::Refusal,
    input,
    module::MODULE_BYTES_MAX,
    output::{Output, Table, say},
};

/// Examines a component as an upload would, without a server
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module inspect guests/dist/orders.wasm")]
pub(super) struct Inspect {
    /// The component
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Runs one task of a component, without a server
///
/// Its output goes to standard output; its log, processor time and memory go to standard error. The exit code is 1 when
/// the task fails, 3 when the component would be refused.
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module run guests/dist/orders.wasm orders.price --input @order.json")]
pub(super) struct Run {
    /// The component
    file: PathBuf,
    /// The task
    task: String,
    /// The input: JSON, `@FILE`, or `@-` for standard input; without it `null`
    #[arg(long, short, value_name = "JSON|@FILE", default_value = "null", hide_default_value = true)]
    input: String,
    /// How much processor time it may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = Millis::parse)]
    cpu: Millis,
    /// How long it may take on the wall
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = Millis::parse)]
    timeout: Millis,
    /// How much linear memory it may have, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    memory: u32,
    /// The attempt that the task is told
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
    #[command(flatten)]
    output: Output,
}

/// What an upload would find.
#[derive(Serialize)]
struct Findings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    digest: &'a str,
    size_bytes: usize,
    imports: &'a [String],
    tasks: &'a [TaskSpec],
}

pub(super) async fn inspect(args: Inspect) -> Result<(), Error> {
    show(Bytes::from(input::file(&args.file, MODULE_BYTES_MAX)?), None, args.output).await
}

/// Examines a component and prints what was found; `file`: where it was put.
pub(super) async fn show(bytes: Bytes, file: Option<&Path>, output: Output) -> Result<(), Error> {
    let size_bytes = bytes.len();
    let sandbox = sandbox(sandbox::Config::default())?;
    let Inspected { digest, imports, tasks, .. } = examine(&sandbox, bytes).await?;
    let findings = Findings { file, digest: digest.as_str(), size_bytes, imports: &imports, tasks: &tasks };
    let value = to_raw_value(&findings).map_err(|error| Error::Server(error.into()))?;
    output.value(&value, || Ok(describe(&findings)))
}

fn describe(findings: &Findings<'_>) -> String {
    let imports = if findings.imports.is_empty() { "nothing".to_owned() } else { findings.imports.join(" ") };
    let mut table = Table::new(&["TASK", "VERSION", "DESCRIPTION"]);
    for TaskSpec { name, version, description, .. } in findings.tasks {
        table.row(vec![name.to_string(), version.to_string(), description.clone().unwrap_or_default()]);
    }
    let Findings { file, digest, size_bytes, .. } = findings;
    let file = file.map(|file| format!("file     {}\n", file.display())).unwrap_or_default();
    format!("{file}digest   {digest}\nsize     {size_bytes} bytes\nimports  {imports}\n\n{}", table.to_text())
}

pub(super) async fn run(args: Run) -> Result<(), Error> {
    let task = TaskName::new(&args.task).map_err(|error| Error::Usage(error.to_string()))?;
    let payload = input::payload(&args.input)?;
    let bytes = Bytes::from(input::file(&args.file, MODULE_BYTES_MAX)?);
    let usual = sandbox::Config::default();
    let memory_bytes = usize::try_from(u64::from(args.memory) * 1024 * 1024).unwrap_or(usize::MAX);
    let limits = sandbox::Limits { memory_bytes, cpu: args.cpu, ..usual.limits };
    let memory_all = usual.memory_bytes.max(memory_bytes as u64);
    let sandbox = sandbox(sandbox::Config { limits, max_concurrent: Some(1), memory_bytes: memory_all, ..usual })?;
    let found = examine(&sandbox, bytes).await?;
    if !found.tasks.iter().any(|spec| spec.name == task) {
        let known: Vec<_> = found.tasks.iter().map(|spec| format!("`{}`", spec.name)).collect();
        return Err(Error::Usage(format!("the module has no task `{task}`; it has {}", known.join(", "))));
    }
    let attempt = Attempt {
        info: info(task, args.attempt, args.timeout)?,
        input: payload,
        limits,
        grant: Arc::default(),
        wall: args.timeout,
        progress: Progress::default(),
        cancel: Cancel::new(),
    };
    let finished = sandbox.run(&found.module, attempt).await.map_err(|Closed| Error::Server(Closed.into()))?;
    tell(&finished, limits);
    match finished.outcome {
        Ok(output) => args.output.json(&raw(&output)?),
        Err(failure) => Err(Error::Failed(sentence(&failure))),
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

fn sandbox(config: sandbox::Config) -> Result<Sandbox, Error> {
    Sandbox::new(config).map_err(|error| Error::Server(error.into()))
}

async fn examine(sandbox: &Sandbox, bytes: Bytes) -> Result<Inspected, Error> {
    let refused = |rejected: Rejected| {
        let message = rejected.to_string();
        Error::Refused(Refusal { code: "MODULE_REJECTED".to_owned(), message, details: None, request_id: None })
    };
    sandbox.inspect(&TenantId::default_tenant(), bytes).await.map_err(refused)
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
