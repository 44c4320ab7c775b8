//! Native workers: register, live, ask for work, leave.

use axum::{Extension, body::Body, extract::State, http::StatusCode, response::IntoResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json, raw},
    caller::Tenant,
    envelope::Message,
    handed::{HandedBody, Ledger},
    query::Query,
};
use crate::app::{
    App, Error, HeartbeatAnswer, HeartbeatRequest, PollRequest, RegisterRequest, Registered, TaskView, WorkerView,
};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(register_worker))
        .routes(routes!(heartbeat_worker))
        .routes(routes!(poll_worker))
        .routes(routes!(unregister_worker))
        .routes(routes!(list_workers))
}

/// Registers a worker and opens a session.
#[utoipa::path(
    post, path = "/v1/workers/register", tag = "workers", request_body = RegisterRequest,
    responses((status = 200, body = Registered))
)]
async fn register_worker(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    Message(request): Message<RegisterRequest>,
) -> Answer {
    json(StatusCode::OK, &app.register_worker(&tenant, request).await?)
}

/// Tells that a worker lives and what it works on; answers what is not wanted any more.
#[utoipa::path(
    post, path = "/v1/workers/heartbeat", tag = "workers", request_body = HeartbeatRequest,
    responses((status = 200, body = HeartbeatAnswer))
)]
async fn heartbeat_worker(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    Message(request): Message<HeartbeatRequest>,
) -> Answer {
    json(StatusCode::OK, &app.heartbeat_worker(&tenant, request).await?)
}

/// Several tasks at once.
#[derive(Serialize, ToSchema)]
struct Tasks<'a> {
    /// The tasks.
    tasks: &'a [TaskView],
}

/// One task, or several where `max_tasks` was given.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Polled<'a> {
    One(&'a TaskView),
    Many(Tasks<'a>),
}

/// Waits for work. 204 when there was none in time.
#[utoipa::path(
    post, path = "/v1/workers/poll", tag = "workers", request_body = PollRequest,
    responses((status = 200, body = Polled), (status = 204))
)]
async fn poll_worker(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    ledger: Option<Extension<Ledger>>,
    Message(request): Message<PollRequest>,
) -> Answer {
    let many = request.max_tasks.is_some();
    let handed = app.poll_worker(&tenant, request).await?;
    let polled = match handed.tasks() {
        [] => return Ok(StatusCode::NO_CONTENT.into_response()),
        [one] if !many => Polled::One(one),
        tasks => Polled::Many(Tasks { tasks }),
    };
    let text = serde_json::to_vec(&polled).map_err(Error::internal)?;
    let body = HandedBody::new(text, handed, ledger.map(|Extension(ledger)| ledger));
    Ok(raw(StatusCode::OK, "application/json", Body::new(body)))
}

/// A worker leaves.
#[derive(Deserialize, ToSchema)]
struct UnregisterRequest {
    /// The session.
    #[serde(default)]
    worker_session_id: String,
}

/// The answer to a worker that leaves.
#[derive(Serialize, ToSchema)]
struct Unregistered {
    /// Always true.
    accepted: bool,
}

/// Ends a session; what it holds goes back at once.
#[utoipa::path(
    post, path = "/v1/workers/unregister", tag = "workers", request_body = UnregisterRequest,
    responses((status = 200, body = Unregistered))
)]
async fn unregister_worker(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    Message(request): Message<UnregisterRequest>,
) -> Answer {
    app.unregister_worker(&tenant, &request.worker_session_id).await?;
    json(StatusCode::OK, &Unregistered { accepted: true })
}

/// The sessions.
#[derive(Serialize, ToSchema)]
struct Workers {
    /// The sessions.
    workers: Vec<WorkerView>,
}

/// Returns the sessions of workers with what they do and hold.
#[utoipa::path(get, path = "/v1/workers", tag = "workers", responses((status = 200, body = Workers)))]
async fn list_workers(State(app): State<App>, Tenant(tenant): Tenant, _: Query<()>) -> Answer {
    json(StatusCode::OK, &Workers { workers: app.list_workers(&tenant).await })
}
