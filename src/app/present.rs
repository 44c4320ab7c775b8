//! Shows states: from what is in memory to the fields of the wire.

use super::{
    dispatch::{Held, Holder},
    view::{AbortView, ExecutionView, FailureView, UnitView, Units, millis},
};
use crate::{
    engine,
    model::{
        Execution, Failure, Payload, StepIndex, Unit, UnitStatus,
        event::ModulePin,
        execution::{Cause, Status},
        id::UnitRef,
    },
    workflow::Definition,
};

/// The most units in the state of an execution; the rest is a list of its own.
const UNITS_MAX: usize = 200;
/// The largest payload of a unit in the state of an execution, in bytes.
const UNIT_PAYLOAD_BYTES_MAX: usize = 4 * 1024;

/// Shows an execution with its first units. What is handed out is filled in by [`fill_held`].
pub(super) fn execution(execution: &Execution, definition: &Definition) -> ExecutionView {
    let created = execution.created();
    let mut truncated = execution.units.len() > UNITS_MAX;
    let shown = definition.plan.indexes().take(UNITS_MAX).map(|index| {
        let mut view = unit(execution, definition, index);
        truncated |= drop_large(&mut view.input) | drop_large(&mut view.output) | drop_large(&mut view.progress);
        (definition.plan.step(index).unit.to_string(), view)
    });
    let units = Units(shown.collect());
    let terminal = execution.status.is_terminal();
    ExecutionView {
        id: execution.key.execution.to_string(),
        execution_id: execution.key.execution.to_string(),
        workflow: created.workflow.to_string(),
        version: created.version.to_string(),
        definition_hash: created.definition_hash.to_string(),
        run: execution.key.run,
        status: execution.status.as_str().to_owned(),
        input: created.input.clone(),
        output: execution.output.clone(),
        error: error_of(execution),
        created_at_ms: created.at.0,
        updated_at_ms: execution.updated_at.0,
        finished_at_ms: millis(execution.finished_at),
        units,
        units_total: u64::try_from(execution.units.len()).unwrap_or(u64::MAX),
        truncated,
        abort: execution.abort.as_ref().map(|abort| abort_view(&abort.cause, abort.at.0)),
        compensation_order: Vec::new(),
        compensation: (terminal && execution.status != Status::Completed).then(|| "NONE".to_owned()),
        last_seq: execution.last_seq,
        waiting_for: engine::waiting_for(execution, definition),
        pins: execution
            .pins
            .iter()
            .map(|((name, alias), digest)| (format!("{name}@{alias}"), digest.to_string()))
            .collect(),
        labels: created.labels.clone(),
    }
}

fn drop_large(payload: &mut Option<Payload>) -> bool {
    let large = payload.as_ref().is_some_and(|payload| payload.size_bytes() > UNIT_PAYLOAD_BYTES_MAX);
    if large {
        *payload = None;
    }
    large
}

fn error_of(execution: &Execution) -> Option<FailureView> {
    let cause = &execution.abort.as_ref()?.cause;
    Some(match cause {
        Cause::Failure { error, .. } => failure(error),
        Cause::Cancel { reason } => stated(crate::model::code::CANCELLED, reason),
        Cause::Timeout => stated(crate::model::code::WORKFLOW_TIMEOUT, "the document's `timeout` was reached"),
    })
}

fn stated(code: &'static str, message: &str) -> FailureView {
    failure(&Failure::engine(code, message))
}

fn abort_view(cause: &Cause, at_ms: i64) -> AbortView {
    let (cause, code, message) = match cause {
        Cause::Failure { error, .. } => ("failure", Some(error.code.to_string()), Some(error.message.clone())),
        Cause::Cancel { reason } => ("cancel", None, Some(reason.clone())),
        Cause::Timeout => ("timeout", None, None),
    };
    AbortView { cause: cause.to_owned(), code, message, at_ms }
}

pub(super) fn failure(failure: &Failure) -> FailureView {
    FailureView {
        code: failure.code.to_string(),
        message: failure.message.clone(),
        origin: match failure.origin {
            crate::model::Origin::Engine => "engine",
            crate::model::Origin::Sandbox => "sandbox",
            crate::model::Origin::Task => "task",
        }
        .to_owned(),
        details: failure.details.clone(),
    }
}

/// Shows one unit whole.
pub(super) fn unit(execution: &Execution, definition: &Definition, index: StepIndex) -> UnitView {
    let unit: &Unit = execution.unit(index);
    let more = unit.more();
    let served = more.and_then(|more| more.served.as_ref());
    let key = &definition.plan.step(index).unit;
    let is_task = more.is_some_and(|more| more.target.is_some());
    UnitView {
        status: unit.status.as_str().to_owned(),
        attempt: unit.attempt,
        redelivery: more.is_some_and(|more| !more.lost.is_empty()),
        target: more.and_then(|more| more.target).map(|target| target.as_str().to_owned()),
        module: more.and_then(|more| more.module.as_ref()).map(module_text),
        worker_id: served.and_then(|served| served.worker_id.as_ref()).map(ToString::to_string),
        worker_session: served.and_then(|served| served.worker_session.as_ref()).map(ToString::to_string),
        input: more.and_then(|more| more.input.clone()),
        output: unit.output.clone(),
        error: more.and_then(|more| more.error.as_ref()).map(failure),
        last_error: more.and_then(|more| more.last_error.as_ref()).map(failure),
        progress: more.and_then(|more| more.progress.clone()),
        idempotency_key: is_task.then(|| UnitRef { run: execution.key.clone(), unit: key.clone() }.idempotency_key()),
        scheduled_at_ms: millis(unit.scheduled_at),
        dispatched_at_ms: millis(served.and_then(|served| served.dispatched_at_ms)),
        deadline_ms: None,
        wake_at_ms: millis(more.and_then(|more| more.wake_at)),
        finished_at_ms: millis(unit.finished_at),
        uncertain: more.is_some_and(|more| more.uncertain),
    }
}

fn module_text(pin: &ModulePin) -> String {
    match &pin.name {
        Some(name) => format!("{name}@{}", pin.digest),
        None => pin.digest.to_string(),
    }
}

/// Adds what only the dispatcher knows: that a scheduled unit is handed out, to whom, and how far it is.
pub(super) fn fill_held(view: &mut UnitView, held: Option<Held>) {
    let Some(held) =
        held.filter(|held| view.status == UnitStatus::Scheduled.as_str() && held.ready.row.attempt == view.attempt)
    else {
        return;
    };
    "RUNNING".clone_into(&mut view.status);
    view.redelivery = held.ready.row.redelivery;
    view.dispatched_at_ms = Some(held.handed_at.0);
    view.deadline_ms = Some(held.deadline.0);
    if held.progress.is_some() {
        view.progress = held.progress;
    }
    match held.holder {
        Holder::Session(session, worker) => {
            view.worker_session = Some(session.to_string());
            view.worker_id = Some(worker.to_string());
        }
        Holder::Noted(worker, _) => view.worker_id = Some(worker.to_string()),
        Holder::Sandbox(_, progress) => {
            if let Some(progress) = progress.last() {
                view.progress = Some(progress);
            }
        }
    }
}

/// Names a unit of an execution.
pub(super) fn unit_ref(execution: &Execution, definition: &Definition, index: StepIndex) -> UnitRef {
    UnitRef { run: execution.key.clone(), unit: definition.plan.step(index).unit.clone() }
}
