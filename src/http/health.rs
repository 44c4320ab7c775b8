//! Whether the server lives, can serve, and how it fares.

use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json, raw},
    query::Query,
};
use crate::app::{App, Error, ErrorCode, Health};

/// How long to wait before a server that is not ready is asked again.
const READY_AGAIN_MS: u64 = 1_000;

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(live)).routes(routes!(ready)).routes(routes!(metrics))
}

/// The answer of a probe.
#[derive(Serialize, ToSchema)]
struct Probe {
    /// `ok`.
    status: &'static str,
}

/// Returns the state of the server.
#[utoipa::path(get, path = "/v1/health", tag = "server", responses((status = 200, body = Health)))]
async fn health(State(app): State<App>, _: Query<()>) -> Answer {
    json(StatusCode::OK, &app.health().await)
}

/// Returns whether the process lives.
#[utoipa::path(get, path = "/livez", tag = "server", responses((status = 200, body = Probe)))]
async fn live() -> Answer {
    json(StatusCode::OK, &Probe { status: "ok" })
}

/// Returns whether requests can be served: the database is reachable, modules can be loaded.
#[utoipa::path(get, path = "/readyz", tag = "server", responses((status = 200, body = Probe)))]
async fn ready(State(app): State<App>) -> Answer {
    match app.ready().await {
        Ok(()) => json(StatusCode::OK, &Probe { status: "ok" }),
        Err(reason) => Err(Error::new(ErrorCode::Unavailable, reason).retry_after(READY_AGAIN_MS).into()),
    }
}

/// Returns counters and gauges in the Prometheus text format.
#[utoipa::path(
    get, path = "/v1/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"))
)]
async fn metrics(State(app): State<App>, _: Query<()>) -> Response {
    raw(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", app.metrics().await)
}
