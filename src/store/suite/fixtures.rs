//! Changes and rows for tests of stores.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::{
    model::{
        Event, Millis, Payload, Status, StoredEvent, TenantId, Timestamp,
        event::{
            FORMAT, ModulePin, ScheduledInput, StepScheduled, StepSucceeded, UnitTimeouts, WorkflowCompleted,
            WorkflowCreated, WorkflowStarted,
        },
        execution::Target,
        id::{DeliveryId, RunKey, UnitRef, sha256_hex},
        row::{ExecutionKey, KeyRow, LogLevel, LogLine, Note, Projection, ReadyRow, TimerRow, Waiting},
    },
    store::{Batch, Change, Conflict, Store, System, memory::Memory},
};

/// Reads an id; the text must keep its rule.
pub(in crate::store) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

pub(in crate::store) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Names the first run of an execution of the default tenant.
pub(in crate::store) fn run(execution: &str) -> RunKey {
    RunKey { tenant: tenant(), execution: id(execution), run: 1 }
}

/// Names a unit.
pub(in crate::store) fn unit(run: &RunKey, unit: &str) -> UnitRef {
    UnitRef { run: run.clone(), unit: id(unit) }
}

/// Stores an event.
pub(in crate::store) fn stored(seq: u64, event: impl Into<Event>) -> StoredEvent {
    let event = event.into();
    StoredEvent { seq, at: Timestamp(1_000), kind: event.kind().into(), format: FORMAT, fields: event.fields() }
}

/// Returns a change that starts a run with two events.
pub(in crate::store) fn start(run: &RunKey) -> Change {
    let created = WorkflowCreated {
        workflow: id("orders"),
        version: id("1"),
        definition_hash: id(&sha256_hex(b"orders")),
        input: Payload::trusted("{}"),
        labels: BTreeMap::new(),
        request_hash: "request".into(),
        start_at_ms: None,
    };
    Change {
        run: run.clone(),
        expected_seq: 0,
        events: vec![stored(1, created), stored(2, WorkflowStarted {})],
        projection: Projection {
            run: run.clone(),
            workflow: id("orders"),
            version: id("1"),
            definition_hash: id(&sha256_hex(b"orders")),
            status: Status::Running,
            last_seq: 2,
            waiting: Waiting::Signal,
            next_wake: None,
            created_at: Timestamp(1_000),
            updated_at: Timestamp(1_000),
            finished_at: None,
        },
        labels: BTreeMap::new(),
        ready_put: Vec::new(),
        ready_drop: Vec::new(),
        timers_put: Vec::new(),
        timers_drop: Vec::new(),
        pins_put: Vec::new(),
        pins_drop: Vec::new(),
        logs: Vec::new(),
        keys: Vec::new(),
    }
}

/// Returns a change that follows another with these events.
pub(in crate::store) fn follow(change: &Change, events: Vec<Event>) -> Change {
    let mut next = start(&change.run);
    next.expected_seq = change.projection.last_seq;
    next.events = (next.expected_seq + 1..).zip(events).map(|(seq, event)| stored(seq, event)).collect();
    next.projection = change.projection.clone();
    next.projection.last_seq += next.events.len() as u64;
    next.projection.updated_at = next.projection.updated_at.after(Millis(1));
    next
}

/// Returns a change that completes the run of another.
pub(in crate::store) fn complete(change: &Change) -> Change {
    let mut next = follow(change, vec![WorkflowCompleted { output: Payload::null() }.into()]);
    next.projection.status = Status::Completed;
    next.projection.waiting = Waiting::Nothing;
    next.projection.finished_at = Some(Timestamp(2_000));
    next
}

/// Returns the event that schedules a unit with this input.
pub(in crate::store) fn scheduled(unit: &str, input: &str) -> Event {
    let pin = ModulePin { name: None, alias: None, digest: id(&sha256_hex(b"module")), settings: 0 };
    StepScheduled {
        unit: id(unit),
        attempt: 1,
        input: Some(ScheduledInput { json: Payload::trusted(input) }),
        target: Some(Target::Module),
        module: Some(pin),
        timeouts: Some(timeouts()),
    }
    .into()
}

/// Returns the event that ends a unit with this output.
pub(in crate::store) fn succeeded(unit: &str, output: &str) -> Event {
    let output = Payload::trusted(output);
    StepSucceeded { unit: id(unit), attempt: 1, output, delivery: Some(DeliveryId(1)), served: None }.into()
}

fn timeouts() -> UnitTimeouts {
    UnitTimeouts { attempt_ms: Millis(30_000), heartbeat_ms: None, queue_ms: None }
}

/// Returns a ready row of the unit whose input is in this event.
pub(in crate::store) fn ready(run: &RunKey, name: &str, input_seq: u64) -> ReadyRow {
    ReadyRow {
        unit: unit(run, name),
        attempt: 1,
        workflow: id("orders"),
        workflow_version: id("1"),
        task: id("orders.price"),
        contract: None,
        queue: id("default"),
        target: Target::Module,
        module: Some(id(&sha256_hex(b"module"))),
        settings: None,
        node: None,
        priority: 5,
        timeouts: timeouts(),
        ready_at: Timestamp(1_000),
        losses: 0,
        redelivery: false,
        input_seq,
    }
}

/// Returns a change that starts a run and makes one unit ready, its input in event 3.
pub(in crate::store) fn start_with_unit(run: &RunKey, name: &str) -> Change {
    let mut change = start(run);
    change.events.push(stored(3, scheduled(name, r#"{"n":1}"#)));
    change.projection.last_seq = 3;
    change.projection.waiting = Waiting::Work;
    change.ready_put.push(ready(run, name, 3));
    change
}

/// Returns an armed timer.
pub(in crate::store) fn timer(run: &RunKey, text: &str, due_at: i64) -> TimerRow {
    TimerRow { run: run.clone(), timer: id(text), due_at: Timestamp(due_at) }
}

/// Returns a log line.
pub(in crate::store) fn line(message: &str) -> LogLine {
    LogLine {
        at_ms: Timestamp(1_000),
        unit: id("a"),
        attempt: 1,
        level: LogLevel::Warn,
        message: message.into(),
        fields: Some(Payload::trusted(r#"{"k":"\u0000"}"#)),
    }
}

/// Returns a kept answer.
pub(in crate::store) fn key(scope: &str, expires_at: i64) -> KeyRow {
    let request_hash = "request".into();
    KeyRow { tenant: tenant(), scope: scope.into(), request_hash, seq: 2, expires_at: Timestamp(expires_at) }
}

/// Returns a note of a delivery.
pub(in crate::store) fn note(delivery: u128) -> Note {
    Note { delivery: DeliveryId(delivery), worker: id("w-1"), session: id("s-1"), handed_at: Timestamp(1_500) }
}

/// A store whose rows a test can spoil.
#[async_trait]
pub(in crate::store) trait Spoil: System {
    /// Makes the row of an execution one that cannot be read.
    async fn spoil(&self, key: &ExecutionKey);
}

#[async_trait]
impl Spoil for Memory {
    async fn spoil(&self, key: &ExecutionKey) {
        self.spoil_execution(key);
    }
}

/// Commits changes and returns what became of each.
pub(in crate::store) async fn commit<S: Store + ?Sized>(
    store: &S,
    changes: impl IntoIterator<Item = Change>,
) -> Vec<Result<(), Conflict>> {
    let batch = Batch { changes: changes.into_iter().collect(), ..Batch::default() };
    store.commit(batch).await.unwrap().changes
}

/// Commits changes that all win.
pub(in crate::store) async fn write<S: Store + ?Sized>(store: &S, changes: impl IntoIterator<Item = Change>) {
    for outcome in commit(store, changes).await {
        outcome.unwrap();
    }
}
