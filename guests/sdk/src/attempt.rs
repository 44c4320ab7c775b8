//! The attempt that is being served.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host;

/// One attempt at one unit of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The owner of the execution.
    pub tenant: String,
    /// The execution's id, unique within its tenant.
    pub execution_id: String,
    /// The execution's generation, from 1.
    pub run: u32,
    /// The name of the workflow.
    pub workflow: String,
    /// The version of the workflow.
    pub workflow_version: String,
    /// The unit, such as `charge` or `lines[3].charge`.
    pub unit: String,
    /// The task as the workflow names it.
    pub task: String,
    /// The number of this attempt, from 1. A redelivery keeps it.
    pub attempt: u32,
    /// Whether this attempt may have been handed out before, so that its effects may be there already.
    pub redelivery: bool,
    /// The same text in every attempt and redelivery of this run and unit: give it to the systems you call.
    pub idempotency_key: String,
    /// When the attempt is cut off, in milliseconds since 1970 (UTC); none where nothing limits it.
    pub deadline_ms: Option<u64>,
}

impl Default for Info {
    /// A first attempt of nothing in particular: what a task sees natively outside of [`within`].
    fn default() -> Self {
        Self {
            tenant: "default".to_owned(),
            execution_id: "native".to_owned(),
            run: 1,
            workflow: "native".to_owned(),
            workflow_version: "0.0.0".to_owned(),
            unit: "native".to_owned(),
            task: "native".to_owned(),
            attempt: 1,
            redelivery: false,
            idempotency_key: "native".to_owned(),
            deadline_ms: None,
        }
    }
}

/// Returns the attempt being served.
pub fn current() -> Info {
    host::current_attempt()
}

/// Returns whether the attempt is no longer wanted. The host ends it soon after; this lets it end well.
pub fn cancelled() -> bool {
    host::cancelled()
}

/// Keeps `details` with the attempt and shows it live. The next attempt can read the last one reported.
///
/// # Errors
///
/// When `details` cannot be written as JSON.
pub fn report_progress(details: &impl Serialize) -> Result<(), serde_json::Error> {
    host::report_progress(&serde_json::to_string(details)?);
    Ok(())
}

/// Returns what was reported last for this unit, by this attempt or an earlier one.
///
/// Progress that does not fit `T` counts as none: an earlier version of the task may have written it.
pub fn last_progress<T: DeserializeOwned>() -> Option<T> {
    host::last_progress().and_then(|details| serde_json::from_str(&details).ok())
}

/// Serves `call` as the attempt `info` and returns what it returns: for tests, and for native workers.
#[cfg(not(target_arch = "wasm32"))]
pub fn within<R>(info: Info, call: impl FnOnce() -> R) -> R {
    host::within(info, call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_attempt_is_seen_inside_its_scope_only() {
        let third = Info { attempt: 3, ..Info::default() };
        assert_eq!(within(third, || current().attempt), 3);
        assert_eq!(current(), Info::default());
    }

    #[test]
    fn native_scope_ends_with_a_panic() {
        let third = Info { attempt: 3, ..Info::default() };
        let outcome = std::panic::catch_unwind(|| within(third, || panic!("on purpose")));
        assert!(outcome.is_err());
        assert_eq!(current().attempt, 1);
    }

    #[test]
    fn progress_is_read_back_within_its_attempt() {
        within(Info::default(), || {
            assert_eq!(last_progress::<u32>(), None);
            report_progress(&7).expect("a number is JSON");
            assert_eq!(last_progress::<u32>(), Some(7));
            assert_eq!(last_progress::<String>(), None);
        });
        assert_eq!(last_progress::<u32>(), None);
    }
}
