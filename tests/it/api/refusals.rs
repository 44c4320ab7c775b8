//! Wrong requests to every route: status, code and what the message says.

use serde_json::json;

use super::{register_echo, register_gate};
use crate::support::Server;

const NO_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_what_is_wrong_with_its_code() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    register_gate(&client).await;
    client.start("gate", "live", json!({})).await;
    let digest = format!("/v1/modules/none/{NO_DIGEST}");
    let content = format!("{digest}/content");
    let cases: &[(&str, &str, Option<&str>, u16, &str)] = &[
        ("GET", "/", None, 404, "NOT_FOUND"),
        ("GET", "/v1/nothing", None, 404, "NOT_FOUND"),
        ("GET", "/v2/executions", None, 404, "NOT_FOUND"),
        ("DELETE", "/v1/executions", None, 405, "METHOD_NOT_ALLOWED"),
        ("PUT", "/v1/workflows", Some("{}"), 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/tasks/complete", None, 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/workflows/none", None, 404, "WORKFLOW_NOT_FOUND"),
        ("GET", "/v1/workflows/echo/9", None, 404, "WORKFLOW_NOT_FOUND"),
        ("GET", "/v1/workflows/No%20Name", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/workflows/%ff", None, 400, "INVALID_REQUEST"),
        ("POST", "/v1/workflows", None, 400, "INVALID_IR"),
        ("POST", "/v1/workflows", Some("{"), 400, "INVALID_IR"),
        ("POST", "/v1/workflows?default=perhaps", Some("{}"), 400, "INVALID_REQUEST"),
        ("PUT", "/v1/workflows/none/default", Some(r#"{"version":"1"}"#), 404, "WORKFLOW_NOT_FOUND"),
        ("PUT", "/v1/workflows/echo/default", Some(r#"{"version":"9"}"#), 404, "WORKFLOW_NOT_FOUND"),
        ("PUT", "/v1/workflows/echo/default", Some(r#"{"versoin":"1"}"#), 400, "INVALID_REQUEST"),
        ("PUT", "/v1/workflows/echo/default", Some(r#"{"version":1}"#), 400, "INVALID_REQUEST"),
        ("PUT", "/v1/workflows/echo/default", None, 400, "INVALID_REQUEST"),
        ("DELETE", "/v1/workflows/echo/9", None, 404, "WORKFLOW_NOT_FOUND"),
        ("DELETE", "/v1/workflows/gate/1", None, 409, "WORKFLOW_IN_USE"),
        ("POST", "/v1/executions", None, 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some("{}"), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some("[]"), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"none"}"#), 404, "WORKFLOW_NOT_FOUND"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"echo","version":"9"}"#), 404, "WORKFLOW_NOT_FOUND"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"echo","execution_id":"a b"}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"echo","execution_id":""}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"echo","start_delay":"soon"}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"echo","labels":{"":"x"}}"#), 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions?status=odd", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions?limit=-1", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions?cursor=abc", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions?created_after=yesterday", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/none", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/a%20b", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/none/history", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/none/history?follow=true", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/history?run=2", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/history?run=0", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/history?follow=true&reverse=true", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/live/history?after_seq=x", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/none/logs", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/none/logs?follow=true", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/none/units", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/units?cursor=abc", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/none/units/a", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/units/none", None, 404, "UNIT_NOT_FOUND"),
        ("GET", "/v1/executions/none/result", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/result", None, 409, "NOT_FINISHED"),
        ("GET", "/v1/executions/none/wait", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/wait?timeout_ms=soon", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/executions/none/queries/stage", None, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/v1/executions/live/queries/none", None, 404, "QUERY_NOT_FOUND"),
        ("GET", "/v1/executions/live/queries/odd", None, 400, "EXPRESSION_ERROR"),
        ("POST", "/v1/executions/none/cancel", None, 404, "EXECUTION_NOT_FOUND"),
        ("POST", "/v1/executions/live/cancel", Some(r#"{"raeson":"x"}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/executions/none/signals/go", None, 404, "EXECUTION_NOT_FOUND"),
        ("POST", "/v1/executions/live/signals/none", None, 404, "SIGNAL_NOT_FOUND"),
        ("POST", "/v1/executions/live/signals/strict", Some("{}"), 400, "INPUT_CONTRACT_VIOLATION"),
        ("POST", "/v1/executions/live/signals/go", Some("{"), 400, "INVALID_REQUEST"),
        ("GET", "/v1/modules/none", None, 404, "MODULE_NOT_FOUND"),
        ("GET", "/v1/modules/No", None, 400, "INVALID_REQUEST"),
        ("GET", &digest, None, 404, "MODULE_NOT_FOUND"),
        ("GET", &content, None, 404, "MODULE_NOT_FOUND"),
        ("GET", "/v1/modules/none/sha256:0", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/modules?cursor=abc", None, 400, "INVALID_REQUEST"),
        ("GET", "/v1/workflows?cursor=abc", None, 400, "INVALID_REQUEST"),
        ("POST", "/v1/workers/register", Some("{}"), 400, "INVALID_REQUEST"),
        ("POST", "/v1/workers/register", Some(r#"{"worker_id":"a\u0000","runtime":"x"}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/workers/heartbeat", Some(r#"{"worker_session_id":"gone"}"#), 404, "SESSION_NOT_FOUND"),
        ("POST", "/v1/workers/poll", Some(r#"{"worker_session_id":"gone"}"#), 404, "SESSION_NOT_FOUND"),
        ("POST", "/v1/workers/unregister", Some(r#"{"worker_session_id":"gone"}"#), 404, "SESSION_NOT_FOUND"),
        ("POST", "/v1/tasks/complete", Some(r#"{"token":"","output":1}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/tasks/complete", Some(r#"{"token":"forged","output":1}"#), 403, "TOKEN_INVALID"),
        ("POST", "/v1/tasks/fail", Some(r#"{"token":"","error_code":"X"}"#), 400, "INVALID_REQUEST"),
        ("POST", "/v1/tasks/fail", Some(r#"{"token":"forged","error_code":"X"}"#), 403, "TOKEN_INVALID"),
    ];
    let mut wrong = Vec::new();
    for (method, path, body, status, code) in cases {
        let answer = client.call(method, path, *body).await;
        if answer.verdict() != (*status, (*code).to_owned()) {
            wrong.push(format!(
                "{method} {path} {body:?}: wanted {status} {code}, got {} {}",
                answer.status, answer.text
            ));
        } else {
            assert!(!answer.message().is_empty());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_named_with_the_nearest() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    client.start("gate", "live", json!({})).await;
    for (method, path, body, wanted) in [
        ("POST", "/v1/executions", Some(r#"{"worklfow":"gate"}"#), "did you mean `workflow`?"),
        ("POST", "/v1/executions", Some(r#"{"workflow":"gate","excution_id":"a"}"#), "did you mean `execution_id`?"),
        ("POST", "/v1/executions?wait=true", Some(r#"{"workflow":"gate"}"#), "none is known here"),
        ("GET", "/v1/executions?stauts=running", None, "did you mean `status`?"),
        ("GET", "/v1/executions/live/history?follwo=true", None, "did you mean `follow`?"),
        ("GET", "/v1/executions/live/logs?afetr=1", None, "did you mean `after`?"),
        ("GET", "/v1/executions/live/wait?timeout=1", None, "did you mean `timeout_ms`?"),
        ("GET", "/v1/executions/live?verbose=1", None, "none is known here"),
        ("GET", "/v1/modules?limti=1", None, "did you mean `limit`?"),
        ("POST", "/v1/executions/live/cancel", Some(r#"{"raeson":"x"}"#), "did you mean `reason`?"),
    ] {
        let answer = client.call(method, path, body).await;
        assert_eq!(answer.verdict(), (400, "INVALID_REQUEST".to_owned()), "{path}: {}", answer.text);
        assert!(answer.message().contains(wanted), "{path}: {}", answer.message());
    }
    // Worker messages skip what they do not know.
    let register = r#"{"worker_id":"w","contracts":[{"task_name":"a.b","version":"1.0","zone":1}],"zone":{"a":[1]}}"#;
    assert_eq!(client.call("POST", "/v1/workers/register", Some(register)).await.status, 200);
}
