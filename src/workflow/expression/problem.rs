//! What can be wrong: problems of a text, faults of an evaluation, and the error that the engine records.

use std::fmt;

/// Longest message of an [`Error`], in bytes: it is recorded in the history of an execution.
const MAX_MESSAGE: usize = 1_000;
/// Most characters of a text that a message quotes.
const MAX_QUOTED: usize = 60;

/// Something wrong with an expression or template, known before any run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct Problem {
    /// JSON pointer of the text in the document.
    pub pointer: String,
    /// Stable code, for example `UNKNOWN_FUNCTION`.
    pub code: &'static str,
    /// One sentence for the author.
    pub message: String,
}

impl Problem {
    pub(super) fn new(pointer: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), code, message: message.into() }
    }
}

/// The codes of [`Problem`].
pub(super) mod code {
    pub const SYNTAX: &str = "EXPRESSION_SYNTAX";
    pub const TOO_LONG: &str = "EXPRESSION_TOO_LONG";
    pub const TOO_DEEP: &str = "EXPRESSION_TOO_DEEP";
    pub const UNSUPPORTED: &str = "EXPRESSION_UNSUPPORTED";
    pub const UNKNOWN_FUNCTION: &str = "UNKNOWN_FUNCTION";
    pub const WRONG_ARGUMENTS: &str = "WRONG_ARGUMENTS";
    pub const STEPS_MISUSED: &str = "STEPS_MISUSED";
    pub const UNKNOWN_STEP_FIELD: &str = "UNKNOWN_STEP_FIELD";
    pub const INVALID_PATTERN: &str = "INVALID_PATTERN";
    pub const UNTERMINATED: &str = "EXPRESSION_UNTERMINATED";
    pub const TEMPLATE_TOO_DEEP: &str = "TEMPLATE_TOO_DEEP";
}

/// An evaluation that failed; the engine records it as `EXPRESSION_ERROR`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// JSON pointer of the expression in the document.
    pub pointer: String,
    /// What happened, naming the path or the operation.
    pub message: String,
    /// Whether the budget ended it.
    pub over_budget: bool,
}

impl Error {
    pub(super) fn new(pointer: &str, fault: Fault) -> Self {
        let over_budget = matches!(fault, Fault::Spent(_));
        let mut message = fault.to_string();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        Self { pointer: pointer.to_owned(), message, over_budget }
    }
}

/// A budget limit that was passed, with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Steps(u64),
    Bytes(u64),
}

/// Why an evaluation stopped; the kind decides what `get`, `coalesce`, `&&` and `||` may catch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A path leads nowhere, or through null: `has`, `get` and `coalesce` catch it.
    Missing(String),
    /// Any other error: only a deciding operand of `&&`, `||`, `all` or `exists` absorbs it.
    Failed(String),
    /// The budget is spent: nothing catches it.
    Spent(Limit),
}

impl Fault {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(message) | Self::Failed(message) => formatter.write_str(message),
            Self::Spent(Limit::Steps(steps)) => {
                write!(formatter, "the expression is over its budget of {steps} steps")
            }
            Self::Spent(Limit::Bytes(bytes)) => {
                write!(formatter, "the expression is over its budget of {bytes} bytes made")
            }
        }
    }
}

/// Quotes a text in a message, cut short.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
