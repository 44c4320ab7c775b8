//! What is asked of a living execution: cancel, signal, query, wait.

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{IdempotencyKey, Segments, Subject, Tenant},
    envelope::{CancelRequest, Signal, Strict},
    query::{FromQuery, Given, Query},
};
use crate::{
    app::{App, Error, ExecutionView, SignalAccepted},
    model::Payload,
};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(cancel_execution))
        .routes(routes!(signal_execution))
        .routes(routes!(query_execution))
        .routes(routes!(wait_execution))
}

/// What is said of a cancel that gives no reason.
const REASON: &str = "requested via API";

/// Cancels an execution. One that is cancelled already answers with its state again.
#[utoipa::path(
    post, path = "/v1/executions/{id}/cancel", tag = "executions", params(("id" = String, Path)),
    request_body = Option<CancelRequest>, responses((status = 200, body = ExecutionView))
)]
async fn cancel_execution(
    Subject { app, tenant, id }: Subject,
    _: Query<()>,
    Strict(request): Strict<CancelRequest>,
) -> Answer {
    let reason = request.reason.unwrap_or_else(|| REASON.to_owned());
    json(StatusCode::OK, &app.cancel_execution(&tenant, &id, Some(reason)).await?)
}

/// Sends a signal. The body is its payload; none means `{}`.
#[utoipa::path(
    post, path = "/v1/executions/{id}/signals/{name}", tag = "executions",
    params(
        ("id" = String, Path), ("name" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "Recognises a repeated signal for 24 hours.")
    ),
    request_body(content = Option<serde_json::Value>, description = "The payload."),
    responses((status = 200, body = SignalAccepted))
)]
async fn signal_execution(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((id, name)): Segments<(String, String)>,
    IdempotencyKey(key): IdempotencyKey,
    _: Query<()>,
    Signal(payload): Signal,
) -> Answer {
    json(StatusCode::OK, &app.signal_execution(&tenant, &id, &name, payload, key.as_deref()).await?)
}

/// What a query found.
#[derive(Serialize, ToSchema)]
struct QueryAnswer {
    /// The execution.
    execution_id: String,
    /// The query.
    query: String,
    /// Its value.
    #[schema(value_type = serde_json::Value)]
    value: Payload,
}

/// Asks one of the queries that the workflow declares.
#[utoipa::path(
    get, path = "/v1/executions/{id}/queries/{name}", tag = "executions",
    params(("id" = String, Path), ("name" = String, Path)), responses((status = 200, body = QueryAnswer))
)]
async fn query_execution(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((execution_id, query)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    let value = app.query_execution(&tenant, &execution_id, &query).await?;
    json(StatusCode::OK, &QueryAnswer { execution_id, query, value })
}

/// How long is waited.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct WaitQuery {
    /// How long to wait, in milliseconds: 30,000 where absent, at most 300,000.
    timeout_ms: Option<u64>,
}

impl FromQuery for WaitQuery {
    const KEYS: &'static [&'static str] = &["timeout_ms"];

    fn read(given: &Given) -> Result<Self, Error> {
        Ok(Self { timeout_ms: given.number("timeout_ms")? })
    }
}

/// Returns the state when the execution is terminal or the time is up.
#[utoipa::path(
    get, path = "/v1/executions/{id}/wait", tag = "executions", params(("id" = String, Path), WaitQuery),
    responses((status = 200, body = ExecutionView))
)]
async fn wait_execution(Subject { app, tenant, id }: Subject, Query(query): Query<WaitQuery>) -> Answer {
    json(StatusCode::OK, &app.wait_execution(&tenant, &id, query.timeout_ms).await?)
}
