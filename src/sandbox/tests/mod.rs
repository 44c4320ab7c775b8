//! The sandbox from outside: guests written as WebAssembly text go in, outcomes are looked at.

mod calls;
mod fairness;
mod fuzz;
pub(crate) mod guest;
mod limits;
mod tapes;
mod uploads;
mod wasi;

use std::sync::Arc;

use bytes::Bytes;

use crate::model::{
    ExecutionId, Millis, Payload, RunKey, TaskName, TenantId, UnitKey, WorkflowName, WorkflowVersion, code::Code,
    id::UnitRef,
};

use super::{Answers, Attempt, Cancel, Config, Finished, Info, Limits, Module, Progress, Rejected, Sandbox};
use guest::Guest;

/// A sandbox with one guest thread and few slots.
fn sandbox() -> Sandbox {
    sandbox_with(|_| ())
}

fn sandbox_with(change: impl FnOnce(&mut Config)) -> Sandbox {
    let limits = Limits { cpu: Millis(600_000), ..Limits::default() };
    let mut config = Config { max_concurrent: Some(4), threads: 1, limits, ..Config::default() };
    change(&mut config);
    Sandbox::new(config).unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(super) fn info(owner: &str) -> Info {
    Info {
        unit: UnitRef {
            run: RunKey { tenant: tenant(owner), execution: ExecutionId::new("e-1").unwrap(), run: 1 },
            unit: UnitKey::new("step").unwrap(),
        },
        workflow: WorkflowName::new("w").unwrap(),
        workflow_version: WorkflowVersion::new("1").unwrap(),
        task: TaskName::new("test").unwrap(),
        attempt: 1,
        redelivery: false,
        deadline: None,
    }
}

fn attempt() -> Attempt {
    Attempt {
        answers: Answers::Live,
        info: info("a"),
        input: Payload::parse(br#"{"n":1}"#).unwrap(),
        limits: Limits { cpu: Millis(100), ..Limits::default() },
        grant: Arc::default(),
        wall: Millis(60_000),
        progress: Progress::default(),
        cancel: Cancel::new(),
    }
}

/// An attempt without a limit of processor time that a test could reach.
fn unhurried() -> Attempt {
    Attempt { limits: Limits { cpu: Millis(600_000), ..Limits::default() }, ..attempt() }
}

async fn inspect(sandbox: &Sandbox, guest: &Guest) -> Module {
    inspect_bytes(sandbox, guest.build()).await.unwrap()
}

async fn inspect_bytes(sandbox: &Sandbox, bytes: Vec<u8>) -> Result<Module, Rejected> {
    Ok(sandbox.inspect(&tenant("a"), Bytes::from(bytes)).await?.module)
}

async fn run(sandbox: &Sandbox, guest: &Guest) -> Finished {
    let module = inspect(sandbox, guest).await;
    sandbox.run(&module, attempt()).await.unwrap()
}

fn code_of(finished: &Finished) -> &Code {
    match &finished.outcome {
        Ok(output) => panic!("it succeeded with {output}"),
        Err(failure) => &failure.code,
    }
}

fn message_of(finished: &Finished) -> &str {
    match &finished.outcome {
        Ok(output) => panic!("it succeeded with {output}"),
        Err(failure) => &failure.message,
    }
}

/// Loads a module that was accepted before.
async fn load(sandbox: &Sandbox, digest: &crate::model::Digest, bytes: Bytes) -> Result<Module, Rejected> {
    sandbox.load(&tenant("a"), digest, async { Ok(bytes) }).await
}
