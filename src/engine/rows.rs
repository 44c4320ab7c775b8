//! The rows that a state must have: made with each decision, and compared by the sweep.

use crate::{
    model::{
        Execution, Payload, StepIndex, Timestamp, UnitStatus,
        id::{UnitKey, UnitRef},
        row::{ReadyRow, SettingsRef, TimerRow},
    },
    workflow::{Definition, Kind},
};

/// Returns the ready row of a scheduled task unit with its input.
pub(super) fn ready_row(
    execution: &Execution,
    definition: &Definition,
    index: StepIndex,
    ready_at: Timestamp,
) -> Option<(ReadyRow, Payload)> {
    let unit = execution.unit(index);
    let more = unit.more()?;
    let Kind::Task(task) = &definition.step(index).kind else { return None };
    let losses = u32::try_from(more.lost.len()).unwrap_or(u32::MAX);
    let row = ReadyRow {
        unit: UnitRef { run: execution.key.clone(), unit: definition.plan.step(index).unit.clone() },
        attempt: unit.attempt,
        workflow: definition.name.clone(),
        workflow_version: definition.version.clone(),
        task: task.task.clone(),
        contract: definition.contract(&task.task).and_then(|contract| contract.version.clone()),
        queue: task.queue.clone(),
        target: more.target?,
        module: more.module.as_ref().map(|module| module.digest.clone()),
        settings: more.module.as_ref().and_then(SettingsRef::of),
        node: task.node.clone(),
        priority: task.priority,
        timeouts: more.timeouts?,
        ready_at,
        losses,
        redelivery: losses > 0,
        input_seq: more.input_seq,
    };
    Some((row, more.input.clone()?))
}

/// Returns every ready row and timer that the state must have.
pub fn rows_of(execution: &Execution, definition: &Definition) -> (Vec<(ReadyRow, Payload)>, Vec<TimerRow>) {
    if execution.status.is_terminal() {
        return (Vec::new(), Vec::new());
    }
    let scheduled = definition.plan.indexes().filter(|index| execution.unit(*index).status == UnitStatus::Scheduled);
    let ready = scheduled
        .filter_map(|index| {
            ready_row(execution, definition, index, execution.unit(index).scheduled_at.unwrap_or_default())
        })
        .collect();
    let timers = execution
        .timers
        .iter()
        .map(|(timer, due_at)| TimerRow { run: execution.key.clone(), timer: timer.clone(), due_at: *due_at })
        .collect();
    (ready, timers)
}

/// Returns the scheduled units that were told to stop, with their attempts: after a restart they are told again.
pub fn stopping(execution: &Execution, definition: &Definition) -> Vec<(UnitKey, u32)> {
    let told = definition.plan.indexes().filter(|index| {
        let unit = execution.unit(*index);
        unit.status == UnitStatus::Scheduled && unit.more().is_some_and(|more| more.stopping)
    });
    told.map(|index| (definition.plan.step(index).unit.clone(), execution.unit(index).attempt)).collect()
}
