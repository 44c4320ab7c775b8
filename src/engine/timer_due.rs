//! Command `TimerDue`.

use super::{
    command::Refusal,
    decision::Answer,
    report::{open_attempt, tell_to_stop},
    start,
    turn::Turn,
    wind_down,
};
use crate::{
    model::{
        Failure, Payload, StepIndex, UnitKey, UnitStatus, code,
        event::{StepCancelled, StepFailed, StepSucceeded, TimerFired, WorkflowTimeoutReached},
        row::TimerKey,
    },
    workflow::{Kind, OnTimeout},
};

/// Fires a timer. One that is not armed any more fires into nothing; one that is not due is told when it is.
pub(super) fn decide(turn: &mut Turn<'_>, timer: &TimerKey) -> Result<Answer, Refusal> {
    let due = *turn.execution.timers.get(timer).ok_or(Refusal::Over)?;
    if due > turn.now {
        return Err(Refusal::NotDue(due));
    }
    if let TimerKey::Retry(attempt, unit) = timer {
        return retry_due(turn, *attempt, unit);
    }
    turn.record(TimerFired { timer: timer.clone() });
    match timer {
        TimerKey::Start => start::begin(turn),
        TimerKey::Sleep(unit) => succeed_with_null(turn, unit),
        TimerKey::Await(unit) => await_timed_out(turn, unit),
        TimerKey::Total(unit) => total_timed_out(turn, unit),
        TimerKey::Workflow => turn.record(WorkflowTimeoutReached {}),
        TimerKey::Grace(unit) => {
            if unit_status(turn, unit).is_some_and(UnitStatus::is_open) {
                turn.record(StepCancelled { unit: unit.clone(), uncertain: true });
            }
        }
        TimerKey::WindDown => wind_down::cut_short(turn),
        TimerKey::Retry(..) => {}
    }
    Ok(Answer::Done)
}

fn index_of(turn: &Turn<'_>, unit: &UnitKey) -> Option<StepIndex> {
    turn.definition.plan.step_of(unit)
}

fn unit_status(turn: &Turn<'_>, unit: &UnitKey) -> Option<UnitStatus> {
    index_of(turn, unit).map(|index| turn.execution.unit(index).status)
}

fn retry_due(turn: &mut Turn<'_>, attempt: u32, unit: &UnitKey) -> Result<Answer, Refusal> {
    let index = index_of(turn, unit).ok_or(Refusal::Over)?;
    if turn.execution.unit(index).status != UnitStatus::Retrying {
        return Err(Refusal::Over);
    }
    open_attempt(turn, index, attempt);
    Ok(Answer::Done)
}

fn succeed_with_null(turn: &mut Turn<'_>, unit: &UnitKey) {
    turn.record(StepSucceeded {
        unit: unit.clone(),
        attempt: 0,
        output: Payload::null(),
        delivery: None,
        served: None,
    });
}

fn await_timed_out(turn: &mut Turn<'_>, unit: &UnitKey) {
    let Some(index) = index_of(turn, unit) else { return };
    let Kind::Await(wait) = &turn.definition.step(index).kind else { return };
    match wait.on_timeout {
        OnTimeout::Null => succeed_with_null(turn, unit),
        OnTimeout::Fail => {
            let message = format!("no signal `{}` came in time", wait.signal);
            turn.record(StepFailed { unit: unit.clone(), error: Failure::engine(code::TIMEOUT, message) });
        }
    }
}

fn total_timed_out(turn: &mut Turn<'_>, unit: &UnitKey) {
    let Some(index) = index_of(turn, unit) else { return };
    let state = turn.execution.unit(index);
    if !state.status.is_open() {
        return;
    }
    if state.more().is_some_and(|more| more.stopping) {
        turn.record(StepCancelled { unit: unit.clone(), uncertain: true });
        return;
    }
    if state.status == UnitStatus::Scheduled {
        tell_to_stop(turn, index);
    }
    let message = "the unit was not resolved within `timeouts.total`";
    turn.record(StepFailed { unit: unit.clone(), error: Failure::engine(code::TOTAL_TIMEOUT, message) });
}
