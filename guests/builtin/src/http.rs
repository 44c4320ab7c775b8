//! `http.request`.

use std::collections::BTreeMap;
use std::time::Duration;

use sandkeep_sdk::TaskError;
use sandkeep_sdk::http::{Request, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much of an unexpected response is kept with the error, in bytes.
const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// What to send, and what to expect.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The method; `GET` when absent.
    #[serde(default)]
    method: Option<String>,
    /// An absolute URL. The policy of the tenant must list its scheme, host and port.
    url: String,
    /// Headers by name.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A text to send.
    #[serde(default)]
    body: Option<String>,
    /// A value to send as JSON, instead of `body`.
    #[serde(default)]
    json: Option<Value>,
    /// The statuses that are a success; 200 to 299 when absent.
    #[serde(default)]
    expect: Option<Vec<u16>>,
    /// How long to wait for the connection, the head of the response, and each part of its body, in milliseconds.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// What came back.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// The status.
    status: u16,
    /// Headers by name, in lower case; several of one name are joined by commas.
    headers: BTreeMap<String, String>,
    /// The body as a text; absent when it is JSON. Bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The body as a value, where its content type says that it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
}

/// Sends a request. A status that is not expected is `HTTP_STATUS`, worth another attempt where the server may answer
/// otherwise later.
pub fn request(call: Call) -> Result<Answer, TaskError> {
    let expected = call.expect.clone();
    let response = prepare(call)?.send()?;
    answer(response, expected.as_deref())
}

fn prepare(call: Call) -> Result<Request, TaskError> {
    let method = call.method.map_or_else(|| "GET".to_owned(), |method| method.to_ascii_uppercase());
    let mut request = Request::new(method, call.url);
    request.timeout = call.timeout_ms.map(Duration::from_millis);
    let names_type = call.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
    request.headers = call.headers.into_iter().collect();
    match (call.body, call.json) {
        (Some(_), Some(_)) => Err(TaskError::permanent("INVALID_INPUT", "`body` and `json` are both given")),
        (None, Some(value)) if names_type => Ok(request.body(value.to_string())),
        (None, Some(value)) => request.json(&value),
        (body, None) => Ok(request.body(body.unwrap_or_default())),
    }
}

fn answer(response: Response, expected: Option<&[u16]>) -> Result<Answer, TaskError> {
    let status = response.status;
    let is_expected = expected.map_or((200..300).contains(&status), |expected| expected.contains(&status));
    if !is_expected {
        return Err(unexpected(&response));
    }
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in &response.headers {
        let known = headers.entry(name.clone()).and_modify(|known| *known = format!("{known}, {value}"));
        known.or_insert_with(|| value.clone());
    }
    let is_json = response.header("content-type").is_some_and(is_json);
    let json = if is_json { serde_json::from_slice(&response.body).ok() } else { None };
    let body = json.is_none().then(|| String::from_utf8_lossy(&response.body).into_owned());
    Ok(Answer { status, headers, body, json })
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

fn unexpected(response: &Response) -> TaskError {
    let status = response.status;
    let mut body = String::from_utf8_lossy(&response.body[..response.body.len().min(DETAIL_BYTES_MAX)]).into_owned();
    body.truncate(body.floor_char_boundary(DETAIL_BYTES_MAX));
    let error = TaskError::permanent("HTTP_STATUS", format!("the answer has status {status}"))
        .with_details(serde_json::json!({ "status": status, "body": body }));
    let is_transient = status >= 500 || matches!(status, 408 | 425 | 429);
    let seconds = response.header("retry-after").and_then(|value| value.trim().parse().ok());
    match seconds {
        Some(seconds) if is_transient => error.retry_after(Duration::from_secs(seconds)),
        _ => TaskError { retryable: is_transient, ..error },
    }
}

#[cfg(test)]
mod tests {
    use sandkeep_sdk::run;

    use super::*;
    use crate::TASKS;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status, headers, body: body.as_bytes().to_vec() }
    }

    fn call(input: &str) -> Result<Request, TaskError> {
        prepare(serde_json::from_str(input).unwrap())
    }

    #[test]
    fn request_is_made_of_the_input() {
        let request = call(r#"{"url": "https://a.example", "method": "put", "json": [1], "timeout_ms": 5}"#).unwrap();
        assert_eq!((&*request.method, &*request.body), ("PUT", &b"[1]"[..]));
        assert_eq!(request.headers, [("content-type".to_owned(), "application/json".to_owned())]);
        assert_eq!(request.timeout, Some(Duration::from_millis(5)));
        let request = call(r#"{"url": "x", "json": 1, "headers": {"Content-Type": "text/x"}}"#).unwrap();
        assert_eq!(request.headers.len(), 1);
        assert!(call(r#"{"url": "x", "json": 1, "body": ""}"#).is_err_and(|error| error.code == "INVALID_INPUT"));
    }

    #[test]
    fn json_is_read_where_the_server_says_so() {
        let headers = [("content-type", "application/problem+json; charset=utf-8"), ("x", "1"), ("x", "2")];
        let json = answer(response(200, &headers, r#"{"a":1}"#), None).unwrap();
        assert_eq!((json.body, json.json), (None, Some(serde_json::json!({"a": 1}))));
        assert_eq!(json.headers["x"], "1, 2");
        let text = answer(response(200, &[], "{}"), None).unwrap();
        assert_eq!((text.body.as_deref(), text.json), (Some("{}"), None));
    }

    #[test]
    fn unexpected_status_is_an_error_of_its_own() {
        for (status, expect, outcome) in [
            (204, None, None),
            (302, None, Some(false)),
            (404, None, Some(false)),
            (404, Some(&[404][..]), None),
            (200, Some(&[404]), Some(false)),
            (429, None, Some(true)),
            (503, None, Some(true)),
        ] {
            let error = answer(response(status, &[], "why"), expect).err();
            assert_eq!(error.as_ref().map(|error| error.retryable), outcome, "{status}");
            assert!(error.is_none_or(|error| error.code == "HTTP_STATUS"));
        }
        let later = answer(response(503, &[("retry-after", "7")], &"é".repeat(9_000)), None).unwrap_err();
        assert_eq!(later.retry_after_ms, Some(7_000));
        assert!(later.details.unwrap().to_string().len() < 5_000);
    }

    #[test]
    fn nothing_is_sent_natively() {
        let error = run(TASKS, "http.request", r#"{"url": "https://a.example"}"#).unwrap_err();
        assert_eq!((&*error.code, error.retryable), ("HTTP_UNAVAILABLE", false));
        let error = run(TASKS, "http.request", r#"{"url": "a.example"}"#).unwrap_err();
        assert_eq!(error.code, "HTTP_INVALID");
    }
}
