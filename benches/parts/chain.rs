//! The decider and the fold, over a chain of tasks of which each reads the output of the one before.

use sandkeep::{
    engine::{Command, Decision, Report, Start, decide},
    model::{
        DeliveryId, Event, Execution, Facts, Payload, StoredEvent, TenantId, Timestamp, UnitKey, event::FORMAT, fold,
        id::RunKey,
    },
    workflow::{self, Definition},
};
use serde_json::{Value, json};

use super::{Failure, harness::Harness};

const OUTPUT: &str = r#"{"total_cents":1999,"currency":"EUR","lines":[{"sku":"A1","quantity":2}]}"#;

pub fn measure(harness: &Harness) -> Result<(), Failure> {
    let mut short = Chain::new(10)?;
    short.start()?;
    (0..4).try_for_each(|step| short.succeed(step))?;
    let report = succeeded(4)?;
    harness.measure(
        "decide: a step of a chain of 10",
        || (short.execution.clone(), Command::Report(report.clone())),
        |(mut execution, command)| {
            let decision = decide(&mut execution, &short.definition, command, &short.facts, NOW)?;
            match decision.events[..] {
                [Event::StepSucceeded(_), Event::StepScheduled(_)] => Ok((execution, decision)),
                _ => Err(format!("it decided {:?}", decision.events).into()),
            }
        },
    )?;

    // Two events to begin with, and two for each step.
    let mut long = Chain::new(500)?;
    long.start()?;
    (0..499).try_for_each(|step| long.succeed(step))?;
    let history = long.history.get(..1_000).ok_or("the history is too short")?;
    let plan = &long.definition.plan;
    harness.measure(
        "fold: a history of 1,000 events",
        || Execution::new(run(), plan),
        |mut execution| {
            for stored in history {
                fold::apply(&mut execution, plan, &Event::read(stored)?, stored.at);
            }
            Ok(execution)
        },
    )
}

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn run() -> RunKey {
    RunKey { tenant: TenantId::default_tenant(), execution: "order-2026-00417".parse().expect("an id"), run: 1 }
}

/// A chain with what a decision on it reads, and its history.
struct Chain {
    definition: Definition,
    execution: Execution,
    facts: Facts,
    history: Vec<StoredEvent>,
}

impl Chain {
    fn new(steps: usize) -> Result<Self, Failure> {
        let document = json!({
            "ir_version": "sandkeep-ir/1", "name": "chain", "version": "1",
            "steps": (0..steps).map(step).collect::<Vec<_>>(),
        });
        let definition = workflow::parse(document.to_string().as_bytes())
            .map_err(|problems| format!("the chain has problems: {problems:?}"))?
            .definition;
        let execution = Execution::new(run(), &definition.plan);
        Ok(Self { definition, execution, facts: Facts::default(), history: Vec::new() })
    }

    fn start(&mut self) -> Result<(), Failure> {
        let start = Start {
            workflow: self.definition.name.clone(),
            version: self.definition.version.clone(),
            definition_hash: self.definition.hash.clone(),
            input: Payload::parse(OUTPUT.as_bytes())?,
            labels: Default::default(),
            request_hash: String::new(),
            start_at: None,
        };
        self.decide(Command::Start(start))
    }

    fn succeed(&mut self, step: usize) -> Result<(), Failure> {
        self.decide(Command::Report(succeeded(step)?))
    }

    fn decide(&mut self, command: Command) -> Result<(), Failure> {
        let Decision { events, .. } = decide(&mut self.execution, &self.definition, command, &self.facts, NOW)?;
        for event in events {
            let seq = self.history.len() as u64 + 1;
            let (kind, fields) = (event.kind().to_owned(), event.fields());
            self.history.push(StoredEvent { seq, at: NOW, kind, format: FORMAT, fields });
        }
        Ok(())
    }
}

fn step(at: usize) -> Value {
    let input = match at {
        0 => json!("${ input }"),
        _ => json!({ "before": format!("${{ steps.s{}.output }}", at - 1), "at": at }),
    };
    json!({ "id": format!("s{at}"), "task": "orders.price", "input": input })
}

fn succeeded(step: usize) -> Result<Report, Failure> {
    Ok(Report {
        unit: UnitKey::new(format!("s{step}"))?,
        attempt: 1,
        delivery: Some(DeliveryId(step as u128 + 1)),
        served: None,
        progress: None,
        outcome: Ok(Payload::parse(OUTPUT.as_bytes())?),
    })
}
