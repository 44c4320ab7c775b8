//! Command `Signal`.

use super::{
    command::{Refusal, Signal},
    decision::{Answer, Effect},
    progress::consume_signal,
    turn::Turn,
};
use crate::model::{Status, event::SignalReceived};

/// Takes a signal in, and gives it to the step that waits for it longest.
pub(super) fn decide(turn: &mut Turn<'_>, signal: Signal) -> Result<Answer, Refusal> {
    let execution = &turn.execution;
    if execution.created.is_none() {
        return Err(Refusal::NotFound);
    }
    if !turn.definition.signals.contains_key(&signal.name) {
        return Err(Refusal::UnknownSignal(signal.name));
    }
    if execution.status.is_terminal() {
        return Err(Refusal::Closed(execution.status.as_str()));
    }
    let limits = &turn.facts.limits;
    if execution.signal_count >= limits.signals {
        return Err(Refusal::Limit(format!("the execution holds {} signals that no step has taken", limits.signals)));
    }
    if execution.last_seq >= limits.events {
        return Err(Refusal::Limit(format!("the run has {} events, which is the most it may have", limits.events)));
    }
    let size = u64::try_from(signal.payload.size_bytes()).unwrap_or(u64::MAX);
    if execution.state_bytes.saturating_add(size) > limits.state_bytes {
        return Err(Refusal::Limit(format!(
            "the run holds {} bytes of payloads, which is all it may",
            execution.state_bytes
        )));
    }
    let seq = turn.next_seq();
    if let Some(mut key) = signal.key {
        key.seq = seq;
        turn.also(Effect::Keep(key));
    }
    let name = signal.name.clone();
    turn.record(SignalReceived { name: signal.name, payload: signal.payload, command_id: signal.command_id });
    let waiting = turn.execution.awaiting.get(&name).and_then(|line| line.front()).copied();
    if let Some(index) = waiting
        && turn.execution.status == Status::Running
    {
        let unit = turn.definition.plan.step(index).unit.clone();
        consume_signal(turn, &unit, &name);
    }
    Ok(Answer::Signalled { seq })
}
