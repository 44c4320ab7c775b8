//! Gets a JSON document from the web: outgoing HTTP, to where the tenant's policy lets modules go.
//!
//! What comes back decides what the workflow does next: a status that another attempt may change is a transient error,
//! any other a permanent one, and a `retry-after` is obeyed.

use std::time::Duration;

use sandkeep_sdk::http::{Request, Response};
use sandkeep_sdk::{TaskError, attempt, log, tasks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long the other side may take for each part of its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest pause that an answer may ask for.
const PAUSE_SECONDS_MAX: u64 = 3_600;

tasks! {
    /// Gets a JSON document by HTTP.
    "fetch.json" "1.0.0" => fetch_json,
}

/// What to get.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// An absolute URL that the tenant's policy lists.
    url: String,
}

/// What was got.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fetched {
    /// The document.
    document: Value,
    /// By which a later request can ask whether it changed.
    etag: Option<String>,
}

/// Gets a JSON document by HTTP.
pub fn fetch_json(wanted: Wanted) -> Result<Fetched, TaskError> {
    log::info(&format!("getting {}, attempt {}", wanted.url, attempt::current().attempt));
    let request = Request::get(wanted.url).header("accept", "application/json").timeout(PATIENCE);
    read(&request.send()?)
}

/// Judges an answer.
fn read(response: &Response) -> Result<Fetched, TaskError> {
    let status = response.status;
    let message = format!("the answer was {status}");
    match status {
        200 => Ok(Fetched { document: response.json()?, etag: response.header("etag").map(str::to_owned) }),
        404 | 410 => Err(TaskError::permanent("NOT_FOUND", message)),
        429 | 503 => match pause(response) {
            Some(pause) => Err(TaskError::transient("BUSY", message).retry_after(pause)),
            None => Err(TaskError::transient("BUSY", message)),
        },
        500.. => Err(TaskError::transient("UPSTREAM_FAILED", message)),
        _ => Err(TaskError::permanent("UNEXPECTED_STATUS", message).with_details([("status", status)])),
    }
}

/// What `retry-after` asks for, where it is a number of seconds.
fn pause(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(PAUSE_SECONDS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Response { status, headers, body: body.into() }
    }

    #[test]
    fn document_comes_with_its_tag() {
        let fetched = read(&answer(200, &[("etag", "\"7\"")], r#"{"n":1}"#)).expect("it is JSON");
        assert_eq!((fetched.document["n"].as_i64(), fetched.etag.as_deref()), (Some(1), Some("\"7\"")));
    }

    #[test]
    fn statuses_decide_about_another_attempt() {
        for (status, code, retryable) in [
            (404, "NOT_FOUND", false),
            (302, "UNEXPECTED_STATUS", false),
            (500, "UPSTREAM_FAILED", true),
            (503, "BUSY", true),
        ] {
            let error = read(&answer(status, &[], "")).expect_err("no document");
            assert_eq!((error.code.as_str(), error.retryable), (code, retryable));
        }
    }

    #[test]
    fn pause_is_obeyed_within_reason() {
        for (value, pause) in [("2", Some(2_000)), ("99999999", Some(3_600_000)), ("soon", None), ("-1", None)] {
            let error = read(&answer(429, &[("retry-after", value)], "")).expect_err("busy");
            assert_eq!(error.retry_after_ms, pause, "{value}");
        }
    }
}
