//! Moves the pins of one execution.

use axum::http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::Subject,
    envelope::{Control, Strict},
    query::Query,
};
use crate::app::{ExecutionView, RepinRequest};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(repin_execution))
}

impl Control for RepinRequest {
    const KEYS: &'static [&'static str] = &["module", "digest", "alias"];
}

/// Makes an execution use another digest of a module for what is scheduled or tried again from now on.
#[utoipa::path(
    post, path = "/v1/executions/{id}/repin", tag = "executions", params(("id" = String, Path)),
    request_body = RepinRequest, responses((status = 200, body = ExecutionView))
)]
async fn repin_execution(
    Subject { app, tenant, id }: Subject,
    _: Query<()>,
    Strict(request): Strict<RepinRequest>,
) -> Answer {
    json(StatusCode::OK, &app.repin_execution(&tenant, &id, request).await?)
}
