//! What commands read of an execution's state, and how they wait for its end.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::view::FailureView;

use super::{
    Error,
    client::{Client, To},
    progress::Spinner,
};

/// How long one question may be held back by the server.
const HELD_MS: u64 = 20_000;

/// How long a server may be away while it is waited for: long enough for a restart.
const AWAY_MAX: Duration = Duration::from_secs(30);

/// The pause before a server that is away is asked again.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// The state of an execution.
#[derive(Debug, Deserialize)]
pub(super) struct State {
    /// Its id.
    pub(super) execution_id: String,
    /// The workflow.
    pub(super) workflow: String,
    /// Its version.
    pub(super) version: String,
    /// Its generation.
    pub(super) run: u32,
    /// Its status.
    pub(super) status: String,
    /// Why it ended.
    pub(super) error: Option<FailureView>,
    /// When it was created, in milliseconds since 1970.
    pub(super) created_at_ms: i64,
    /// When it ended.
    pub(super) finished_at_ms: Option<i64>,
    /// How many units there are.
    pub(super) units_total: u64,
    /// What it waits for.
    pub(super) waiting_for: Option<String>,
}

impl State {
    /// Returns whether the status is final.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.status.as_str(), "COMPLETED" | "FAILED" | "CANCELLED" | "TIMED_OUT" | "TERMINATED")
    }

    /// Returns whether it did what was asked of it.
    pub(super) fn is_completed(&self) -> bool {
        self.status == "COMPLETED"
    }

    /// Returns how it stands, in one sentence.
    pub(super) fn sentence(&self) -> String {
        let Self { execution_id, status, .. } = self;
        match (&self.error, &self.waiting_for) {
            (Some(FailureView { code, message, .. }), _) if code == status => {
                format!("execution `{execution_id}` is {status}: {message}")
            }
            (Some(FailureView { code, message, .. }), _) => {
                format!("execution `{execution_id}` is {status}: {code}: {message}")
            }
            (None, Some(waiting_for)) => format!("execution `{execution_id}` is {status}: {waiting_for}"),
            (None, None) => format!("execution `{execution_id}` is {status}"),
        }
    }
}

/// Waits until an execution has ended, or `timeout` is over, and returns its state then. A server that restarts
/// meanwhile is waited for, once it was there.
pub(super) async fn wait(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
) -> Result<(State, Box<RawValue>), Error> {
    let begin = Instant::now();
    let spinner = Spinner::start(format!("execution `{id}`"));
    let mut away_since: Option<Instant> = None;
    let mut seen = false;
    loop {
        let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
        let left_ms = left.map_or(HELD_MS, |left| u64::try_from(left.as_millis()).unwrap_or(HELD_MS));
        let held_ms = left_ms.min(HELD_MS);
        let to = To::path(&["executions", id, "wait"]).with("timeout_ms", held_ms);
        match client.get_within(&to, Duration::from_millis(held_ms) + Duration::from_secs(30)).await {
            Ok(answer) => {
                let state: State = client.read(&answer)?;
                if state.is_terminal() || left.is_some_and(|left| left.is_zero()) {
                    return Ok((state, answer));
                }
                (seen, away_since) = (true, None);
                spinner.say(&state.sentence());
            }
            Err(error) => {
                let away = away_since.get_or_insert_with(Instant::now).elapsed();
                let gone = away > AWAY_MAX || left.is_some_and(|left| left.is_zero());
                if !seen || gone || !may_come_back(&error) {
                    return Err(error);
                }
                spinner.say(&format!("execution `{id}`: {error}; asking again"));
                tokio::time::sleep(AWAY_PAUSE).await;
            }
        }
    }
}

/// A server that stops or starts; anything else would be answered the same way again.
pub(super) fn may_come_back(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Refused(refusal) => refusal.code == "UNAVAILABLE",
        _ => false,
    }
}
