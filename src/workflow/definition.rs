//! A registered document, ready to be decided on: templates parsed, schemas compiled, dependencies numbered.

use std::collections::{BTreeMap, HashMap};

use super::{
    expression::{Expression, Template},
    schema::Schema,
};
use crate::model::{
    Alias, ContractVersion, DefinitionHash, Digest, Millis, ModuleName, NodeLabel, Plan, QueueName, SignalName,
    StepIndex, TaskName, WorkflowName, WorkflowVersion, code::Code,
};

/// A registered document.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: WorkflowName,
    /// Its version.
    pub version: WorkflowVersion,
    /// The digest of its canonical form.
    pub hash: DefinitionHash,
    /// For people.
    pub description: Option<String>,
    /// The numbers: who waits for whom.
    pub plan: Plan,
    /// What each step does, by its place in the plan.
    pub steps: Vec<Step>,
    /// How long a run may take.
    pub timeout: Option<Span>,
    /// The start input's schema.
    pub input: Option<Schema>,
    /// The result's schema.
    pub output: Option<Schema>,
    /// The declared signals with the schema of their payload.
    pub signals: BTreeMap<SignalName, Option<Schema>>,
    /// The queries.
    pub queries: BTreeMap<SignalName, Template>,
    /// What the document says of its tasks.
    pub contracts: HashMap<TaskName, Contract>,
    /// The result; without one it is null.
    pub result: Option<Template>,
}

/// What a step does, and when.
#[derive(Debug)]
pub struct Step {
    /// Where it stands in the document: a JSON pointer.
    pub pointer: String,
    /// Starts only where this holds.
    pub when: Option<Expression>,
    /// What it does.
    pub kind: Kind,
}

/// What a step does.
#[derive(Debug)]
pub enum Kind {
    /// Work for a module or a worker.
    Task(Box<Task>),
    /// A value that the engine evaluates.
    Compute(Template),
    /// A durable timer.
    Sleep(Span),
    /// Takes a signal.
    Await(Await),
}

/// A task step, `defaults` merged in.
#[derive(Debug)]
pub struct Task {
    /// The task.
    pub task: TaskName,
    /// Its input; `null` where the step has none.
    pub input: Template,
    /// The line its units stand in.
    pub queue: QueueName,
    /// Who may do it.
    pub target: TargetChoice,
    /// The module that is asked for by name.
    pub module: Option<ModuleRef>,
    /// Only a worker that announced this label may take it.
    pub node: Option<NodeLabel>,
    /// 0 (low) to 9.
    pub priority: u8,
    /// When and how often it is tried again.
    pub retry: Retry,
    /// How long it may take.
    pub timeouts: Timeouts,
}

/// Who may do a task's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// A module that serves the task, else a worker.
    Auto,
    /// Only a module.
    Module,
    /// Only a worker.
    Worker,
}

/// A module as a step names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleRef {
    /// `NAME` (alias `live`) or `NAME@ALIAS`.
    Alias(ModuleName, Alias),
    /// `NAME@sha256:…`.
    Digest(ModuleName, Digest),
}

/// When and how often a unit is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Attempts in all; 0: unlimited, then `timeouts.total` is there.
    pub max_attempts: u32,
    /// The delay before the second attempt.
    pub initial: Millis,
    /// By which each delay grows; at least 1.
    pub factor: f64,
    /// The longest delay.
    pub max: Millis,
    /// The share of a delay that is drawn by hash, 0 to 1.
    pub jitter: f64,
    /// Codes that are retried whatever the table says.
    pub retryable: Vec<Code>,
    /// Codes that are never retried; wins over all.
    pub non_retryable: Vec<Code>,
    /// How many lost deliveries of one attempt are forgiven.
    pub max_redeliveries: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial: Millis(1_000),
            factor: 2.0,
            max: Millis(60_000),
            jitter: 0.2,
            retryable: Vec::new(),
            non_retryable: Vec::new(),
            max_redeliveries: 5,
        }
    }
}

/// How long a unit may take.
#[derive(Debug)]
pub struct Timeouts {
    /// From the hand-over of a delivery to its end; 5 minutes where the document says nothing.
    pub attempt: Span,
    /// The longest silence about a delivery.
    pub heartbeat: Option<Span>,
    /// From ready to taken.
    pub queue: Option<Span>,
    /// Over all retries and restarts.
    pub total: Option<Span>,
}

/// A step that takes a signal.
#[derive(Debug)]
pub struct Await {
    /// The signal.
    pub signal: SignalName,
    /// How long it waits.
    pub timeout: Option<Span>,
    /// What the end of that time does.
    pub on_timeout: OnTimeout,
}

/// What the end of an await's time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTimeout {
    /// The step fails with `TIMEOUT`.
    Fail,
    /// The step succeeds with null.
    Null,
}

/// A span of a document: fixed, or a template that is evaluated when it is needed.
#[derive(Debug)]
pub enum Span {
    /// Known when the document was registered.
    Fixed(Millis),
    /// Evaluated to a duration text.
    Template(Template),
}

/// What a document says of a task.
#[derive(Debug, Default)]
pub struct Contract {
    /// The version that is asked for; none: any.
    pub version: Option<ContractVersion>,
    /// The schema of its input.
    pub input: Option<Schema>,
    /// The schema of its output.
    pub output: Option<Schema>,
}

impl Definition {
    /// Returns what a step does. The index must come from this definition's plan.
    pub fn step(&self, index: StepIndex) -> &Step {
        &self.steps[index.at()]
    }

    /// Returns what the document says of a task.
    pub fn contract(&self, task: &TaskName) -> Option<&Contract> {
        self.contracts.get(task)
    }
}
