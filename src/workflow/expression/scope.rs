//! What the caller lets an expression read.

use super::references::StepField;

/// The values an expression may read, implemented over the state of an execution.
pub trait Scope {
    /// Returns the value of a root name other than `steps`; `None` when this scope has no such name.
    fn root(&self, name: &str) -> Option<Operand<'_>>;

    /// Returns a field of a step; `None` when this scope has no such step.
    fn step(&self, id: &str, field: StepField) -> Option<Operand<'_>>;
}

/// A value as the caller holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// JSON text, valid and compact. It is parsed where it is read, or copied as it is.
    Json(&'a str),
    /// A text.
    Text(&'a str),
    /// An integer.
    Int(i64),
    /// Null.
    Null,
    /// A map with known keys, for example `execution`.
    Record(Vec<(&'static str, Operand<'a>)>),
}
