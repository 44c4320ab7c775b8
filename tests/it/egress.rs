//! Outgoing HTTP as its users meet it: a built-in task, a module of the SDK, and policies that change between attempts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::support::{Client, Server, count, workflow};

/// What is on the other side.
#[derive(Clone, Default)]
struct Site {
    asked: Arc<AtomicUsize>,
}

/// Answers by the path of the request; returns its address and how often it was asked.
pub async fn site() -> (String, Arc<AtomicUsize>) {
    let site = Site::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(site.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (origin, site.asked)
}

async fn answer(State(site): State<Site>, request: Request) -> Response {
    let number = site.asked.fetch_add(1, Ordering::SeqCst);
    let (head, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    match head.uri.path() {
        "/json" => {
            let told = json!({
                "method": head.method.as_str(), "query": head.uri.query(), "body": String::from_utf8_lossy(&body),
                "key": head.headers.get("x-key").and_then(|value| value.to_str().ok()),
            });
            ([("content-type", "application/json"), ("etag", "\"7\"")], told.to_string()).into_response()
        }
        "/gone" => (StatusCode::NOT_FOUND, "no such thing").into_response(),
        "/moved" => (StatusCode::FOUND, [("location", "/json")]).into_response(),
        "/busy" if number == 0 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")], "not yet").into_response(),
        _ => "plain".into_response(),
    }
}

pub async fn server() -> Server {
    Server::with(&[("SANDBOX__ALLOW_PRIVATE_EGRESS", "true")]).await
}

/// Lets a tenant's modules reach an origin of this machine.
pub async fn open(client: &Client, tenant: &str, origin: &str) {
    set(
        client,
        &format!("/v1/tenants/{tenant}/policy"),
        json!({
            "granted": { "egress": [origin], "private": ["127.0.0.0/8"] }
        }),
    )
    .await;
}

pub async fn set(client: &Client, path: &str, body: Value) {
    let request = client.http().put(client.at(path)).header("content-type", "application/json");
    let (status, value) = client.send(request.body(body.to_string())).await.expect("the server answers");
    assert_eq!(status, 200, "{value}");
}

/// Runs one task as the only step of a workflow.
pub async fn call(client: &Client, id: &str, task: &str, attempts: u32, input: Value) -> Value {
    let retry = json!({ "max_attempts": attempts, "initial": "10ms", "jitter": 0 });
    let mut document =
        workflow(&task.replace('.', "-"), json!([{ "id": "a", "task": task, "input": "${ input }", "retry": retry }]));
    document["version"] = json!(format!("{attempts}"));
    document["result"] = "${ steps.a.output }".into();
    client.register(&document).await;
    let start = json!({
        "workflow": document["name"], "version": document["version"], "execution_id": id, "input": input,
    });
    let (status, value) = client.post("/v1/executions", &start).await;
    assert_eq!(status, 201, "{value}");
    client.wait(id).await
}

#[track_caller]
fn check_failed(state: &Value, code: &str, part: &str) {
    assert_eq!((&state["status"], &state["error"]["code"]), (&json!("FAILED"), &json!(code)), "{state}");
    assert!(state["error"]["message"].as_str().unwrap().contains(part), "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_where_the_policy_lets_them_and_nowhere_else() {
    let server = server().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    let (origin, asked) = site().await;
    let get = json!({ "url": format!("{origin}/json?q=1") });
    check_failed(&call(&a, "closed", "http.request", 1, get.clone()).await, "EGRESS_DENIED", &origin);
    open(&server.client(), "a", &origin).await;
    let state = call(&a, "get", "http.request", 1, get.clone()).await;
    let output = &state["output"];
    assert_eq!((&output["status"], &output["json"]["query"]), (&json!(200), &json!("q=1")), "{state}");
    assert_eq!(output["headers"]["etag"], "\"7\"");
    let post =
        json!({ "url": format!("{origin}/json"), "method": "POST", "json": { "n": 1 }, "headers": { "x-key": "k" } });
    let state = call(&a, "post", "http.request", 1, post).await;
    let told = json!({ "method": "POST", "query": null, "body": "{\"n\":1}", "key": "k" });
    assert_eq!(state["output"]["json"], told, "{state}");
    let state = call(&a, "moved", "http.request", 1, json!({ "url": format!("{origin}/moved") })).await;
    check_failed(&state, "HTTP_STATUS", "302");
    let state =
        call(&a, "expected", "http.request", 1, json!({ "url": format!("{origin}/moved"), "expect": [302] })).await;
    assert_eq!(state["output"]["headers"]["location"], "/json", "a redirect comes back, and is not followed: {state}");
    let before = asked.load(Ordering::SeqCst);
    check_failed(&call(&b, "neighbour", "http.request", 1, get.clone()).await, "EGRESS_DENIED", &origin);
    set(&server.client(), "/v1/tenants/a/policy", json!({ "own": { "egress": [] } })).await;
    check_failed(&call(&a, "narrowed", "http.request", 1, get).await, "EGRESS_DENIED", &origin);
    assert_eq!(asked.load(Ordering::SeqCst), before, "what is denied is not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_asks_for_patience_is_asked_again() {
    let server = server().await;
    let client = server.client();
    let (origin, asked) = site().await;
    open(&client, "default", &origin).await;
    let state = call(&client, "busy", "http.request", 3, json!({ "url": format!("{origin}/busy") })).await;
    assert_eq!((&state["status"], &state["output"]["body"]), (&json!("COMPLETED"), &json!("plain")), "{state}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let history = client.history("busy").await;
    assert_eq!(count(&history, "StepAttemptFailed"), 1);
    let succeeded = history.iter().find(|event| event["type"] == "StepSucceeded").unwrap();
    let usage = &succeeded["served"]["usage"];
    assert_eq!((&usage["egress_requests"], &usage["egress_received_bytes"]), (&json!(1), &json!(5)), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_of_the_sdk_asks_within_its_own_list() {
    let server = server().await;
    let client = server.client();
    let (origin, _) = site().await;
    open(&client, "default", &origin).await;
    client.push("fetch").await;
    let wanted = json!({ "url": format!("{origin}/json") });
    let state = call(&client, "open", "fetch.json", 1, wanted.clone()).await;
    assert_eq!(state["output"]["etag"], "\"7\"", "{state}");
    assert_eq!(state["output"]["document"]["method"], "GET");
    let state = call(&client, "text", "fetch.json", 1, json!({ "url": format!("{origin}/plain") })).await;
    check_failed(&state, "HTTP_RESPONSE", "");
    set(&client, "/v1/modules/fetch/settings", json!({ "egress": [] })).await;
    check_failed(&call(&client, "narrowed", "fetch.json", 1, wanted).await, "EGRESS_DENIED", &origin);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_signed_and_checked() {
    let server = Server::start().await;
    let client = server.client();
    let input = json!({ "key": "Jefe", "message": "what do ya want for nothing?" });
    let state = call(&client, "sign", "crypto.hmac", 1, input.clone()).await;
    // RFC 4231, test case 2.
    let signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(state["output"]["signature"], signature, "{state}");
    let mut check = input;
    check["verify"] = signature.into();
    assert_eq!(call(&client, "check", "crypto.hmac", 1, check).await["output"], json!({ "valid": true }));
}
