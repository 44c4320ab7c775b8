//! Command `Start`.

use super::{
    command::{Refusal, Start},
    decision::Answer,
    evaluate,
    turn::Turn,
};
use crate::model::{
    event::{TimerStarted, WorkflowCreated, WorkflowFailed, WorkflowStarted},
    row::TimerKey,
};

/// Begins a run, or recognises the request that began it.
pub(super) fn decide(turn: &mut Turn<'_>, start: Start) -> Result<Answer, Refusal> {
    if let Some(created) = &turn.execution.created {
        let same = created.request_hash == start.request_hash;
        return if same { Ok(Answer::Started { created: false }) } else { Err(Refusal::Conflict) };
    }
    let start_at = start.start_at.filter(|at| *at > turn.now);
    turn.record(WorkflowCreated {
        workflow: start.workflow,
        version: start.version,
        definition_hash: start.definition_hash,
        input: start.input,
        labels: start.labels,
        request_hash: start.request_hash,
        start_at_ms: start_at,
    });
    match start_at {
        Some(due_at_ms) => turn.record(TimerStarted { timer: TimerKey::Start, due_at_ms }),
        None => begin(turn),
    }
    Ok(Answer::Started { created: true })
}

/// The steps may start, and the document's time-out counts from here.
pub(super) fn begin(turn: &mut Turn<'_>) {
    turn.record(WorkflowStarted {});
    let Some(timeout) = &turn.definition.timeout else { return };
    match evaluate::span(turn, timeout) {
        Ok(span) => {
            let due_at_ms = turn.now.after(span);
            turn.record(TimerStarted { timer: TimerKey::Workflow, due_at_ms });
        }
        Err(error) => turn.record(WorkflowFailed { error, unit: None }),
    }
}
