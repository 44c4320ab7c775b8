//! What an expression reads: the free names of a text, from which dependencies are known before a run.

use std::collections::BTreeSet;
use std::fmt;

/// A field of a step that an expression may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepField {
    /// The value of a step that succeeded, else null.
    Output,
    /// Its status, as text.
    Status,
    /// The error of a step that failed, else null.
    Error,
    /// When it was resolved, in epoch milliseconds, else null.
    FinishedAtMs,
}

impl StepField {
    /// All fields, in the order they are documented.
    pub const ALL: [Self; 4] = [Self::Output, Self::Status, Self::Error, Self::FinishedAtMs];

    /// Returns the name that an expression uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Status => "status",
            Self::Error => "error",
            Self::FinishedAtMs => "finished_at_ms",
        }
    }

    /// Finds a field by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

impl fmt::Display for StepField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The free names of an expression or template. Variables of `map`, `filter`, `all`, `exists` and `exists_one` are not
/// free inside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Root names other than `steps`. Which are allowed is for the caller to say.
    pub roots: BTreeSet<String>,
    /// Steps by id, with the field that is read.
    pub steps: BTreeSet<(String, StepField)>,
}

impl References {
    /// Returns the ids of the steps read, each once, in order.
    pub fn step_ids(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.steps.iter().map(|(id, _)| id.as_str()).filter(move |id| last.replace(*id) != Some(*id))
    }

    /// Adds the names of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.roots.extend(other.roots.iter().cloned());
        self.steps.extend(other.steps.iter().cloned());
    }
}

/// One thing that an expression reads from its scope, held once per template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Root(Box<str>),
    Step(Box<str>, StepField),
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => formatter.write_str(name),
            Self::Step(id, field) => write!(formatter, "steps.{id}.{field}"),
        }
    }
}
