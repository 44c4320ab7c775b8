//! Why there is no response.

use std::fmt;

use crate::TaskError;

/// Why there is no response, with a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The request is none that can be sent.
    Invalid(String),
    /// The tenant's policy, or a limit of the host, denies it.
    Denied(String),
    /// The server was not reached, or went away.
    Unreachable(String),
    /// It took too long.
    Timeout(String),
    /// The server's certificate is not trusted, or no common TLS was found.
    Tls(String),
    /// A body or the headers are larger than they may be.
    TooLarge(String),
    /// What came back cannot be used.
    Response(String),
    /// Requests are sent by modules only.
    Unavailable,
}

impl Error {
    /// Returns the code of the error of a task that it becomes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "HTTP_INVALID",
            Self::Denied(_) => "EGRESS_DENIED",
            Self::Unreachable(_) => "HTTP_UNREACHABLE",
            Self::Timeout(_) => "HTTP_TIMEOUT",
            Self::Tls(_) => "HTTP_TLS",
            Self::TooLarge(_) => "HTTP_TOO_LARGE",
            Self::Response(_) => "HTTP_RESPONSE",
            Self::Unavailable => "HTTP_UNAVAILABLE",
        }
    }

    /// Returns whether another attempt may meet something else.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Timeout(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason)
            | Self::Denied(reason)
            | Self::Unreachable(reason)
            | Self::Timeout(reason)
            | Self::Tls(reason)
            | Self::TooLarge(reason)
            | Self::Response(reason) => formatter.write_str(reason),
            Self::Unavailable => formatter.write_str("requests are sent by modules only; a worker has its own client"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for TaskError {
    fn from(error: Error) -> Self {
        Self { retryable: error.is_transient(), ..Self::permanent(error.code(), error.to_string()) }
    }
}
