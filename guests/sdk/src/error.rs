//! Why an attempt failed, as a task says it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// Why an attempt failed. Workflows decide by the code, people read the message.
///
/// ```
/// use sandkeep_sdk::TaskError;
/// use std::time::Duration;
///
/// TaskError::permanent("OUT_OF_STOCK", "only 2 of `lamp` are left").with_details([("lamp", 2)]);
/// TaskError::transient("BUSY", "the register is busy").retry_after(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TaskError {
    /// A stable code in capitals, such as `OUT_OF_STOCK`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// How long to wait before the next attempt, in milliseconds; none leaves it to the step's retry policy.
    pub retry_after_ms: Option<u64>,
    /// Whatever helps to handle the error.
    pub details: Option<Value>,
}

impl TaskError {
    /// Makes an error that another attempt would meet again.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, retry_after_ms: None, details: None }
    }

    /// Makes an error that another attempt may not meet.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::permanent(code, message) }
    }

    /// Asks for at least `delay` before the next attempt, which makes the error a transient one.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retryable = true;
        self.retry_after_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Adds details. What cannot be written as JSON is left out: an error must not be lost over its details.
    pub fn with_details(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::to_value(details).ok();
        self
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for TaskError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_error_asks_for_no_retry() {
        let error = TaskError::permanent("GONE", "it is gone");
        assert_eq!((error.retryable, error.retry_after_ms, &error.details), (false, None, &None));
        assert_eq!(error.to_string(), "GONE: it is gone");
    }

    #[test]
    fn delay_makes_an_error_transient() {
        let error = TaskError::permanent("BUSY", "busy").retry_after(Duration::from_millis(1_500));
        assert_eq!((error.retryable, error.retry_after_ms), (true, Some(1_500)));
        assert_eq!(error.retry_after(Duration::MAX).retry_after_ms, Some(u64::MAX));
    }

    #[test]
    fn details_without_json_form_are_left_out() {
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(TaskError::permanent("A", "a").with_details(unwritable).details, None);
        assert_eq!(TaskError::permanent("A", "a").with_details([1]).details, Some(serde_json::json!([1])));
    }
}
