//! Events: the facts of a history. The history is the truth, state is a fold of it.
//!
//! An event is stored as its type and its fields as a JSON object, so that a payload inside is kept byte for byte. Fields
//! are only ever added, with a default; a sample of every type and format is kept in `tests/` and read for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    code::Failure,
    delivery::Served,
    execution::Target,
    id::{Alias, DefinitionHash, DeliveryId, Digest, ModuleName, SignalName, UnitKey, WorkflowName, WorkflowVersion},
    json::Payload,
    row::TimerKey,
    time::{Millis, Timestamp},
};

/// The format in which this version writes events.
pub const FORMAT: u8 = 1;

/// An event with its place in a history, as a store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Its number in the run, from 1, without gaps.
    pub seq: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// Its type, one of [`Event::TYPES`].
    pub kind: String,
    /// Its format version.
    pub format: u8,
    /// Its fields: a JSON object.
    pub fields: String,
}

/// Why a stored event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A newer version wrote it.
    #[error("event {seq} has format {format}; this version reads up to {FORMAT}")]
    Format {
        /// Its place.
        seq: u64,
        /// Its format.
        format: u8,
    },
    /// No event has this type.
    #[error("event {seq} has the unknown type `{kind}`")]
    Type {
        /// Its place.
        seq: u64,
        /// Its type.
        kind: String,
    },
    /// Its fields are not those of its type.
    #[error("event {seq} (`{kind}`) cannot be read")]
    Fields {
        /// Its place.
        seq: u64,
        /// Its type.
        kind: String,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

            impl From<$name> for Event {
                fn from(event: $name) -> Self {
                    Event::$name(event)
                }
            }
        )*

        /// A fact in an execution's history.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($(#[$doc])* $name($name),)* }

        impl Event {
            /// Every type that this version writes.
            pub const TYPES: &[&str] = &[$(stringify!($name)),*];

            /// Returns the name of the type.
            pub fn kind(&self) -> &'static str {
                match self { $(Event::$name(_) => stringify!($name),)* }
            }

            /// Returns the fields as a JSON object.
            pub fn fields(&self) -> String {
                let text = match self { $(Event::$name(event) => serde_json::to_string(event),)* };
                text.expect("events hold nothing that JSON cannot")
            }

            /// Reads a stored event.
            pub fn read(stored: &StoredEvent) -> Result<Self, ReadError> {
                if stored.format > FORMAT {
                    return Err(ReadError::Format { seq: stored.seq, format: stored.format });
                }
                match stored.kind.as_str() {
                    $(stringify!($name) => serde_json::from_str::<$name>(&stored.fields).map(Event::$name),)*
                    _ => return Err(ReadError::Type { seq: stored.seq, kind: stored.kind.clone() }),
                }
                .map_err(|source| ReadError::Fields { seq: stored.seq, kind: stored.kind.clone(), source })
            }
        }
    };
}

events! {
    /// Someone asked for an execution.
    WorkflowCreated {
        /// The workflow.
        workflow: WorkflowName,
        /// Its version, resolved.
        version: WorkflowVersion,
        /// The exact content it runs on.
        definition_hash: DefinitionHash,
        /// The start input, defaults filled in.
        input: Payload,
        /// What the caller attached.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String>,
        /// The digest of the request as sent, by which a repeated start is recognised.
        request_hash: String,
        /// When it begins, where it was asked to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start_at_ms: Option<Timestamp>,
    }
    /// The run began.
    WorkflowStarted {}
    /// Opens each attempt of a task and, once, each timer and await whose `when` held.
    StepScheduled {
        /// The unit.
        unit: UnitKey,
        /// The attempt, from 1; 0 for timers and awaits.
        attempt: u32,
        /// A task's input; later attempts keep that of the first and do not repeat it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<ScheduledInput>,
        /// Who does the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Target>,
        /// The module, where the sandbox does the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<ModulePin>,
        /// The time-outs of each delivery of this unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeouts: Option<UnitTimeouts>,
    }
    /// A step's `when` did not hold.
    StepSkipped {
        /// The unit.
        unit: UnitKey,
    }
    /// A unit has its output.
    StepSucceeded {
        /// The unit.
        unit: UnitKey,
        /// The attempt that did it; 0 for what the engine did itself.
        attempt: u32,
        /// The output.
        output: Payload,
        /// The delivery that brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<DeliveryId>,
        /// Who served it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<Served>,
    }
    /// One attempt failed; what follows says whether another comes.
    StepAttemptFailed {
        /// The unit.
        unit: UnitKey,
        /// The attempt.
        attempt: u32,
        /// Why.
        error: Failure,
        /// The delivery that brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<DeliveryId>,
        /// Who served it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<Served>,
    }
    /// A delivery was lost: nobody knows whether the work was done. No attempt is spent.
    StepAttemptUncertain {
        /// The unit.
        unit: UnitKey,
        /// The attempt.
        attempt: u32,
        /// The delivery that was lost.
        delivery: DeliveryId,
        /// How it was lost, for people.
        reason: String,
        /// Who had it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served: Option<Served>,
    }
    /// Another attempt is due.
    RetryScheduled {
        /// The unit.
        unit: UnitKey,
        /// The attempt to come.
        attempt: u32,
        /// When.
        due_at_ms: Timestamp,
    }
    /// A unit failed for good.
    StepFailed {
        /// The unit.
        unit: UnitKey,
        /// Why.
        error: Failure,
    }
    /// A unit was stopped.
    StepCancelled {
        /// The unit.
        unit: UnitKey,
        /// Whether the work may have been done all the same.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uncertain: bool,
    }
    /// A timer was armed.
    TimerStarted {
        /// Which.
        timer: TimerKey,
        /// When it is due.
        due_at_ms: Timestamp,
    }
    /// A timer came due.
    TimerFired {
        /// Which.
        timer: TimerKey,
    }
    /// A signal came.
    SignalReceived {
        /// Its name.
        name: SignalName,
        /// What it carries.
        payload: Payload,
        /// The sender's id for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<String>,
    }
    /// A step took a signal.
    SignalConsumed {
        /// The unit that took it.
        unit: UnitKey,
        /// Its name.
        name: SignalName,
        /// The `seq` of its `SignalReceived`.
        signal_seq: u64,
    }
    /// A report came that decides nothing any more.
    StaleResultIgnored {
        /// The unit.
        unit: UnitKey,
        /// The attempt reported on.
        attempt: u32,
        /// The delivery that reported.
        delivery: DeliveryId,
        /// Whether it reported success.
        succeeded: bool,
    }
    /// The last progress of an attempt that is followed by another delivery.
    ProgressRecorded {
        /// The unit.
        unit: UnitKey,
        /// The attempt.
        attempt: u32,
        /// What it said.
        details: Payload,
    }
    /// Someone asked for the end.
    CancelRequested {
        /// Why.
        reason: String,
    }
    /// The run uses another digest of a module from now on; what is ready or out keeps the one it has.
    Repinned {
        /// The module.
        module: ModuleName,
        /// The digest that is used.
        digest: Digest,
        /// The aliases whose pins moved.
        aliases: Vec<Alias>,
        /// The revision of the module's settings that is used; 0: none were set.
        #[serde(default, skip_serializing_if = "is_zero")]
        settings: u64,
    }
    /// The document's `timeout` was reached.
    WorkflowTimeoutReached {}
    /// The run succeeded.
    WorkflowCompleted {
        /// Its result.
        output: Payload,
    }
    /// The run failed.
    WorkflowFailed {
        /// Why.
        error: Failure,
        /// The unit whose failure ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<UnitKey>,
    }
    /// The run was cancelled.
    WorkflowCancelled {
        /// Why.
        reason: String,
    }
    /// The run was out of time.
    WorkflowTimedOut {}
}

impl Event {
    /// Returns the unit that the event is about.
    pub fn unit(&self) -> Option<&UnitKey> {
        match self {
            Event::StepScheduled(event) => Some(&event.unit),
            Event::StepSkipped(event) => Some(&event.unit),
            Event::StepSucceeded(event) => Some(&event.unit),
            Event::StepAttemptFailed(event) => Some(&event.unit),
            Event::StepAttemptUncertain(event) => Some(&event.unit),
            Event::RetryScheduled(event) => Some(&event.unit),
            Event::StepFailed(event) => Some(&event.unit),
            Event::StepCancelled(event) => Some(&event.unit),
            Event::SignalConsumed(event) => Some(&event.unit),
            Event::StaleResultIgnored(event) => Some(&event.unit),
            Event::ProgressRecorded(event) => Some(&event.unit),
            Event::TimerStarted(event) => event.timer.unit(),
            Event::TimerFired(event) => event.timer.unit(),
            Event::WorkflowFailed(event) => event.unit.as_ref(),
            _ => None,
        }
    }
}

/// A task's input. A type of its own, so that JSON `null` as an input is told from no input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledInput {
    /// The input.
    pub json: Payload,
}

/// The module that serves a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModulePin {
    /// Its name; the built-in component has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ModuleName>,
    /// The alias that was followed; absent when the step names a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<Alias>,
    /// The digest that serves it.
    pub digest: Digest,
    /// The revision of the module's settings that goes with it; 0: none were set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settings: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The time-outs of each delivery, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitTimeouts {
    /// From the hand-over to the end of the attempt.
    pub attempt_ms: Millis,
    /// The longest silence about a delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<Millis>,
    /// From ready to taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<Millis>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_in_an_event_is_kept_byte_for_byte() {
        let output = Payload::parse(br#"{"n":9007199254740993,"f":1.0,"s":"a\u0000b"}"#).unwrap();
        let event = Event::from(StepSucceeded {
            unit: UnitKey::new("a").unwrap(),
            attempt: 1,
            output: output.clone(),
            delivery: None,
            served: None,
        });
        let stored =
            StoredEvent { seq: 1, at: Timestamp(0), kind: event.kind().into(), format: FORMAT, fields: event.fields() };
        assert!(stored.fields.contains(output.as_str()), "{}", stored.fields);
        assert_eq!(Event::read(&stored).unwrap(), event);
    }

    #[test]
    fn a_newer_format_or_type_is_told_apart() {
        let stored = |kind: &str, format, fields: &str| StoredEvent {
            seq: 7,
            at: Timestamp(0),
            kind: kind.into(),
            format,
            fields: fields.into(),
        };
        assert!(matches!(Event::read(&stored("WorkflowStarted", 9, "{}")), Err(ReadError::Format { .. })), "C122");
        assert!(matches!(Event::read(&stored("Invented", 1, "{}")), Err(ReadError::Type { .. })));
        assert!(matches!(Event::read(&stored("StepSkipped", 1, "{}")), Err(ReadError::Fields { .. })), "C089");
    }
}
