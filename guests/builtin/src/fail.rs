//! `core.fail`.

use sandkeep_sdk::{TaskError, attempt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How to fail.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Failure {
    /// The code of the error; `FAILED` when absent.
    code: Option<String>,
    /// The sentence that goes with it.
    message: Option<String>,
    /// Whether another attempt may succeed.
    retryable: bool,
    /// How long to wait before the next attempt, in milliseconds.
    retry_after_ms: Option<u64>,
    /// The details of the error.
    details: Option<Value>,
    /// The first attempt that succeeds; none does when absent.
    until_attempt: Option<u32>,
}

/// The output of the attempt that succeeds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Success {
    /// The number of the attempt.
    attempt: u32,
}

/// Fails as asked, or succeeds once the attempt is late enough.
pub fn fail(input: Failure) -> Result<Success, TaskError> {
    let attempt = attempt::current().attempt;
    if input.until_attempt.is_some_and(|first| attempt >= first) {
        return Ok(Success { attempt });
    }
    Err(error(input, attempt))
}

fn error(input: Failure, attempt: u32) -> TaskError {
    TaskError {
        code: input.code.unwrap_or_else(|| "FAILED".to_owned()),
        message: input.message.unwrap_or_else(|| format!("attempt {attempt} fails as asked")),
        retryable: input.retryable,
        retry_after_ms: input.retry_after_ms,
        details: input.details,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandkeep_sdk::attempt::{Info, within};
    use sandkeep_sdk::run;
    use serde_json::json;

    use super::*;
    use crate::TASKS;

    fn at_attempt(attempt: u32, input: &str) -> Result<String, TaskError> {
        within(Info { attempt, ..Info::default() }, || run(TASKS, "core.fail", input))
    }

    #[test]
    fn fails_plainly_when_told_nothing() {
        assert_eq!(at_attempt(1, "{}"), Err(TaskError::permanent("FAILED", "attempt 1 fails as asked")));
    }

    #[test]
    fn every_field_of_the_error_can_be_chosen() {
        let input = r#"{"code": "BUSY", "message": "later", "retryable": true, "retry_after_ms": 250, "details": [1]}"#;
        let error = TaskError::transient("BUSY", "later").retry_after(Duration::from_millis(250));
        assert_eq!(at_attempt(1, input), Err(error.with_details(json!([1]))));
    }

    #[test]
    fn succeeds_from_the_attempt_named() {
        let input = r#"{"until_attempt": 3, "retryable": true}"#;
        assert!(at_attempt(2, input).is_err_and(|error| error.retryable));
        assert_eq!(at_attempt(3, input).as_deref(), Ok(r#"{"attempt":3}"#));
        assert_eq!(at_attempt(4, input).as_deref(), Ok(r#"{"attempt":4}"#));
    }

    #[test]
    fn misspelt_field_is_refused() {
        assert!(at_attempt(1, r#"{"untill_attempt": 3}"#).is_err_and(|error| error.code == "INVALID_INPUT"));
    }
}
