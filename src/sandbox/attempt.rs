//! What goes into a call and what comes out of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::{
    Failure, Millis, Payload, TaskName, Timestamp, WorkflowName, WorkflowVersion, delivery::Usage, id::UnitRef,
    row::LogLine,
};

use super::{Answers, Cancel, Grant, Limits, Recording};

/// One attempt to be served.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What the guest may know of it.
    pub info: Info,
    /// The input.
    pub input: Payload,
    /// What it may use; never more than the server allows.
    pub limits: Limits,
    /// What it is told and may reach.
    pub grant: Arc<Grant>,
    /// How long it may take on the wall, from when it has a slot.
    pub wall: Millis,
    /// What was reported of the unit so far, and takes what is reported now.
    pub progress: Progress,
    /// Ends it early.
    pub cancel: Cancel,
    /// Where the host's answers come from.
    pub answers: Answers,
}

/// What a guest may know of the attempt that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The unit, and with it the owner and the execution.
    pub unit: UnitRef,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its version.
    pub workflow_version: WorkflowVersion,
    /// The task.
    pub task: TaskName,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether an earlier delivery of it cannot be ruled out.
    pub redelivery: bool,
    /// When it is cut off.
    pub deadline: Option<Timestamp>,
}

/// What a guest reports while it works: one JSON text, the last one counts. Cheap to clone; readable at any time.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Option<Payload>>>);

impl Progress {
    /// Begins with what an earlier attempt reported.
    pub fn starting_with(last: Option<Payload>) -> Self {
        Self(Arc::new(Mutex::new(last)))
    }

    /// Returns what was reported last.
    pub fn last(&self) -> Option<Payload> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what was reported last.
    pub fn report(&self, details: Payload) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(details);
    }
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The output, or why there is none.
    pub outcome: Result<Payload, Failure>,
    /// What it used.
    pub usage: Usage,
    /// What it logged, in order; a marker stands for what was left out.
    pub logs: Vec<LogLine>,
    /// How many lines were left out.
    pub log_lines_left_out: u64,
    /// What this attempt reported last.
    pub progress: Option<Payload>,
    /// What the host answered, where that was to be kept.
    pub recording: Option<Recording>,
    /// How many instructions it executed, where they were counted and it returned by itself.
    pub instructions: Option<u64>,
    /// What it asked first that its recording or its stubs do not hold, in words.
    pub unrecorded: Option<String>,
}

impl Finished {
    /// An attempt that ended before its module was called.
    pub(super) fn early(failure: Failure, input_bytes: usize) -> Self {
        Self {
            outcome: Err(failure),
            usage: Usage { input_bytes: input_bytes as u64, ..Usage::default() },
            logs: Vec::new(),
            log_lines_left_out: 0,
            progress: None,
            recording: None,
            instructions: None,
            unrecorded: None,
        }
    }
}
