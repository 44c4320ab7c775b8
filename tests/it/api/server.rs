//! What the server says of itself.

use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use super::keys;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_how_it_is() {
    let server = Server::start().await;
    let client = server.client();
    for path in ["/livez", "/readyz"] {
        assert_eq!(client.call("GET", path, None).await.json(), serde_json::json!({ "status": "ok" }));
    }
    let health = client.call("GET", "/v1/health", None).await.json();
    let fields = ["active_executions", "api_version", "ir_versions", "runtime_version", "status", "worker_sessions"];
    assert_eq!(keys(&health), fields);
    assert_eq!(health["api_version"], "sandkeep-api/1");
    assert_eq!(health["ir_versions"], serde_json::json!(["sandkeep-ir/1"]));
    let metrics = client.call("GET", "/v1/metrics", None).await;
    assert!(metrics.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    for name in [
        "sandkeep_commits_total",
        "sandkeep_batches_total",
        "sandkeep_batch_size_count",
        "sandkeep_repairs_total",
        "sandkeep_stale_reports_total",
    ] {
        assert!(metrics.text.lines().any(|line| line.split(' ').next() == Some(name)), "{name}");
    }
    let ids: std::collections::HashSet<_> = [
        client.call("GET", "/livez", None).await.headers["x-request-id"].clone(),
        client.call("GET", "/livez", None).await.headers["x-request-id"].clone(),
        metrics.headers["x-request-id"].clone(),
    ]
    .into();
    assert_eq!(ids.len(), 3, "each request has its own id");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_lists_every_route_of_this_part() {
    let server = Server::start().await;
    let document = server.client().call("GET", "/v1/openapi.json", None).await.json();
    assert_eq!(document["openapi"], "3.1.0");
    for (method, path) in [
        ("get", "/v1/health"),
        ("get", "/livez"),
        ("get", "/readyz"),
        ("get", "/v1/metrics"),
        ("get", "/v1/openapi.json"),
        ("post", "/v1/workflows"),
        ("get", "/v1/workflows"),
        ("get", "/v1/workflows/{name}"),
        ("get", "/v1/workflows/{name}/{version}"),
        ("put", "/v1/workflows/{name}/default"),
        ("delete", "/v1/workflows/{name}/{version}"),
        ("post", "/v1/executions"),
        ("get", "/v1/executions"),
        ("get", "/v1/executions/{id}"),
        ("get", "/v1/executions/{id}/history"),
        ("get", "/v1/executions/{id}/logs"),
        ("get", "/v1/executions/{id}/units"),
        ("get", "/v1/executions/{id}/units/{unit}"),
        ("get", "/v1/executions/{id}/result"),
        ("get", "/v1/executions/{id}/wait"),
        ("get", "/v1/executions/{id}/queries/{name}"),
        ("post", "/v1/executions/{id}/cancel"),
        ("post", "/v1/executions/{id}/signals/{name}"),
        ("post", "/v1/modules/{name}"),
        ("get", "/v1/modules"),
        ("get", "/v1/modules/{name}"),
        ("get", "/v1/modules/{name}/{digest}"),
        ("get", "/v1/modules/{name}/{digest}/content"),
        ("get", "/v1/workers"),
        ("post", "/v1/workers/register"),
        ("post", "/v1/workers/heartbeat"),
        ("post", "/v1/workers/poll"),
        ("post", "/v1/workers/unregister"),
        ("post", "/v1/tasks/complete"),
        ("post", "/v1/tasks/fail"),
    ] {
        assert!(document["paths"][path][method]["responses"].is_object(), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_serves_health() {
    let server = Server::start().await;
    let channel = tonic::transport::Endpoint::from_shared(server.grpc().to_owned()).unwrap().connect().await.unwrap();
    let request = HealthCheckRequest { service: String::new() };
    let answer = HealthClient::new(channel).check(request).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
}
