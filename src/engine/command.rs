//! What someone asks of one execution, and why it is refused.

use std::collections::BTreeMap;

use crate::model::{
    Alias, DefinitionHash, DeliveryId, Digest, Failure, ModuleName, Payload, Served, SignalName, Timestamp, UnitKey,
    WorkflowName, WorkflowVersion,
    row::{KeyRow, TimerKey},
};

/// What is asked of one execution.
#[derive(Clone, Debug)]
pub enum Command {
    /// Begin.
    Start(Start),
    /// Go on with a turn that reached its bound.
    Continue,
    /// The result was checked against the document's `output` schema.
    Checked(Checked),
    /// A timer of the run is due.
    TimerDue(TimerKey),
    /// A delivery reports how its attempt ended.
    Report(Report),
    /// A delivery was lost.
    Lost(Lost),
    /// A unit that was told to stop had not been handed out, and was taken back.
    Stopped {
        /// The unit.
        unit: UnitKey,
        /// Its attempt.
        attempt: u32,
    },
    /// A signal for the execution.
    Signal(Signal),
    /// Use another digest of a module from now on.
    Repin(Repin),
    /// End it.
    Cancel {
        /// Why.
        reason: String,
    },
}

/// A result that was checked against the document's `output` schema, off the lanes.
#[derive(Clone, Debug)]
pub struct Checked {
    /// When it was evaluated: that is the time at which the run ends with it, so that it is the same then.
    pub at: Timestamp,
    /// The result.
    pub result: Payload,
    /// Whether it fits; else why not.
    pub verdict: Result<(), Failure>,
}

/// Begin an execution. Its input was checked and has its defaults.
#[derive(Clone, Debug)]
pub struct Start {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its version, resolved.
    pub version: WorkflowVersion,
    /// The content it runs on.
    pub definition_hash: DefinitionHash,
    /// The start input.
    pub input: Payload,
    /// What the caller attached.
    pub labels: BTreeMap<String, String>,
    /// The digest of the request as sent.
    pub request_hash: String,
    /// Begin at this time instead of now.
    pub start_at: Option<Timestamp>,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The unit.
    pub unit: UnitKey,
    /// The attempt.
    pub attempt: u32,
    /// The delivery that reports; none where the server itself took the unit from its queue.
    pub delivery: Option<DeliveryId>,
    /// Who served it.
    pub served: Option<Served>,
    /// Its last progress.
    pub progress: Option<Payload>,
    /// Its end.
    pub outcome: Result<Payload, Failure>,
}

/// A delivery that was lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// The unit.
    pub unit: UnitKey,
    /// The attempt.
    pub attempt: u32,
    /// The delivery.
    pub delivery: DeliveryId,
    /// Who had it.
    pub served: Option<Served>,
    /// Its last progress.
    pub progress: Option<Payload>,
    /// How it was lost, for people.
    pub reason: String,
}

/// Use another digest of a module from now on.
#[derive(Clone, Debug)]
pub struct Repin {
    /// The module.
    pub module: ModuleName,
    /// What to use.
    pub to: RepinTo,
    /// Only where the pin of this alias is one of these digests; none: every pin of the module.
    pub leaving: Option<(Alias, Vec<Digest>)>,
}

/// What a repinned run uses.
#[derive(Clone, Debug)]
pub enum RepinTo {
    /// This digest.
    Digest(Digest),
    /// What this alias names for the run.
    Alias(Alias),
}

/// A signal. Its payload was checked.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Its name.
    pub name: SignalName,
    /// What it carries.
    pub payload: Payload,
    /// The sender's id for it.
    pub command_id: Option<String>,
    /// What is kept to recognise a repeat; its `seq` is filled in here.
    pub key: Option<KeyRow>,
}

/// Why a command changes nothing. A value, not a fault of the machinery.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The id is taken by an execution that was started with another request.
    #[error("the execution exists and was started with another request")]
    Conflict,
    /// There is no such execution.
    #[error("there is no such execution")]
    NotFound,
    /// The execution is terminal.
    #[error("the execution is already {0}")]
    Closed(&'static str),
    /// The document declares no such signal.
    #[error("the workflow declares no signal `{0}`")]
    UnknownSignal(SignalName),
    /// The module, or its alias or digest, is not there.
    #[error("{0}")]
    NoModule(String),
    /// The run cannot use this digest, or does not use the module.
    #[error("{0}")]
    Unfit(String),
    /// A limit of the run is reached.
    #[error("{0}")]
    Limit(String),
    /// The command is about something that is over: a timer of an earlier attempt, a delivery that was lost already.
    #[error("nothing to do any more")]
    Over,
    /// A timer came before its time.
    #[error("the timer is due at {}", .0.0)]
    NotDue(Timestamp),
}
