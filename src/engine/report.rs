//! Commands `Report`, `Lost` and `Stopped`: how deliveries end.

use super::{
    command::{Lost, Refusal, Report},
    decision::{Answer, Effect},
    progress::{room_for, room_for_events},
    resolve, retry,
    turn::Turn,
};
use crate::{
    model::{
        DeliveryId, Failure, Payload, StepIndex, UnitKey, UnitStatus, code,
        event::{
            ProgressRecorded, RetryScheduled, StaleResultIgnored, StepAttemptFailed, StepAttemptUncertain,
            StepCancelled, StepFailed, StepSucceeded,
        },
        execution::STALE_MAX,
        row::TimerKey,
    },
    workflow::{Kind, Task},
};

/// Judges a report: the delivery that decided repeats itself; a success of an unresolved unit or a failure of its current
/// attempt decides; all else is stale.
pub(super) fn decide_report(turn: &mut Turn<'_>, report: Report) -> Result<Answer, Refusal> {
    let Some((index, task)) = task_of(turn, &report.unit) else {
        return Ok(Answer::Reported { accepted: false });
    };
    let unit = turn.execution.unit(index);
    let succeeded = report.outcome.is_ok();
    if let (Some(delivery), Some((decided, outcome))) = (report.delivery, unit.more().and_then(|more| more.decided))
        && delivery == decided
    {
        if outcome != succeeded {
            note_stale(turn, index, &report);
        }
        return Ok(Answer::Reported { accepted: outcome == succeeded });
    }
    let unresolved = matches!(unit.status, UnitStatus::Scheduled | UnitStatus::Retrying);
    let current = unit.status == UnitStatus::Scheduled && unit.attempt == report.attempt;
    if turn.execution.status.is_terminal() || !(if succeeded { unresolved } else { current }) {
        note_stale(turn, index, &report);
        return Ok(Answer::Reported { accepted: false });
    }
    match report.outcome {
        Ok(output) => match room_for(turn, &output) {
            Ok(()) => turn.record(StepSucceeded {
                unit: report.unit,
                attempt: report.attempt,
                output,
                delivery: report.delivery,
                served: report.served,
            }),
            Err(error) => turn.record(StepFailed { unit: report.unit, error }),
        },
        Err(error) => {
            turn.record(StepAttemptFailed {
                unit: report.unit,
                attempt: report.attempt,
                error: error.clone(),
                delivery: report.delivery,
                served: report.served,
            });
            after_failure(turn, index, task, error, report.progress);
        }
    }
    Ok(Answer::Reported { accepted: true })
}

/// A delivery was lost: the same attempt is ready again, until its losses pass what is forgiven.
pub(super) fn decide_lost(turn: &mut Turn<'_>, lost: Lost) -> Result<Answer, Refusal> {
    let (index, task) = task_of(turn, &lost.unit).ok_or(Refusal::Over)?;
    let unit = turn.execution.unit(index);
    let known = unit.more().is_some_and(|more| more.lost.contains(&lost.delivery));
    if turn.execution.status.is_terminal()
        || unit.status != UnitStatus::Scheduled
        || unit.attempt != lost.attempt
        || known
    {
        return Err(Refusal::Over);
    }
    let losses = unit.more().map_or(0, |more| more.lost.len()) + 1;
    let stopping = unit.more().is_some_and(|more| more.stopping);
    record_progress(turn, &lost.unit, lost.attempt, lost.progress);
    turn.record(StepAttemptUncertain {
        unit: lost.unit.clone(),
        attempt: lost.attempt,
        delivery: lost.delivery,
        reason: lost.reason,
        served: lost.served.clone(),
    });
    if stopping {
        turn.record(StepCancelled { unit: lost.unit, uncertain: true });
    } else if losses > task.retry.max_redeliveries as usize {
        let message = format!("{losses} deliveries of attempt {} were lost", lost.attempt);
        let error = Failure::engine(code::WORKER_LOST, message);
        turn.record(StepAttemptFailed {
            unit: lost.unit,
            attempt: lost.attempt,
            error: error.clone(),
            delivery: None,
            served: lost.served,
        });
        after_failure(turn, index, task, error, None);
    }
    Ok(Answer::Done)
}

/// A unit that was told to stop was still in its queue.
pub(super) fn decide_stopped(turn: &mut Turn<'_>, unit: &UnitKey, attempt: u32) -> Result<Answer, Refusal> {
    let (index, _) = task_of(turn, unit).ok_or(Refusal::Over)?;
    let state = turn.execution.unit(index);
    let stopping = state.more().is_some_and(|more| more.stopping);
    if turn.execution.status.is_terminal()
        || state.status != UnitStatus::Scheduled
        || state.attempt != attempt
        || !stopping
    {
        return Err(Refusal::Over);
    }
    let uncertain = state.more().is_some_and(|more| !more.lost.is_empty());
    turn.record(StepCancelled { unit: unit.clone(), uncertain });
    Ok(Answer::Done)
}

/// An attempt failed: another is scheduled, or the unit fails; one that was told to stop ends so.
fn after_failure(turn: &mut Turn<'_>, index: StepIndex, task: &Task, error: Failure, progress: Option<Payload>) {
    let plan_step = turn.definition.plan.step(index);
    let unit_key = plan_step.unit.clone();
    let unit = turn.execution.unit(index);
    if unit.more().is_some_and(|more| more.stopping) || turn.execution.abort.is_some() {
        turn.record(StepCancelled { unit: unit_key, uncertain: false });
        return;
    }
    let attempt = unit.attempt;
    let traps = unit.more().map_or(0, |more| more.traps);
    if !retry::follows(&task.retry, &error, &retry::Standing { attempt, traps }) {
        turn.record(StepFailed { unit: unit_key, error });
        return;
    }
    if let Err(error) = room_for_events(turn) {
        turn.record(StepFailed { unit: unit_key, error });
        return;
    }
    record_progress(turn, &unit_key, attempt, progress);
    let total = turn.execution.timers.get(&TimerKey::Total(unit_key.clone())).copied();
    let due_at_ms = retry::due_at(&task.retry, &error, attempt, (&turn.execution.key, &unit_key), turn.now, total);
    turn.record(RetryScheduled { unit: unit_key, attempt: attempt.saturating_add(1), due_at_ms });
}

fn record_progress(turn: &mut Turn<'_>, unit: &UnitKey, attempt: u32, progress: Option<Payload>) {
    if let Some(details) = progress {
        turn.record(ProgressRecorded { unit: unit.clone(), attempt, details });
    }
}

/// Records a late report: once per delivery, at most [`STALE_MAX`] per unit, and never after the terminal event. Its
/// holder is told to stop.
fn note_stale(turn: &mut Turn<'_>, index: StepIndex, report: &Report) {
    let Some(delivery) = report.delivery else { return };
    let stale: &[DeliveryId] = turn.execution.unit(index).more().map_or(&[], |more| &more.stale);
    if turn.execution.status.is_terminal() || stale.len() >= STALE_MAX || stale.contains(&delivery) {
        return;
    }
    turn.record(StaleResultIgnored {
        unit: report.unit.clone(),
        attempt: report.attempt,
        delivery,
        succeeded: report.outcome.is_ok(),
    });
}

/// Returns the task step that a unit is an instance of.
fn task_of<'a>(turn: &Turn<'a>, unit: &UnitKey) -> Option<(StepIndex, &'a Task)> {
    let definition = turn.definition;
    let index = definition.plan.step_of(unit)?;
    match &definition.step(index).kind {
        Kind::Task(task) => Some((index, task)),
        Kind::Compute(_) | Kind::Sleep(_) | Kind::Await(_) => None,
    }
}

/// Opens the next attempt of a unit that waits for it.
pub(super) fn open_attempt(turn: &mut Turn<'_>, index: StepIndex, attempt: u32) {
    let unit_key = turn.definition.plan.step(index).unit.clone();
    let more = turn.execution.unit(index).more();
    let scheduled = crate::model::event::StepScheduled {
        unit: unit_key,
        attempt,
        input: None,
        target: more.and_then(|more| more.target),
        module: more.and_then(|more| more.module.as_ref()).map(|pin| resolve::again(turn, pin)),
        timeouts: more.and_then(|more| more.timeouts),
    };
    turn.record(scheduled);
}

/// Tells a scheduled unit to stop.
pub(super) fn tell_to_stop(turn: &mut Turn<'_>, index: StepIndex) {
    let unit = turn.definition.plan.step(index).unit.clone();
    let attempt = turn.execution.unit(index).attempt;
    turn.also(Effect::Stop(unit, attempt));
}
