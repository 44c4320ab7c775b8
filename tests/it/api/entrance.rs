//! What is judged before a request reaches its route: who asks, with which type, coding and size.

use serde_json::json;

use super::register_echo;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_finds_nothing() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    client.start("echo", "mine", json!({})).await;
    for path in ["/v1/executions/mine", "/v1/executions", "/v1/workflows/echo", "/v1/modules", "/v1/executions/none"] {
        let get = |tenant: &str| client.http().get(client.at(path)).header("x-sandkeep-tenant", tenant);
        assert_eq!(client.ask(get("acme")).await.verdict(), (404, "NOT_FOUND".to_owned()), "{path}");
        assert_eq!(client.ask(get("No Name")).await.verdict(), (400, "INVALID_REQUEST".to_owned()), "{path}");
        assert_eq!(client.ask(get("")).await.verdict(), (400, "INVALID_REQUEST".to_owned()), "{path}");
        let twice = get("default").header("x-sandkeep-tenant", "default");
        assert_eq!(client.ask(twice).await.verdict(), (400, "INVALID_REQUEST".to_owned()), "{path}");
        assert_eq!(client.ask(get("default")).await.status, if path.ends_with("none") { 404 } else { 200 }, "{path}");
    }
    let start = client.http().post(client.at("/v1/executions")).header("x-sandkeep-tenant", "acme");
    assert_eq!(client.ask(start.json(&json!({ "workflow": "echo" }))).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_another_origin_and_foreign_names_are_refused() {
    let server = Server::start().await;
    let client = server.client();
    let own = server.url().to_owned();
    let get = || client.http().get(client.at("/v1/executions"));
    for origin in ["http://evil.example", "null", "http://localhost:1", "https://evil.example:443"] {
        let answer = client.ask(get().header("origin", origin)).await;
        assert_eq!(answer.verdict(), (403, "FORBIDDEN".to_owned()), "{origin}");
    }
    assert_eq!(client.ask(get().header("origin", own)).await.status, 200);
    for (host, status) in
        [("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost", 200), ("[::1]:80", 200)]
    {
        assert_eq!(client.ask(get().header("host", host)).await.status, status, "{host}");
    }
    let preflight = client.http().request("OPTIONS".parse().unwrap(), client.at("/v1/executions"));
    let answer = client.ask(preflight.header("origin", "http://evil.example")).await;
    assert_eq!(answer.status, 403);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_another_type_coding_or_size_are_refused() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    let start = || client.http().post(client.at("/v1/executions")).body(r#"{"workflow":"echo"}"#);
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"] {
        let answer = client.ask(start().header("content-type", content_type)).await;
        assert_eq!(answer.verdict(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()), "{content_type}");
    }
    assert_eq!(client.ask(start()).await.status, 415);
    assert_eq!(client.ask(start().header("content-type", "application/json; charset=utf-8")).await.status, 201);
    for coding in ["gzip", "br", "zstd", "x-unknown"] {
        let packed = start().header("content-type", "application/json").header("content-encoding", coding);
        assert_eq!(client.ask(packed).await.status, 415, "C103 {coding}");
        let module = client.http().post(client.at("/v1/modules/packed")).header("content-encoding", coding).body("x");
        assert_eq!(client.ask(module).await.status, 415, "C103 {coding}");
    }
    let large = |bytes: usize| format!(r#"{{"workflow":"echo","input":"{}"}}"#, "x".repeat(bytes));
    const MIB: usize = 1024 * 1024;
    for (bytes, status) in [(MIB - 2, 201), (MIB - 1, 413), (2 * MIB, 413)] {
        let answer = client.call("POST", "/v1/executions", Some(&large(bytes))).await;
        assert_eq!(answer.status, status, "{bytes}: {}", answer.text);
    }
    let signal = format!("\"{}\"", "x".repeat(MIB));
    let answer = client.call("POST", "/v1/executions/none/signals/go", Some(&signal)).await;
    assert_eq!(answer.verdict(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    for (path, bytes) in
        [("/v1/workflows", MIB + 1), ("/v1/tasks/complete", 4 * MIB + 1), ("/v1/executions", 4 * MIB + 1)]
    {
        let answer = client.call("POST", path, Some(&" ".repeat(bytes))).await;
        assert_eq!(answer.verdict(), (413, "PAYLOAD_TOO_LARGE".to_owned()), "{path}");
        assert!(answer.json()["error"]["details"]["limit_bytes"].as_u64().is_some_and(|limit| limit < bytes as u64));
    }
}

/// The door is shut while a body comes in, not after it was taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_an_end_is_cut_off() {
    let server = Server::start().await;
    let client = server.client();
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]));
    let request = client.http().post(client.at("/v1/executions")).header("content-type", "application/json");
    // The server may answer or cut the line first; either way it is over, and it lives.
    if let Ok(answer) = request.body(reqwest::Body::wrap_stream(endless)).send().await {
        assert_eq!(answer.status(), 413);
    }
    assert_eq!(client.get("/livez").await.0, 200);
}
