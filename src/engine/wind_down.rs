//! Winding down: what runs is stopped, what is out is waited for, then the run ends as its cause says.

use super::{report::tell_to_stop, turn::Turn};
use crate::model::{
    StepIndex, UnitStatus,
    event::{StepCancelled, TimerStarted, WorkflowCancelled, WorkflowFailed, WorkflowTimedOut},
    execution::{Cause, Status},
    row::TimerKey,
};

/// Goes on with winding down, within the bound of the turn.
pub(super) fn advance(turn: &mut Turn<'_>) {
    if turn.execution.status != Status::Compensating {
        return;
    }
    while !turn.is_full() {
        let Some(index) = turn.execution.to_stop.first().copied() else { break };
        stop(turn, index);
    }
    if turn.execution.open == 0 {
        end(turn);
    } else if !turn.execution.timers.contains_key(&TimerKey::WindDown) {
        let due_at_ms = turn.now.after(turn.facts.limits.wind_down_timeout);
        turn.record(TimerStarted { timer: TimerKey::WindDown, due_at_ms });
    }
}

/// Stops one open unit: timers, waits and retries end now; work is told, and waited for.
fn stop(turn: &mut Turn<'_>, index: StepIndex) {
    let unit = turn.definition.plan.step(index).unit.clone();
    if turn.execution.unit(index).status != UnitStatus::Scheduled {
        let uncertain = turn.execution.unit(index).more().is_some_and(|more| !more.lost.is_empty());
        turn.record(StepCancelled { unit, uncertain });
        return;
    }
    let grace_end = turn.now.after(turn.facts.limits.cancel_grace);
    let total_end = turn.execution.timers.get(&TimerKey::Total(unit.clone())).copied();
    let due_at_ms = total_end.map_or(grace_end, |end| end.min(grace_end));
    turn.record(TimerStarted { timer: TimerKey::Grace(unit), due_at_ms });
    tell_to_stop(turn, index);
}

/// The time for winding down is over: whatever is open ends as it is.
pub(super) fn cut_short(turn: &mut Turn<'_>) {
    let open: Vec<StepIndex> =
        turn.definition.plan.indexes().filter(|index| turn.execution.unit(*index).status.is_open()).collect();
    for index in open {
        let unit = turn.definition.plan.step(index).unit.clone();
        turn.record(StepCancelled { unit, uncertain: true });
    }
}

fn end(turn: &mut Turn<'_>) {
    let Some(abort) = turn.execution.abort.clone() else { return };
    match abort.cause {
        Cause::Failure { unit, error } => turn.record(WorkflowFailed { error, unit }),
        Cause::Cancel { reason } => turn.record(WorkflowCancelled { reason }),
        Cause::Timeout => turn.record(WorkflowTimedOut {}),
    }
}
