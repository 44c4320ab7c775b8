//! Goes on: starts every step whose dependencies are resolved, and ends the run when nothing is left.

use super::{complete, decision::Effect, evaluate, resolve, turn::Turn, wind_down};
use crate::{
    model::{
        Failure, Payload, SignalName, Status, StepIndex, UnitKey, code,
        event::{
            ScheduledInput, SignalConsumed, StepFailed, StepScheduled, StepSkipped, StepSucceeded, TimerStarted,
            UnitTimeouts,
        },
        execution::Target,
        row::TimerKey,
    },
    workflow::{Await, Definition, Kind, Task},
};

/// Does everything that the state allows now, within the bound of the turn.
pub(super) fn advance(turn: &mut Turn<'_>) {
    while turn.execution.status == Status::Running && !turn.is_full() {
        let Some(index) = turn.execution.startable.first().copied() else { break };
        if let Err(error) = start_step(turn, index) {
            let unit = unit_key(turn, index);
            turn.record(StepFailed { unit, error });
        }
    }
    if turn.execution.is_through() {
        complete::advance(turn);
    }
    wind_down::advance(turn);
    if turn.is_full() && turn.execution.waiting() == crate::model::row::Waiting::Turn && !turn.execution.is_through() {
        turn.also(Effect::Continue);
    }
}

fn unit_key(turn: &Turn<'_>, index: StepIndex) -> UnitKey {
    turn.definition.plan.step(index).unit.clone()
}

/// Starts one step. An error fails the step.
fn start_step(turn: &mut Turn<'_>, index: StepIndex) -> Result<(), Failure> {
    let definition: &Definition = turn.definition;
    let unit = unit_key(turn, index);
    let step = definition.step(index);
    if let Some(when) = &step.when
        && !evaluate::holds(turn, when)?
    {
        turn.record(StepSkipped { unit });
        return Ok(());
    }
    room_for_events(turn)?;
    match &step.kind {
        Kind::Compute(template) => {
            let output = evaluate::render(turn, template)?;
            room_for(turn, &output)?;
            turn.record(StepSucceeded { unit, attempt: 0, output, delivery: None, served: None });
        }
        Kind::Sleep(span) => {
            let due_at_ms = turn.now.after(evaluate::span(turn, span)?);
            turn.record(opened(unit.clone()));
            turn.record(TimerStarted { timer: TimerKey::Sleep(unit), due_at_ms });
        }
        Kind::Await(wait) => start_await(turn, unit, wait)?,
        Kind::Task(task) => start_task(turn, unit, task)?,
    }
    Ok(())
}

/// The event that opens a timer or an await.
fn opened(unit: UnitKey) -> StepScheduled {
    StepScheduled { unit, attempt: 0, input: None, target: None, module: None, timeouts: None }
}

fn start_await(turn: &mut Turn<'_>, unit: UnitKey, wait: &Await) -> Result<(), Failure> {
    let timeout = wait.timeout.as_ref().map(|span| evaluate::span(turn, span)).transpose()?;
    turn.record(opened(unit.clone()));
    if consume_signal(turn, &unit, &wait.signal) {
        return Ok(());
    }
    if let Some(span) = timeout {
        let due_at_ms = turn.now.after(span);
        turn.record(TimerStarted { timer: TimerKey::Await(unit), due_at_ms });
    }
    Ok(())
}

/// Gives the oldest unconsumed signal of this name to a waiting unit; returns whether there was one.
pub(super) fn consume_signal(turn: &mut Turn<'_>, unit: &UnitKey, name: &SignalName) -> bool {
    let Some(signal) = turn.execution.signals.get(name).and_then(|line| line.front()).cloned() else { return false };
    turn.record(SignalConsumed { unit: unit.clone(), name: name.clone(), signal_seq: signal.seq });
    turn.record(StepSucceeded { unit: unit.clone(), attempt: 0, output: signal.payload, delivery: None, served: None });
    true
}

fn start_task(turn: &mut Turn<'_>, unit: UnitKey, task: &Task) -> Result<(), Failure> {
    let input = evaluate::render(turn, &task.input)?;
    room_for(turn, &input)?;
    let timeouts = UnitTimeouts {
        attempt_ms: evaluate::span(turn, &task.timeouts.attempt)?,
        heartbeat_ms: task.timeouts.heartbeat.as_ref().map(|span| evaluate::span(turn, span)).transpose()?,
        queue_ms: task.timeouts.queue.as_ref().map(|span| evaluate::span(turn, span)).transpose()?,
    };
    let total = task.timeouts.total.as_ref().map(|span| evaluate::span(turn, span)).transpose()?;
    let module = resolve::module(turn, task)?;
    turn.record(StepScheduled {
        unit: unit.clone(),
        attempt: 1,
        input: Some(ScheduledInput { json: input }),
        target: Some(if module.is_some() { Target::Module } else { Target::Worker }),
        module,
        timeouts: Some(timeouts),
    });
    if let Some(span) = total {
        let due_at_ms = turn.now.after(span);
        turn.record(TimerStarted { timer: TimerKey::Total(unit), due_at_ms });
    }
    Ok(())
}

/// Whether the state may hold another payload.
pub(super) fn room_for(turn: &Turn<'_>, payload: &Payload) -> Result<(), Failure> {
    let state_bytes_max = turn.facts.limits.state_bytes;
    let size = u64::try_from(payload.size_bytes()).unwrap_or(u64::MAX);
    if turn.execution.state_bytes.saturating_add(size) > state_bytes_max {
        let message = format!(
            "the run holds {} bytes of payloads; at most {state_bytes_max} are allowed",
            turn.execution.state_bytes
        );
        return Err(Failure::engine(code::LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// Whether the history may grow by new work. Winding down has room beyond.
pub(super) fn room_for_events(turn: &Turn<'_>) -> Result<(), Failure> {
    let events_max = turn.facts.limits.events;
    if turn.execution.last_seq >= events_max {
        return Err(Failure::engine(
            code::LIMIT_EXCEEDED,
            format!("the run has {events_max} events, which is the most it may have"),
        ));
    }
    Ok(())
}
