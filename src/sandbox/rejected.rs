//! Why a component is not accepted. Each sentence says what is wrong and what to do about it.

use crate::model::{Digest, Failure};

use super::inert;

/// A refusal of an upload, or of bytes that were to be loaded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejected {
    /// No bytes.
    #[error("the upload is empty: send the bytes of a component")]
    Empty,
    /// More bytes than allowed.
    #[error(
        "the component has {size_bytes} bytes, the limit is {size_bytes_max}: build it optimised and without debug information"
    )]
    TooLarge {
        /// Its size.
        size_bytes: usize,
        /// The limit.
        size_bytes_max: usize,
    },
    /// Something else than a component.
    #[error("this is {what}, not a component: {remedy}")]
    NotComponent {
        /// What it looks like.
        what: &'static str,
        /// What to upload instead.
        remedy: &'static str,
    },
    /// It ends early.
    #[error("the component is cut off after {size_bytes} bytes: upload the whole file")]
    Truncated {
        /// How much came.
        size_bytes: usize,
    },
    /// It breaks the rules of WebAssembly.
    #[error("the component is not valid: {}: build it again with a current toolchain", plain(.problem))]
    Invalid {
        /// What is wrong, and where.
        problem: String,
    },
    /// It uses what is switched off here.
    #[error("the component uses {}, which this server does not run: build it without", listed(.features))]
    Feature {
        /// The features by name.
        features: Vec<&'static str>,
    },
    /// It is made of too many parts, or too large ones.
    #[error("the component needs {needed} {what}, the limit is {limit}: split it or ask for less")]
    Structure {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        needed: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// It passes modules or components around, so that its size cannot be known.
    #[error("the component imports or exports core modules or components: link it into one that does not")]
    Dynamic,
    /// It does not fit the world of modules.
    #[error("the component does not fit the world `task` of `sandkeep:task@0.1.0`: {}; build it against `wit/task.wit`", plain(&.differences.join("; ")))]
    World {
        /// Each difference in words.
        differences: Vec<String>,
    },
    /// It cannot be compiled.
    #[error("the component cannot be compiled: {}", plain(.problem))]
    Compile {
        /// Why.
        problem: String,
    },
    /// Compiling it takes more than a compile may, also without optimisation.
    #[error(
        "the component takes too much to compile (COMPILE_BUDGET_EXCEEDED: {what}): split its largest functions, or build it with less inlining"
    )]
    CompileBudget {
        /// What there was too little of.
        what: &'static str,
    },
    /// `describe` did not return.
    #[error("the module cannot describe itself: `describe` ended with {}: {}", .failure.code, plain(&.failure.message))]
    Describe {
        /// How it ended.
        failure: Failure,
    },
    /// What it describes breaks a rule.
    #[error("the module describes a task that cannot be offered: {}", plain(.problem))]
    Task {
        /// Which, and what is wrong with it.
        problem: String,
    },
    /// The bytes are not those of the digest.
    #[error("the stored bytes do not match digest `{digest}`: upload the module again")]
    Corrupt {
        /// The digest that was asked for.
        digest: Digest,
    },
    /// The server failed; the truth is in its log.
    #[error("internal error while the component was examined")]
    Internal,
    /// The server shuts down.
    #[error("the server is shutting down: try again")]
    Closed,
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The most bytes of what a component brings into a sentence.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A text that names of a component may be in.
fn plain(text: &str) -> String {
    inert::line(text.to_owned(), TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_hold_no_control_characters_and_no_end_of_names() {
        let problem = format!("name `a\u{1b}[2J\n{}`", "b".repeat(100_000));
        let sentence = Rejected::Invalid { problem }.to_string();
        assert!(sentence.starts_with("the component is not valid: name `a\\u{1b}[2J\\nbbb"), "{}", &sentence[..60]);
        assert!(sentence.ends_with("bb… (cut): build it again with a current toolchain"), "{} bytes", sentence.len());
    }
}
