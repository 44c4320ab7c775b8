//! What is wrong with a document: every finding with its place, a code for programs and a sentence for people.

use std::fmt;

use serde::{Serialize, Serializer};

use super::pointer::{self, Pointer};
use crate::model::code::cut;

/// How many problems one answer lists; a document with more of them is told so.
pub const PROBLEMS_MAX: usize = 500;

/// The longest sentence of a problem, in bytes; what is longer is cut.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Something that keeps a document from being registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}: {message}", shown(.pointer))]
pub struct Problem {
    /// Where: a JSON pointer, empty for the whole document.
    pub pointer: String,
    /// What kind of problem it is, for programs.
    pub code: Code,
    /// What it is, for people.
    pub message: String,
}

/// The whole document has no name of its own in RFC 6901, so it gets one.
fn shown(pointer: &str) -> &str {
    if pointer.is_empty() { "document" } else { pointer }
}

/// The kinds of problems. Closed: clients may switch on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The text is not JSON within the payload rule.
    InvalidJson,
    /// Something is larger, longer or more than it may be.
    Limit,
    /// `ir_version` names a language that this server does not speak.
    UnsupportedVersion,
    /// A form of the language that this server does not run yet.
    Unsupported,
    /// A key that nobody reads.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of the wrong type, form or range, or one that contradicts another.
    InvalidValue,
    /// A text that should be a duration and is not.
    Duration,
    /// Two steps have the same id.
    DuplicateId,
    /// A step that does not exist.
    UnknownStep,
    /// A signal that the document does not declare.
    UnknownSignal,
    /// Steps that wait for each other, or one for itself.
    Cycle,
    /// An expression that cannot be parsed, or reads what is not there.
    Expression,
    /// Not a usable JSON Schema.
    Schema,
    /// `definition_hash` is not the hash of this document.
    HashMismatch,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 15] = [
        Self::InvalidJson,
        Self::Limit,
        Self::UnsupportedVersion,
        Self::Unsupported,
        Self::UnknownKey,
        Self::MissingKey,
        Self::InvalidValue,
        Self::Duration,
        Self::DuplicateId,
        Self::UnknownStep,
        Self::UnknownSignal,
        Self::Cycle,
        Self::Expression,
        Self::Schema,
        Self::HashMismatch,
    ];

    /// Returns the code as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "INVALID_JSON",
            Self::Limit => "LIMIT",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::Unsupported => "UNSUPPORTED",
            Self::UnknownKey => "UNKNOWN_KEY",
            Self::MissingKey => "MISSING_KEY",
            Self::InvalidValue => "INVALID_VALUE",
            Self::Duration => "DURATION",
            Self::DuplicateId => "DUPLICATE_ID",
            Self::UnknownStep => "UNKNOWN_STEP",
            Self::UnknownSignal => "UNKNOWN_SIGNAL",
            Self::Cycle => "CYCLE",
            Self::Expression => "EXPRESSION",
            Self::Schema => "SCHEMA",
            Self::HashMismatch => "HASH_MISMATCH",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Problem {
    /// A problem at `pointer`.
    pub fn new(pointer: &Pointer, code: Code, message: impl Into<String>) -> Self {
        Self { pointer: pointer.as_str().to_owned(), code, message: cut(message.into(), MESSAGE_BYTES_MAX) }
    }
}

/// Gathers problems, so that one pass over a document finds them all.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
    more: bool,
}

impl Problems {
    /// Adds a problem at `pointer`.
    pub fn push(&mut self, pointer: &Pointer, code: Code, message: impl Into<String>) {
        self.add(Problem::new(pointer, code, message));
    }

    /// Adds a problem.
    pub fn add(&mut self, problem: Problem) {
        if self.found.len() < PROBLEMS_MAX {
            self.found.push(problem);
        } else {
            self.more = true;
        }
    }

    /// Returns whether there is any.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns all of them, sorted by place.
    pub fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by(|one, other| {
            pointer::by_place(&one.pointer, &other.pointer)
                .then_with(|| (one.code, &one.message).cmp(&(other.code, &other.message)))
        });
        self.found.dedup();
        if self.more {
            let message = format!("there are more problems; the first {PROBLEMS_MAX} that were found are listed");
            self.found.push(Problem::new(&Pointer::root(), Code::Limit, message));
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_sorted_and_once() {
        let mut problems = Problems::default();
        for at in [10, 2, 2] {
            problems.push(&Pointer::root().key("steps").item(at), Code::InvalidValue, "wrong");
        }
        let places: Vec<_> = problems.into_sorted().into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(places, ["/steps/2", "/steps/10"]);
    }

    #[test]
    fn a_hostile_document_gets_a_bounded_answer() {
        let mut problems = Problems::default();
        for at in 0..10_000 {
            problems.push(&Pointer::root().item(at), Code::UnknownKey, "x".repeat(10_000));
        }
        let found = problems.into_sorted();
        assert_eq!(found.len(), PROBLEMS_MAX + 1);
        assert!(found.iter().all(|problem| problem.message.len() <= MESSAGE_BYTES_MAX));
        assert_eq!(found.last().map(|problem| problem.code), Some(Code::Limit));
    }
}
