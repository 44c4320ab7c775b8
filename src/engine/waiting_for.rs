//! Says in one sentence what an execution waits for.

use crate::{
    model::{
        Execution, Status, Timestamp, UnitStatus,
        execution::Target,
        row::{TimerKey, Waiting},
    },
    workflow::{Definition, Kind},
};

/// How many units a sentence names.
const NAMED_MAX: usize = 3;

/// Returns what an execution that is not terminal waits for; none of a terminal one.
pub fn waiting_for(execution: &Execution, definition: &Definition) -> Option<String> {
    let sentence = match execution.waiting() {
        Waiting::Nothing => return None,
        Waiting::Turn => "the engine, which has more to do".to_owned(),
        Waiting::Work => work(execution, definition),
        Waiting::Timer | Waiting::Signal => timers_and_signals(execution, definition),
    };
    Some(if execution.status == Status::Compensating { format!("winding down: {sentence}") } else { sentence })
}

fn work(execution: &Execution, definition: &Definition) -> String {
    let mut parts = Vec::new();
    for index in definition.plan.indexes() {
        let unit = execution.unit(index);
        if unit.status != UnitStatus::Scheduled {
            continue;
        }
        if parts.len() == NAMED_MAX {
            return format!("{} and {} more", parts.join("; "), execution.scheduled as usize - NAMED_MAX);
        }
        let key = &definition.plan.step(index).unit;
        let Kind::Task(task) = &definition.step(index).kind else { continue };
        let by = match unit.more().and_then(|more| more.target) {
            Some(Target::Module) => "the sandbox".to_owned(),
            _ => format!("a worker for `{}` on the queue `{}`", task.task, task.queue),
        };
        parts.push(format!("attempt {} of `{key}` by {by}", unit.attempt));
    }
    parts.join("; ")
}

fn timers_and_signals(execution: &Execution, definition: &Definition) -> String {
    let mut parts = Vec::new();
    for (name, line) in &execution.awaiting {
        for index in line {
            let unit = &definition.plan.step(*index).unit;
            let until = execution.timers.get(&TimerKey::Await(unit.clone()));
            let end = until.map(|at| format!(" until {at}")).unwrap_or_default();
            parts.push(format!("the signal `{name}` for `{unit}`{end}"));
        }
    }
    for (due, timer) in &execution.timers_by_time {
        parts.extend(timer_sentence(timer, *due));
    }
    let more = parts.len().saturating_sub(NAMED_MAX);
    parts.truncate(NAMED_MAX);
    let sentence = parts.join("; ");
    match (sentence.is_empty(), more) {
        (true, _) => "nothing: this is a fault, which the sweep repairs".to_owned(),
        (false, 0) => sentence,
        (false, more) => format!("{sentence} and {more} more"),
    }
}

fn timer_sentence(timer: &TimerKey, due: Timestamp) -> Option<String> {
    match timer {
        TimerKey::Start => Some(format!("its start at {due}")),
        TimerKey::Sleep(unit) => Some(format!("the timer of `{unit}` at {due}")),
        TimerKey::Retry(attempt, unit) => Some(format!("attempt {attempt} of `{unit}` at {due}")),
        TimerKey::Grace(unit) => Some(format!("`{unit}` to stop, until {due}")),
        TimerKey::Await(_) | TimerKey::Total(_) | TimerKey::Workflow | TimerKey::WindDown => None,
    }
}
