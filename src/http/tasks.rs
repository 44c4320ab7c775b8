//! Results of tasks, told by the token of their delivery.

use axum::{extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::Tenant,
    envelope::Message,
    query::Query,
};
use crate::app::{App, CompleteRequest, FailRequest, ReportAnswer};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(complete_task)).routes(routes!(fail_task))
}

/// Tells that a task succeeded.
#[utoipa::path(
    post, path = "/v1/tasks/complete", tag = "workers", request_body = CompleteRequest,
    responses((status = 200, body = ReportAnswer))
)]
async fn complete_task(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    Message(request): Message<CompleteRequest>,
) -> Answer {
    json(StatusCode::OK, &app.complete_task(&tenant, request).await?)
}

/// Tells that a task failed.
#[utoipa::path(
    post, path = "/v1/tasks/fail", tag = "workers", request_body = FailRequest,
    responses((status = 200, body = ReportAnswer))
)]
async fn fail_task(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    _: Query<()>,
    Message(request): Message<FailRequest>,
) -> Answer {
    json(StatusCode::OK, &app.fail_task(&tenant, request).await?)
}
