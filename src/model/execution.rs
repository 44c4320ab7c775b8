//! The state of one run: what its history folds into. Changed in place by `fold`, shown to nobody before its commit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    code::Failure,
    delivery::Served,
    event::{ModulePin, UnitTimeouts},
    id::{
        Alias, DefinitionHash, DeliveryId, Digest, ModuleName, RunKey, SignalName, UnitKey, WorkflowName,
        WorkflowVersion,
    },
    json::Payload,
    plan::{Plan, StepIndex},
    row::{Projection, TimerKey, Waiting},
    time::Timestamp,
};

/// The status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Its steps run.
    Running,
    /// It winds down: what runs is stopped, then it ends.
    Compensating,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was out of time.
    TimedOut,
}

impl Status {
    /// Every status with its text.
    pub const ALL: [(Status, &'static str); 6] = [
        (Self::Running, "RUNNING"),
        (Self::Compensating, "COMPENSATING"),
        (Self::Completed, "COMPLETED"),
        (Self::Failed, "FAILED"),
        (Self::Cancelled, "CANCELLED"),
        (Self::TimedOut, "TIMED_OUT"),
    ];

    /// Returns whether nothing follows any more.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Running | Self::Compensating)
    }

    /// Returns its text.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(status, _)| *status == self).map(|(_, text)| *text).expect("ALL lists every status")
    }

    /// Reads its text, in any case.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(status, _)| *status)
    }
}

/// The status of a unit. That a scheduled one is handed out is known to the dispatcher alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnitStatus {
    /// Something it depends on is not resolved.
    Pending,
    /// Its attempt is ready or out.
    Scheduled,
    /// It waits for a timer or a signal.
    Waiting,
    /// It waits for its next attempt.
    Retrying,
    /// It has its output.
    Succeeded,
    /// Its `when` did not hold.
    Skipped,
    /// It failed for good.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl UnitStatus {
    /// Returns its text, as expressions and the wire show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Scheduled => "SCHEDULED",
            Self::Waiting => "WAITING",
            Self::Retrying => "RETRYING",
            Self::Succeeded => "SUCCEEDED",
            Self::Skipped => "SKIPPED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Returns whether the unit started and has not ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Scheduled | Self::Waiting | Self::Retrying)
    }

    /// Returns whether the unit ended.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::Failed | Self::Cancelled)
    }
}

/// Who may do a unit's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A module in the sandbox.
    Module,
    /// A native worker.
    Worker,
}

impl Target {
    /// Returns its text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Worker => "worker",
        }
    }
}

/// One instance of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its status.
    pub status: UnitStatus,
    /// How many of the steps that it depends on are not resolved.
    pub open_dependencies: u32,
    /// The attempt it is at, from 1; 0 before the first.
    pub attempt: u32,
    /// Its output, when it succeeded.
    pub output: Option<Payload>,
    /// When it was scheduled: the last attempt.
    pub scheduled_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What only tasks, timers and failures have.
    pub more: Option<Box<UnitMore>>,
}

/// The rarer part of a unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnitMore {
    /// A task's input.
    pub input: Option<Payload>,
    /// The seq of the event that holds the input.
    pub input_seq: u64,
    /// Who does the work.
    pub target: Option<Target>,
    /// The module that serves it.
    pub module: Option<ModulePin>,
    /// Its time-outs.
    pub timeouts: Option<UnitTimeouts>,
    /// Why it failed for good.
    pub error: Option<Failure>,
    /// Why its last attempt failed.
    pub last_error: Option<Failure>,
    /// Who served its last attempt.
    pub served: Option<Served>,
    /// Deliveries of the current attempt that were lost, newest last.
    pub lost: Vec<DeliveryId>,
    /// The delivery that decided the unit or its last attempt, and whether it succeeded.
    pub decided: Option<(DeliveryId, bool)>,
    /// Deliveries whose late report was recorded; at most [`STALE_MAX`].
    pub stale: Vec<DeliveryId>,
    /// How often it trapped.
    pub traps: u32,
    /// When its timer (sleep, time-out of an await, retry) is due.
    pub wake_at: Option<Timestamp>,
    /// The last progress that was recorded.
    pub progress: Option<Payload>,
    /// Whether it was told to stop.
    pub stopping: bool,
    /// Whether the work of a cancelled unit may have been done.
    pub uncertain: bool,
}

/// The most late reports of one unit that are recorded.
pub const STALE_MAX: usize = 16;

impl Unit {
    fn pending(open_dependencies: u32) -> Self {
        Self {
            status: UnitStatus::Pending,
            open_dependencies,
            attempt: 0,
            output: None,
            scheduled_at: None,
            finished_at: None,
            more: None,
        }
    }

    /// Returns the rarer part to change it.
    pub fn more_mut(&mut self) -> &mut UnitMore {
        self.more.get_or_insert_default()
    }

    /// Returns the rarer part where the unit has one.
    pub fn more(&self) -> Option<&UnitMore> {
        self.more.as_deref()
    }
}

/// Why a run winds down. One cause per run, the first.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// A unit failed uncaught.
    Failure {
        /// The unit; none where the run itself failed.
        unit: Option<UnitKey>,
        /// Why.
        error: Failure,
    },
    /// Someone asked for it.
    Cancel {
        /// Why.
        reason: String,
    },
    /// The document's `timeout`.
    Timeout,
}

/// The cause of winding down with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The cause.
    pub cause: Cause,
    /// When it came.
    pub at: Timestamp,
}

/// A digest that a run needs: a pin means it, an open unit has it, or a step names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The module.
    pub module: ModuleName,
    /// The digest.
    pub digest: Digest,
    /// How many open units have it.
    pub open: u32,
    /// Whether a step names the digest itself; then it is needed until the run ends.
    pub named: bool,
}

/// A signal that no step has taken.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingSignal {
    /// The `seq` of its event.
    pub seq: u64,
    /// What it carries.
    pub payload: Payload,
}

/// The state of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Which run.
    pub key: RunKey,
    /// The seq of the last event; 0 before the first.
    pub last_seq: u64,
    /// Its status.
    pub status: Status,
    /// What it was created with; none before its first event.
    pub created: Option<Box<Created>>,
    /// Whether its steps may start: `WorkflowStarted` came.
    pub started_at: Option<Timestamp>,
    /// When its last event was decided.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The units, by step of the plan.
    pub units: Vec<Unit>,
    /// Steps whose dependencies are resolved and that the decider has not looked at yet.
    pub startable: BTreeSet<StepIndex>,
    /// Open units that winding down has not told to stop yet.
    pub to_stop: BTreeSet<StepIndex>,
    /// Whether a cancel was recorded.
    pub cancel_requested: bool,
    /// How many units have not ended.
    pub unended: u32,
    /// How many units are open: started and not ended.
    pub open: u32,
    /// How many task units have an attempt ready or out.
    pub scheduled: u32,
    /// Signals that no step has taken, oldest first.
    pub signals: BTreeMap<SignalName, VecDeque<PendingSignal>>,
    /// How many those are.
    pub signal_count: usize,
    /// Steps that wait for a signal, in the order in which they began to.
    pub awaiting: BTreeMap<SignalName, VecDeque<StepIndex>>,
    /// The digest that each module and alias means for this run.
    pub pins: BTreeMap<(ModuleName, Alias), Digest>,
    /// The revision of each module's settings that holds for this run; 0: none were set when it first used the module.
    pub settings: BTreeMap<ModuleName, u64>,
    /// The digests that the run needs, each once.
    pub held: Vec<Held>,
    /// Armed timers.
    pub timers: BTreeMap<TimerKey, Timestamp>,
    /// The same, by time.
    pub timers_by_time: BTreeSet<(Timestamp, TimerKey)>,
    /// Why it winds down.
    pub abort: Option<Abort>,
    /// Its result.
    pub output: Option<Payload>,
    /// Bytes of payloads that the state holds.
    pub state_bytes: u64,
}

/// What a run was created with.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its version.
    pub version: WorkflowVersion,
    /// The content it runs on.
    pub definition_hash: DefinitionHash,
    /// The start input.
    pub input: Payload,
    /// What the caller attached.
    pub labels: BTreeMap<String, String>,
    /// The digest of the request as sent.
    pub request_hash: String,
    /// When it was created.
    pub at: Timestamp,
}

impl Execution {
    /// Returns the state before the first event of a run.
    pub fn new(key: RunKey, plan: &Plan) -> Self {
        let count = |list: &[StepIndex]| u32::try_from(list.len()).expect("a document has at most 1,000 steps");
        let units: Vec<Unit> = plan.steps().iter().map(|step| Unit::pending(count(&step.depends_on))).collect();
        Self {
            key,
            last_seq: 0,
            status: Status::Running,
            created: None,
            started_at: None,
            updated_at: Timestamp::default(),
            finished_at: None,
            startable: BTreeSet::new(),
            to_stop: BTreeSet::new(),
            cancel_requested: false,
            unended: u32::try_from(units.len()).expect("a document has at most 1,000 steps"),
            units,
            open: 0,
            scheduled: 0,
            signals: BTreeMap::new(),
            signal_count: 0,
            awaiting: BTreeMap::new(),
            pins: BTreeMap::new(),
            settings: BTreeMap::new(),
            held: Vec::new(),
            timers: BTreeMap::new(),
            timers_by_time: BTreeSet::new(),
            abort: None,
            output: None,
            state_bytes: 0,
        }
    }

    /// Returns one unit. The index must come from the run's plan.
    pub fn unit(&self, index: StepIndex) -> &Unit {
        &self.units[index.at()]
    }

    /// Returns what the run was created with. Every run that has an event has it.
    pub fn created(&self) -> &Created {
        self.created.as_deref().expect("the first event of a run creates it")
    }

    /// Returns what the run waits for.
    pub fn waiting(&self) -> Waiting {
        if self.status.is_terminal() {
            Waiting::Nothing
        } else if self.goes_on() {
            Waiting::Turn
        } else if self.scheduled > 0 {
            Waiting::Work
        } else if !self.timers.is_empty() {
            Waiting::Timer
        } else {
            Waiting::Signal
        }
    }

    /// Whether the engine has something to do that waits for nobody.
    fn goes_on(&self) -> bool {
        (self.status == Status::Running && !self.startable.is_empty()) || self.is_through() || !self.to_stop.is_empty()
    }

    /// Whether every step is resolved and the run is to end with its result.
    pub fn is_through(&self) -> bool {
        self.status == Status::Running && self.started_at.is_some() && self.unended == 0
    }

    /// Returns the row of the execution.
    pub fn projection(&self) -> Projection {
        let created = self.created();
        Projection {
            run: self.key.clone(),
            workflow: created.workflow.clone(),
            version: created.version.clone(),
            definition_hash: created.definition_hash.clone(),
            status: self.status,
            last_seq: self.last_seq,
            waiting: self.waiting(),
            next_wake: self.timers_by_time.first().map(|(due, _)| *due),
            created_at: created.at,
            updated_at: self.updated_at,
            finished_at: self.finished_at,
        }
    }

    /// Returns about how many bytes of memory the state takes, for bounding a cache of states.
    pub fn memory_bytes(&self) -> usize {
        const UNIT: usize = size_of::<Unit>() + size_of::<UnitMore>();
        // Ids, the event that created it, its place in a cache, and what the allocator adds: seen with 100,000 sleepers.
        const BESIDE: usize = 768;
        // A node of the tree has room for 11 timers, and the first one makes a node.
        const TIMERS: usize = 11 * (size_of::<TimerKey>() + size_of::<Timestamp>()) + 64;
        size_of::<Self>()
            + BESIDE
            + self.units.len() * UNIT
            + self.timers.len().div_ceil(6) * TIMERS
            + self.signal_count * 64
            + usize::try_from(self.state_bytes).unwrap_or(usize::MAX / 2)
    }
}
