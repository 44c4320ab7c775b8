//! Why a command did not do what it was asked, and the exit code that tells scripts.

use std::{io, path::PathBuf};

use serde_json::value::RawValue;

use crate::{config, telemetry};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments, or files that they name, that cannot be used.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The settings of a server cannot be used.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Logging cannot begin.
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    /// An execution or a task that was waited for did not end well.
    #[error("{0}")]
    Failed(String),
    /// The server, or the program that would be the server, did not take it.
    #[error("{0}")]
    Refused(Refusal),
    /// Nobody answers, or nobody who speaks the protocol.
    #[error("cannot reach {server}: {problem}")]
    Unreachable {
        /// Who should.
        server: String,
        /// What happened instead.
        problem: String,
    },
    /// The server failed.
    #[error("the server failed")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Standard output cannot be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

/// What was refused, and why.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code}){}", self.listed())]
pub struct Refusal {
    /// The stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Anything more, as sent.
    pub details: Option<Box<RawValue>>,
    /// By which the server's log tells more.
    pub request_id: Option<String>,
}

#[derive(serde::Deserialize)]
struct Problems {
    problems: Vec<Problem>,
}

#[derive(serde::Deserialize)]
struct Problem {
    pointer: String,
    message: String,
}

impl Refusal {
    /// Returns the details in lines: the problems of a document each on one, anything else as it is.
    fn listed(&self) -> String {
        let details = self.details.as_deref().map(RawValue::get).filter(|details| *details != "null");
        let mut listed = match details.map(|details| (details, serde_json::from_str::<Problems>(details))) {
            None => String::new(),
            Some((_, Ok(Problems { problems }))) => {
                let line =
                    |problem: Problem| format!("\n  {}: {}", super::document::place(&problem.pointer), problem.message);
                problems.into_iter().map(line).collect()
            }
            Some((details, Err(_))) => format!("\n  {details}"),
        };
        if let Some(request_id) = self.request_id.as_ref().filter(|_| self.code == "INTERNAL") {
            listed.push_str(&format!("\n  the server's log says more at request {request_id}"));
        }
        listed
    }
}

impl Error {
    /// Returns the exit code: 1 failed, 2 usage, 3 refused, 4 not reachable. A reader of the output who has read enough
    /// is no failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Failed(_) | Self::Server(_) | Self::Output(_) => 1,
            Self::Usage(_) | Self::Read { .. } | Self::Config(_) | Self::Telemetry(_) => 2,
            Self::Refused(_) => 3,
            Self::Unreachable { .. } => 4,
        }
    }

    /// Returns the whole story: the error and its causes, for standard error. Empty where there is nothing to say.
    pub fn story(&self) -> String {
        if self.exit_code() == 0 {
            return String::new();
        }
        let mut story = format!("error: {self}");
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            story.push_str(&format!(": {error}"));
            cause = error.source();
        }
        super::output::printable(&story)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, details: Option<&str>) -> Error {
        Error::Refused(Refusal {
            code: code.to_owned(),
            message: "no".to_owned(),
            details: details.map(|text| RawValue::from_string(text.to_owned()).unwrap()),
            request_id: Some("r-1".to_owned()),
        })
    }

    /// C112
    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        let io = |kind| io::Error::new(kind, "x");
        for (error, code) in [
            (Error::Failed("x".to_owned()), 1),
            (Error::Server("x".into()), 1),
            (Error::Output(io(io::ErrorKind::StorageFull)), 1),
            (Error::Usage("x".to_owned()), 2),
            (Error::Config(config::Error::Conflict("x".to_owned())), 2),
            (Error::Read { path: "x".into(), source: io(io::ErrorKind::NotFound) }, 2),
            (refused("NOT_FOUND", None), 3),
            (Error::Unreachable { server: "x".to_owned(), problem: "y".to_owned() }, 4),
            (Error::Output(io(io::ErrorKind::BrokenPipe)), 0),
        ] {
            assert_eq!(error.exit_code(), code, "{error:?}");
            assert_eq!(error.story().is_empty(), code == 0);
        }
    }

    #[test]
    fn a_refusal_tells_its_details() {
        assert_eq!(refused("FORBIDDEN", None).story(), "error: no (FORBIDDEN)");
        let problems =
            r#"{"problems":[{"pointer":"/steps/0","code":"X","message":"one"},{"pointer":"","message":"two"}]}"#;
        assert_eq!(
            refused("INVALID_IR", Some(problems)).story(),
            "error: no (INVALID_IR)\n  /steps/0: one\n  document: two"
        );
        assert_eq!(refused("X", Some("[1]")).story(), "error: no (X)\n  [1]");
        assert!(refused("INTERNAL", None).story().ends_with("request r-1"));
        assert_eq!(
            refused("X", Some("\"\u{9b}2J\"")).story(),
            "error: no (X)\n  \"\\u{9b}2J\"",
            "no escapes reach a terminal"
        );
    }
}
