//! What the decider says, told as sequences of commands and the events that follow.

mod properties;
mod repins;
mod reports;
mod steps;
mod wind_down;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Checked, Command, Decision, Effect, Lost, Refusal, Report, Signal, Start, check_result, decide};
use crate::{
    model::{
        DeliveryId, Event, Execution, ExecutionId, Facts, Failure, Payload, SignalName, StoredEvent, TenantId,
        Timestamp, UnitKey, UnitStatus, code::Code, event::FORMAT, fold, id::RunKey, row::TimerKey,
    },
    workflow::{self, Definition},
};

/// One execution with everything that a decision reads, and all that was decided.
pub(super) struct Bench {
    pub(super) definition: Arc<Definition>,
    pub(super) execution: Execution,
    pub(super) facts: Facts,
    pub(super) now: Timestamp,
    pub(super) history: Vec<(Event, Timestamp)>,
    pub(super) effects: Vec<Effect>,
    /// Whether a result that is to be checked is checked at once.
    pub(super) checks: bool,
}

/// Returns a document with these steps and nothing else of note.
pub(super) fn document(steps: Value) -> Value {
    json!({
        "ir_version": "sandkeep-ir/1", "name": "w", "version": "1",
        "signals": { "go": {}, "stop": {} },
        "steps": steps,
    })
}

pub(super) fn unit(key: &str) -> UnitKey {
    UnitKey::new(key).unwrap()
}

impl Bench {
    pub(super) fn new(document: &Value) -> Self {
        let parsed = workflow::parse(document.to_string().as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let definition = Arc::new(parsed.definition);
        let run = RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e").unwrap(), run: 1 };
        Self {
            execution: Execution::new(run, &definition.plan),
            definition,
            facts: Facts::default(),
            now: Timestamp(1_000),
            history: Vec::new(),
            effects: Vec::new(),
            checks: true,
        }
    }

    /// Starts an execution of these steps.
    pub(super) fn started(steps: Value) -> Self {
        let mut bench = Self::new(&document(steps));
        bench.start("{}").unwrap();
        bench
    }

    pub(super) fn start(&mut self, input: &str) -> Result<Answer, Refusal> {
        let start = Start {
            workflow: self.definition.name.clone(),
            version: self.definition.version.clone(),
            definition_hash: self.definition.hash.clone(),
            input: Payload::parse(input.as_bytes()).unwrap(),
            labels: Default::default(),
            request_hash: input.to_owned(),
            start_at: None,
        };
        self.ask(Command::Start(start))
    }

    /// Decides a command; a refusal must have changed nothing.
    pub(super) fn ask(&mut self, command: Command) -> Result<Answer, Refusal> {
        let before = self.execution.clone();
        match decide(&mut self.execution, &self.definition, command, &self.facts, self.now) {
            Ok(Decision { events, at, effects, answer }) => {
                self.history.extend(events.into_iter().map(|event| (event, at)));
                let goes_on = effects.contains(&Effect::Continue);
                let to_check = effects.iter().find_map(|effect| match effect {
                    Effect::Check(at, result) => Some((*at, result.clone())),
                    _ => None,
                });
                self.effects.extend(effects);
                if let Some((at, result)) = to_check.filter(|_| self.checks) {
                    let verdict = check_result(&self.definition, &result);
                    self.ask(Command::Checked(Checked { at, result, verdict }))?;
                }
                if goes_on {
                    self.ask(Command::Continue)?;
                }
                Ok(answer)
            }
            Err(refusal) => {
                assert_eq!(self.execution, before, "a refusal changes nothing");
                Err(refusal)
            }
        }
    }

    pub(super) fn report(&mut self, key: &str, attempt: u32, delivery: u128, outcome: Result<&str, Failure>) -> bool {
        let outcome = outcome.map(|text| Payload::parse(text.as_bytes()).unwrap());
        let report = Report {
            unit: unit(key),
            attempt,
            delivery: Some(DeliveryId(delivery)),
            served: None,
            progress: None,
            outcome,
        };
        match self.ask(Command::Report(report)).unwrap() {
            Answer::Reported { accepted } => accepted,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn succeed(&mut self, key: &str) -> bool {
        let attempt = self.unit(key).attempt;
        self.report(key, attempt, 1_000 + u128::from(attempt), Ok(r#"{"done":true}"#))
    }

    pub(super) fn fail(&mut self, key: &str, code: &str, retryable: bool) -> bool {
        let attempt = self.unit(key).attempt;
        self.report(
            key,
            attempt,
            2_000 + u128::from(attempt),
            Err(Failure::task(Code::new(code).unwrap(), "no", retryable)),
        )
    }

    pub(super) fn lose(&mut self, key: &str, delivery: u128) -> Result<Answer, Refusal> {
        let attempt = self.unit(key).attempt;
        self.ask(Command::Lost(Lost {
            unit: unit(key),
            attempt,
            delivery: DeliveryId(delivery),
            served: None,
            progress: None,
            reason: "gone".to_owned(),
        }))
    }

    pub(super) fn signal(&mut self, name: &str, payload: &str) -> Result<Answer, Refusal> {
        let payload = Payload::parse(payload.as_bytes()).unwrap();
        self.ask(Command::Signal(Signal { name: SignalName::new(name).unwrap(), payload, command_id: None, key: None }))
    }

    pub(super) fn timer(&mut self, timer: &str) -> Result<Answer, Refusal> {
        self.ask(Command::TimerDue(timer.parse::<TimerKey>().unwrap()))
    }

    pub(super) fn cancel(&mut self) -> Result<Answer, Refusal> {
        self.ask(Command::Cancel { reason: "enough".to_owned() })
    }

    pub(super) fn advance(&mut self, ms: i64) {
        self.now = Timestamp(self.now.0 + ms);
    }

    pub(super) fn unit(&self, key: &str) -> &crate::model::Unit {
        self.execution.unit(self.definition.plan.step_of(&unit(key)).unwrap())
    }

    pub(super) fn status(&self, key: &str) -> UnitStatus {
        self.unit(key).status
    }

    /// The types of all events since the start, with the unit where there is one.
    pub(super) fn story(&self) -> Vec<String> {
        let told = |event: &Event| match event.unit() {
            Some(unit) => format!("{} {unit}", event.kind()),
            None => event.kind().to_owned(),
        };
        self.history.iter().map(|(event, _)| told(event)).collect()
    }

    pub(super) fn tail(&self, count: usize) -> Vec<String> {
        let story = self.story();
        story[story.len().saturating_sub(count)..].to_vec()
    }

    pub(super) fn output(&self) -> Value {
        self.execution.output.as_ref().unwrap_or_else(|| panic!("no output: {:?}", self.story())).to_value()
    }

    /// The error that ended the execution, or would end it.
    pub(super) fn error(&self) -> Failure {
        match &self.execution.abort.as_ref().expect("it winds down").cause {
            crate::model::execution::Cause::Failure { error, .. } => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Folding what was stored gives the live state, after every prefix a state that the next event fits.
    pub(super) fn check_fold(&self) {
        let mut folded = Execution::new(self.execution.key.clone(), &self.definition.plan);
        for (at, (event, time)) in self.history.iter().enumerate() {
            let stored = StoredEvent {
                seq: at as u64 + 1,
                at: *time,
                kind: event.kind().to_owned(),
                format: FORMAT,
                fields: event.fields(),
            };
            fold::apply(&mut folded, &self.definition.plan, &Event::read(&stored).unwrap(), *time);
            assert_eq!(folded.last_seq, stored.seq);
        }
        assert_eq!(folded, self.execution);
    }
}
