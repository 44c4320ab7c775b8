//! Failures, their codes, and the one table that says which are retried.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{id::Invalid, json::Payload};

/// The code of a failure: the engine's and the sandbox's are listed here, a task may use any other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(Arc<str>);

/// The longest message of a failure, in bytes; what is longer is cut.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024;

impl Code {
    /// Returns the code when `text` keeps the rule.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
        let text = text.as_ref();
        let good = (1..=128).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
            && text.as_bytes()[0].is_ascii_alphanumeric();
        if good {
            Ok(Self(text.into()))
        } else {
            Err(Invalid {
                kind: "error code",
                value: text.to_owned(),
                rule: "it must match [A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
            })
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::new(text.as_ref()).map_err(serde::de::Error::custom)
    }
}

/// Who speaks in a failure. A task cannot pose as the engine: defaults look at code and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The engine: time-outs, losses, expressions, contracts, limits.
    Engine,
    /// The host of modules.
    Sandbox,
    /// The task itself.
    Task,
}

/// A failure of an attempt, a unit or an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What happened, for programs.
    pub code: Code,
    /// What happened, for people; at most [`MESSAGE_BYTES_MAX`].
    pub message: String,
    /// Who says so.
    pub origin: Origin,
    /// Whether a task holds another try to be sensible; read only where `origin` is [`Origin::Task`].
    pub retryable: bool,
    /// Replaces the computed delay before the next attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Anything more, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Payload>,
}

impl Failure {
    /// A failure that the engine states.
    pub fn engine(code: &'static str, message: impl Into<String>) -> Self {
        Self::stated(Origin::Engine, code, message.into())
    }

    /// A failure that the sandbox states.
    pub fn sandbox(code: &'static str, message: impl Into<String>) -> Self {
        Self::stated(Origin::Sandbox, code, message.into())
    }

    /// A failure in the words of a task.
    pub fn task(code: Code, message: impl Into<String>, retryable: bool) -> Self {
        let message = cut(message.into(), MESSAGE_BYTES_MAX);
        Self { code, message, origin: Origin::Task, retryable, retry_after_ms: None, details: None }
    }

    /// Adds details.
    pub fn with_details(mut self, details: Payload) -> Self {
        self.details = Some(details);
        self
    }

    fn stated(origin: Origin, code: &'static str, message: String) -> Self {
        let code = Code::new(code).expect("the codes of this file keep the rule");
        Self {
            code,
            message: cut(message, MESSAGE_BYTES_MAX),
            origin,
            retryable: false,
            retry_after_ms: None,
            details: None,
        }
    }
}

/// Cuts `text` to at most `bytes_max` bytes at a character boundary and marks the cut.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    const MARK: &str = "… (cut)";
    if text.len() > bytes_max {
        let end = text.floor_char_boundary(bytes_max.saturating_sub(MARK.len()));
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident: $by:expr;)*) => {
        $($(#[$doc])* pub const $name: &str = stringify!($name);)*

        /// Every code of the engine and the sandbox, with whether it is retried while attempts remain.
        pub const TABLE: &[(&str, Retried)] = &[$((stringify!($name), $by)),*];
    };
}

/// Whether a failure is followed by another attempt when the step's policy does not name its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// While attempts remain.
    Yes,
    /// Once per unit, while attempts remain.
    Once,
    /// Never.
    No,
}

codes! {
    /// The attempt took longer than `timeouts.attempt`.
    TIMEOUT: Retried::Yes;
    /// The worker lives but said nothing of this attempt for longer than `timeouts.heartbeat`.
    HEARTBEAT_TIMEOUT: Retried::Yes;
    /// Nobody took the unit within `timeouts.queue`.
    QUEUE_TIMEOUT: Retried::No;
    /// The unit was not resolved within `timeouts.total`, over all retries.
    TOTAL_TIMEOUT: Retried::No;
    /// The execution was not done within the document's `timeout`.
    WORKFLOW_TIMEOUT: Retried::No;
    /// More deliveries of one attempt were lost than `retry.max_redeliveries` allows.
    WORKER_LOST: Retried::Yes;
    /// The unit or execution was cancelled.
    CANCELLED: Retried::No;
    /// The execution was cut off.
    TERMINATED: Retried::No;
    /// An expression could not be evaluated, or passed its budget.
    EXPRESSION_ERROR: Retried::No;
    /// The input of a unit or execution does not fit its schema.
    INPUT_CONTRACT_VIOLATION: Retried::No;
    /// The output of a task does not fit its schema.
    OUTPUT_CONTRACT_VIOLATION: Retried::No;
    /// The run passed a limit on units, events or bytes.
    LIMIT_EXCEEDED: Retried::No;
    /// A payload is larger than its limit.
    PAYLOAD_TOO_LARGE: Retried::No;
    /// The child execution failed.
    CHILD_FAILED: Retried::Yes;
    /// The child execution was cancelled.
    CHILD_CANCELLED: Retried::No;
    /// The child execution ran out of time.
    CHILD_TIMED_OUT: Retried::No;
    /// The child execution was cut off.
    CHILD_TERMINATED: Retried::No;
    /// No module serves the task, or the named one does not.
    MODULE_NOT_FOUND: Retried::No;
    /// The module trapped.
    TRAP: Retried::Once;
    /// The module called `exit`.
    EXITED: Retried::No;
    /// The module spent its processor time.
    CPU_LIMIT: Retried::No;
    /// The module asked for more memory than it may have.
    MEMORY_LIMIT: Retried::No;
    /// The module asked for more handles than it may have.
    HANDLE_LIMIT: Retried::No;
    /// The module's output is not JSON within the payload rule.
    OUTPUT_INVALID: Retried::No;
    /// The module asked for a host that its tenant may not reach.
    EGRESS_DENIED: Retried::No;
    /// The server failed at serving the attempt.
    INTERNAL: Retried::Yes;
}

/// Returns whether `failure` is retried when the step's policy does not name its code.
pub fn retried(failure: &Failure) -> Retried {
    match failure.origin {
        Origin::Task if failure.retryable => Retried::Yes,
        Origin::Task => Retried::No,
        Origin::Engine | Origin::Sandbox => {
            TABLE.iter().find(|(code, _)| failure.code == *code).map_or(Retried::No, |(_, retried)| *retried)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_cannot_pose_as_the_engine() {
        let posing = Failure::task(Code::new(WORKER_LOST).unwrap(), "", false);
        assert_eq!(retried(&posing), Retried::No);
        assert_eq!(retried(&Failure::engine(WORKER_LOST, "")), Retried::Yes);
        assert_eq!(retried(&Failure::sandbox(TRAP, "")), Retried::Once);
        assert_eq!(retried(&Failure::task(Code::new(CPU_LIMIT).unwrap(), "", true)), Retried::Yes);
    }

    #[test]
    fn messages_are_cut_at_a_character() {
        let failure = Failure::engine(INTERNAL, "é".repeat(MESSAGE_BYTES_MAX));
        assert!(failure.message.len() <= MESSAGE_BYTES_MAX);
        assert!(failure.message.ends_with("(cut)"));
    }

    #[test]
    fn codes_refuse_nul_and_blanks() {
        for text in ["", "a b", "a\0", "-a", &"x".repeat(129)] {
            assert!(Code::new(text).is_err(), "C076 {text:?}");
        }
        assert!(Code::new("OUT_OF_STOCK").is_ok());
    }
}
