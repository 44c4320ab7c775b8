//! The fold: how each event changes the state. Total: an event that does not fit its state changes what it can and never
//! panics, so that a history is always readable.

use super::{
    code::{self, Failure},
    event::{Event, ModulePin, StepScheduled},
    execution::{Abort, Cause, Created, Execution, Held, PendingSignal, STALE_MAX, Status, UnitStatus},
    id::{Digest, ModuleName, UnitKey},
    json::Payload,
    plan::{Plan, StepIndex, StepKind},
    row::TimerKey,
    time::Timestamp,
};

/// Applies the next event of the run, decided at `at`.
pub fn apply(execution: &mut Execution, plan: &Plan, event: &Event, at: Timestamp) {
    execution.last_seq += 1;
    execution.updated_at = at;
    match event {
        Event::WorkflowCreated(event) => {
            execution.state_bytes += bytes(&event.input);
            execution.created = Some(Box::new(Created {
                workflow: event.workflow.clone(),
                version: event.version.clone(),
                definition_hash: event.definition_hash.clone(),
                input: event.input.clone(),
                labels: event.labels.clone(),
                request_hash: event.request_hash.clone(),
                at,
            }));
        }
        Event::WorkflowStarted(_) => {
            execution.started_at = Some(at);
            let free = plan.indexes().filter(|index| plan.step(*index).depends_on.is_empty());
            execution.startable.extend(free);
        }
        Event::StepScheduled(event) => scheduled(execution, plan, event, at),
        Event::StepSkipped(event) => {
            if let Some(index) = plan.step_of(&event.unit) {
                end(execution, plan, index, UnitStatus::Skipped, at);
                release(execution, plan, index);
            }
        }
        Event::StepSucceeded(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            execution.state_bytes += bytes(&event.output);
            end(execution, plan, index, UnitStatus::Succeeded, at);
            let unit = &mut execution.units[index.at()];
            unit.output = Some(event.output.clone());
            if event.delivery.is_some() || event.served.is_some() {
                let more = unit.more_mut();
                more.served.clone_from(&event.served);
                more.decided = event.delivery.map(|delivery| (delivery, true));
            }
            release(execution, plan, index);
        }
        Event::StepAttemptFailed(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            leave_scheduled(execution, index);
            let unit = &mut execution.units[index.at()];
            let more = unit.more_mut();
            more.traps += u32::from(event.error.code == code::TRAP);
            more.last_error = Some(event.error.clone());
            more.served.clone_from(&event.served);
            more.decided = event.delivery.map(|delivery| (delivery, false));
        }
        Event::StepAttemptUncertain(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            execution.units[index.at()].more_mut().lost.push(event.delivery);
        }
        Event::RetryScheduled(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            execution.units[index.at()].status = UnitStatus::Retrying;
            arm(execution, plan, TimerKey::Retry(event.attempt, event.unit.clone()), event.due_at_ms);
        }
        Event::StepFailed(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            end(execution, plan, index, UnitStatus::Failed, at);
            execution.units[index.at()].more_mut().error = Some(event.error.clone());
            abort(execution, at, Cause::Failure { unit: Some(event.unit.clone()), error: event.error.clone() });
        }
        Event::StepCancelled(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            end(execution, plan, index, UnitStatus::Cancelled, at);
            let more = execution.units[index.at()].more_mut();
            more.uncertain = event.uncertain;
            more.error = Some(Failure::engine(code::CANCELLED, "the unit was stopped"));
        }
        Event::TimerStarted(event) => arm(execution, plan, event.timer.clone(), event.due_at_ms),
        Event::TimerFired(event) => disarm(execution, plan, &event.timer),
        Event::SignalReceived(event) => {
            execution.state_bytes += bytes(&event.payload);
            execution.signal_count += 1;
            let signal = PendingSignal { seq: execution.last_seq, payload: event.payload.clone() };
            execution.signals.entry(event.name.clone()).or_default().push_back(signal);
        }
        Event::SignalConsumed(event) => {
            if let Some(waiting) = execution.signals.get_mut(&event.name) {
                let before = waiting.len();
                waiting.retain(|signal| signal.seq != event.signal_seq);
                execution.signal_count -= before - waiting.len();
                if waiting.is_empty() {
                    execution.signals.remove(&event.name);
                }
            }
        }
        Event::StaleResultIgnored(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            let stale = &mut execution.units[index.at()].more_mut().stale;
            if stale.len() < STALE_MAX {
                stale.push(event.delivery);
            }
        }
        Event::ProgressRecorded(event) => {
            let Some(index) = plan.step_of(&event.unit) else { return };
            execution.units[index.at()].more_mut().progress = Some(event.details.clone());
        }
        Event::CancelRequested(event) => {
            execution.cancel_requested = true;
            abort(execution, at, Cause::Cancel { reason: event.reason.clone() });
        }
        Event::Repinned(event) => {
            for alias in &event.aliases {
                execution.pins.insert((event.module.clone(), alias.clone()), event.digest.clone());
            }
            execution.settings.insert(event.module.clone(), event.settings);
            place_held(execution, &event.module, &event.digest);
            release_unneeded(execution);
        }
        Event::WorkflowTimeoutReached(_) => abort(execution, at, Cause::Timeout),
        Event::WorkflowCompleted(event) => {
            execution.output = Some(event.output.clone());
            close(execution, Status::Completed, at);
        }
        Event::WorkflowFailed(event) => {
            abort(execution, at, Cause::Failure { unit: event.unit.clone(), error: event.error.clone() });
            close(execution, Status::Failed, at);
        }
        Event::WorkflowCancelled(_) => close(execution, Status::Cancelled, at),
        Event::WorkflowTimedOut(_) => close(execution, Status::TimedOut, at),
    }
}

fn scheduled(execution: &mut Execution, plan: &Plan, event: &StepScheduled, at: Timestamp) {
    let Some(index) = plan.step_of(&event.unit) else { return };
    let seq = execution.last_seq;
    execution.startable.remove(&index);
    disarm(execution, plan, &TimerKey::Retry(event.attempt, event.unit.clone()));
    let unit = &mut execution.units[index.at()];
    if !unit.status.is_open() {
        execution.open += 1;
    }
    unit.attempt = event.attempt;
    unit.scheduled_at = Some(at);
    match &plan.step(index).kind {
        StepKind::Task => {
            if unit.status != UnitStatus::Scheduled {
                execution.scheduled += 1;
            }
            let had = if unit.status.is_open() { unit.more().and_then(|more| more.module.clone()) } else { None };
            unit.status = UnitStatus::Scheduled;
            let more = unit.more_mut();
            more.lost.clear();
            more.target = event.target;
            more.module.clone_from(&event.module);
            more.timeouts = event.timeouts;
            if let Some(input) = &event.input {
                execution.state_bytes += bytes(&input.json);
                more.input = Some(input.json.clone());
                more.input_seq = seq;
            }
            if let Some(pin) = &event.module
                && let Some(name) = &pin.name
            {
                execution.settings.entry(name.clone()).or_insert(pin.settings);
                if let Some(alias) = &pin.alias {
                    execution.pins.entry((name.clone(), alias.clone())).or_insert_with(|| pin.digest.clone());
                }
            }
            if had != event.module {
                hold(execution, event.module.as_ref());
                let_go(execution, had.as_ref());
            }
        }
        StepKind::Await(name) => {
            unit.status = UnitStatus::Waiting;
            execution.awaiting.entry(name.clone()).or_default().push_back(index);
        }
        StepKind::Sleep | StepKind::Compute => unit.status = UnitStatus::Waiting,
    }
}

/// Ends a unit: its counters, its timers, its place in the line for a signal.
fn end(execution: &mut Execution, plan: &Plan, index: StepIndex, status: UnitStatus, at: Timestamp) {
    leave_scheduled(execution, index);
    execution.startable.remove(&index);
    execution.to_stop.remove(&index);
    let unit = &mut execution.units[index.at()];
    if unit.status.is_ended() {
        return;
    }
    if unit.status.is_open() {
        execution.open -= 1;
    }
    execution.unended -= 1;
    let attempt = unit.attempt;
    let had = if unit.status.is_open() { unit.more().and_then(|more| more.module.clone()) } else { None };
    unit.status = status;
    unit.finished_at = Some(at);
    let_go(execution, had.as_ref());
    let step = plan.step(index);
    if let StepKind::Await(name) = &step.kind
        && let Some(line) = execution.awaiting.get_mut(name)
    {
        line.retain(|waiting| *waiting != index);
        if line.is_empty() {
            execution.awaiting.remove(name);
        }
    }
    for timer in timers_of(&step.unit, attempt) {
        disarm(execution, plan, &timer);
    }
}

/// An open unit has a digest of a tenant's module.
fn hold(execution: &mut Execution, pin: Option<&ModulePin>) {
    let Some(ModulePin { name: Some(module), alias, digest, .. }) = pin else { return };
    let at = place_held(execution, module, digest);
    execution.held[at].open += 1;
    execution.held[at].named |= alias.is_none();
}

fn place_held(execution: &mut Execution, module: &ModuleName, digest: &Digest) -> usize {
    let found = execution.held.iter().position(|held| held.digest == *digest && held.module == *module);
    found.unwrap_or_else(|| {
        execution.held.push(Held { module: module.clone(), digest: digest.clone(), open: 0, named: false });
        execution.held.len() - 1
    })
}

/// A unit that had a digest is open no more, or has another.
fn let_go(execution: &mut Execution, pin: Option<&ModulePin>) {
    let Some(ModulePin { name: Some(module), digest, .. }) = pin else { return };
    let found = execution.held.iter_mut().find(|held| held.digest == *digest && held.module == *module);
    let Some(held) = found else { return };
    held.open = held.open.saturating_sub(1);
    if held.open == 0 && !held.named {
        release_unneeded(execution);
    }
}

fn release_unneeded(execution: &mut Execution) {
    let pins = &execution.pins;
    let pinned =
        |held: &Held| pins.iter().any(|((module, _), digest)| *digest == held.digest && *module == held.module);
    execution.held.retain(|held| held.open > 0 || held.named || pinned(held));
}

/// Every timer that a unit at this attempt can have armed.
pub fn timers_of(unit: &UnitKey, attempt: u32) -> [TimerKey; 5] {
    [
        TimerKey::Sleep(unit.clone()),
        TimerKey::Await(unit.clone()),
        TimerKey::Retry(attempt.saturating_add(1), unit.clone()),
        TimerKey::Total(unit.clone()),
        TimerKey::Grace(unit.clone()),
    ]
}

/// The attempt of a scheduled unit is decided; the unit is open until the next event says what follows.
fn leave_scheduled(execution: &mut Execution, index: StepIndex) {
    let unit = &mut execution.units[index.at()];
    if unit.status == UnitStatus::Scheduled {
        execution.scheduled -= 1;
        unit.status = UnitStatus::Retrying;
    }
}

/// A resolved step frees those that waited for it alone.
fn release(execution: &mut Execution, plan: &Plan, index: StepIndex) {
    for dependant in &plan.step(index).dependants {
        let unit = &mut execution.units[dependant.at()];
        unit.open_dependencies = unit.open_dependencies.saturating_sub(1);
        if unit.open_dependencies == 0 && unit.status == UnitStatus::Pending {
            execution.startable.insert(*dependant);
        }
    }
}

fn arm(execution: &mut Execution, plan: &Plan, timer: TimerKey, due: Timestamp) {
    disarm(execution, plan, &timer);
    match &timer {
        TimerKey::Sleep(unit) | TimerKey::Await(unit) | TimerKey::Retry(_, unit) => {
            if let Some(index) = plan.step_of(unit) {
                execution.units[index.at()].more_mut().wake_at = Some(due);
            }
        }
        // Only a unit that was told to stop has this timer.
        TimerKey::Grace(unit) => {
            if let Some(index) = plan.step_of(unit) {
                execution.units[index.at()].more_mut().stopping = true;
                execution.to_stop.remove(&index);
            }
        }
        TimerKey::Start | TimerKey::Total(_) | TimerKey::Workflow | TimerKey::WindDown => {}
    }
    execution.timers_by_time.insert((due, timer.clone()));
    execution.timers.insert(timer, due);
}

fn disarm(execution: &mut Execution, plan: &Plan, timer: &TimerKey) {
    let Some((timer, due)) = execution.timers.remove_entry(timer) else { return };
    if let TimerKey::Sleep(unit) | TimerKey::Await(unit) | TimerKey::Retry(_, unit) = &timer
        && let Some(index) = plan.step_of(unit)
    {
        execution.units[index.at()].more_mut().wake_at = None;
    }
    execution.timers_by_time.remove(&(due, timer));
}

/// Records why the run winds down, unless it does already: one cause per run, the first.
fn abort(execution: &mut Execution, at: Timestamp, cause: Cause) {
    if execution.abort.is_none() && !execution.status.is_terminal() {
        execution.abort = Some(Abort { cause, at });
        execution.status = Status::Compensating;
        // The document's time-out no longer counts, and everything open is to be told to stop.
        if let Some(due) = execution.timers.remove(&TimerKey::Workflow) {
            execution.timers_by_time.remove(&(due, TimerKey::Workflow));
        }
        let open = execution.units.iter().enumerate().filter(|(_, unit)| unit.status.is_open());
        execution.to_stop = open.filter_map(|(at, _)| u32::try_from(at).ok().map(StepIndex)).collect();
    }
}

fn close(execution: &mut Execution, status: Status, at: Timestamp) {
    execution.status = status;
    execution.finished_at = Some(at);
    execution.startable.clear();
    execution.to_stop.clear();
    execution.timers.clear();
    execution.timers_by_time.clear();
    execution.awaiting.clear();
}

fn bytes(payload: &Payload) -> u64 {
    u64::try_from(payload.size_bytes()).unwrap_or(u64::MAX)
}
