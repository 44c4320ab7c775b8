//! Commits of 64 changes into SQLite in a temporary directory, whose disk decides what a flush costs.

use std::collections::BTreeMap;

use sandkeep::{
    model::{
        DefinitionHash, DeliveryId, Event, Millis, Payload, QueueName, Status, StoredEvent, TaskName, TenantId,
        Timestamp, UnitKey, WorkflowName, WorkflowVersion,
        event::{FORMAT, ScheduledInput, StepScheduled, StepSucceeded, UnitTimeouts, WorkflowCreated, WorkflowStarted},
        execution::Target,
        id::{RunKey, UnitRef},
        row::{Projection, ReadyRow, Waiting},
    },
    store::{
        Batch, Change, Store as _,
        sqlite::{Durability, Options, Store},
    },
};

use super::{Failure, harness::Harness};

const CHANGES: u64 = 64;
const NOW: Timestamp = Timestamp(1_700_000_000_000);
const OUTPUT: &str = r#"{"total_cents":1999,"currency":"EUR"}"#;

pub fn measure(harness: &Harness) -> Result<(), Failure> {
    for (durability, name) in [(Durability::Full, "flushed"), (Durability::Relaxed, "not flushed")] {
        measure_starts(harness, durability, &format!("store: 64 starts, {name}"))?;
        measure_steps(harness, durability, &format!("store: 64 steps, {name}"))?;
    }
    Ok(())
}

/// New executions, each with its first unit ready.
fn measure_starts(harness: &Harness, durability: Durability, name: &str) -> Result<(), Failure> {
    if !harness.wants(name) {
        return Ok(());
    }
    let place = Place::new(durability)?;
    let mut next = 0;
    let set_up = || {
        next += CHANGES;
        (next - CHANGES..next).map(started).collect()
    };
    harness.measure(name, set_up, |changes| place.commit(changes))
}

/// A step of each of 64 chains: an output, and the next unit ready.
fn measure_steps(harness: &Harness, durability: Durability, name: &str) -> Result<(), Failure> {
    if !harness.wants(name) {
        return Ok(());
    }
    let place = Place::new(durability)?;
    let mut chains: Vec<Change> = (0..CHANGES).map(started).collect();
    place.commit(chains.clone())?;
    let set_up = || {
        chains = chains.iter().map(stepped).collect();
        chains.clone()
    };
    harness.measure(name, set_up, |changes| place.commit(changes))
}

/// A database in a directory that goes with it.
struct Place {
    runtime: tokio::runtime::Runtime,
    store: Store,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new(durability: Durability) -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let options = Options { durability, ..Options::new(directory.path().join("bench.db")) };
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { runtime, store: Store::open(options)?, _directory: directory })
    }

    fn commit(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let committed = self.runtime.block_on(self.store.commit(Batch { changes, ..Batch::default() }))?;
        committed.changes.into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }
}

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("the ids of this file keep the rules")
}

fn started(number: u64) -> Change {
    let run = RunKey { tenant: TenantId::default_tenant(), execution: id(&format!("order-{number:09}")), run: 1 };
    let created = WorkflowCreated {
        workflow: id("order"),
        version: id("1.0.0"),
        definition_hash: hash(),
        input: Payload::trusted(OUTPUT),
        labels: BTreeMap::new(),
        request_hash: String::new(),
        start_at_ms: None,
    };
    let events = vec![stored(1, created.into()), stored(2, WorkflowStarted {}.into()), stored(3, scheduled(0))];
    let projection = Projection {
        run: run.clone(),
        workflow: id::<WorkflowName>("order"),
        version: id::<WorkflowVersion>("1.0.0"),
        definition_hash: hash(),
        status: Status::Running,
        last_seq: 3,
        waiting: Waiting::Work,
        next_wake: None,
        created_at: NOW,
        updated_at: NOW,
        finished_at: None,
    };
    Change {
        ready_put: vec![ready(&run, 0, 3)],
        run,
        expected_seq: 0,
        events,
        projection,
        labels: BTreeMap::new(),
        ready_drop: Vec::new(),
        timers_put: Vec::new(),
        timers_drop: Vec::new(),
        pins_put: Vec::new(),
        pins_drop: Vec::new(),
        logs: Vec::new(),
        keys: Vec::new(),
    }
}

/// Returns the change of the step after the one of `before`.
fn stepped(before: &Change) -> Change {
    let seq = before.projection.last_seq;
    let step = (seq - 3) / 2;
    let succeeded = StepSucceeded {
        unit: unit(step),
        attempt: 1,
        output: Payload::trusted(OUTPUT),
        delivery: Some(DeliveryId(u128::from(seq))),
        served: None,
    };
    let mut next = before.clone();
    next.expected_seq = seq;
    next.events = vec![stored(seq + 1, succeeded.into()), stored(seq + 2, scheduled(step + 1))];
    next.projection.last_seq = seq + 2;
    next.ready_drop = vec![unit(step)];
    next.ready_put = vec![ready(&before.run, step + 1, seq + 2)];
    next
}

fn unit(step: u64) -> UnitKey {
    id(&format!("s{step}"))
}

fn hash() -> DefinitionHash {
    id(&sandkeep::model::id::sha256_hex(b"order"))
}

fn timeouts() -> UnitTimeouts {
    UnitTimeouts { attempt_ms: Millis(30_000), heartbeat_ms: None, queue_ms: None }
}

fn scheduled(step: u64) -> Event {
    StepScheduled {
        unit: unit(step),
        attempt: 1,
        input: Some(ScheduledInput { json: Payload::trusted(OUTPUT) }),
        target: Some(Target::Worker),
        module: None,
        timeouts: Some(timeouts()),
    }
    .into()
}

fn stored(seq: u64, event: Event) -> StoredEvent {
    StoredEvent { seq, at: NOW, kind: event.kind().to_owned(), format: FORMAT, fields: event.fields() }
}

fn ready(run: &RunKey, step: u64, input_seq: u64) -> ReadyRow {
    ReadyRow {
        unit: UnitRef { run: run.clone(), unit: unit(step) },
        attempt: 1,
        workflow: id("order"),
        workflow_version: id("1.0.0"),
        task: id::<TaskName>("orders.price"),
        contract: None,
        queue: QueueName::default_queue(),
        target: Target::Worker,
        module: None,
        settings: None,
        node: None,
        priority: 5,
        timeouts: timeouts(),
        ready_at: NOW,
        losses: 0,
        redelivery: false,
        input_seq,
    }
}
