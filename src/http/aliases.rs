//! Aliases of modules.

use axum::{extract::State, http::StatusCode, response::IntoResponse};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{Segments, Tenant},
    envelope::{Control, Strict},
    query::Query,
};
use crate::app::{AliasRequest, AliasView, App, RollbackRequest};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(list_aliases))
        .routes(routes!(find_alias, set_alias, delete_alias))
        .routes(routes!(rollback_module))
}

impl Control for AliasRequest {
    const KEYS: &'static [&'static str] = &["digest", "split"];
}

impl Control for RollbackRequest {
    const KEYS: &'static [&'static str] = &["alias", "repin"];
    const WHEN_EMPTY: Option<&'static str> = Some("{}");
}

/// The aliases of a module, by name.
#[derive(Serialize, ToSchema)]
struct Aliases {
    /// The aliases.
    aliases: Vec<AliasView>,
}

/// Returns the aliases of a module.
#[utoipa::path(
    get, path = "/v1/modules/{name}/aliases", tag = "modules", params(("name" = String, Path)),
    responses((status = 200, body = Aliases))
)]
async fn list_aliases(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &Aliases { aliases: app.list_aliases(&tenant, &name).await? })
}

/// Returns an alias with what it named before.
#[utoipa::path(
    get, path = "/v1/modules/{name}/aliases/{alias}", tag = "modules",
    params(("name" = String, Path), ("alias" = String, Path)), responses((status = 200, body = AliasView))
)]
async fn find_alias(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, alias)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &app.find_alias(&tenant, &name, &alias).await?)
}

/// Moves an alias to a digest, or divides executions among several; the alias is made where it is not there.
#[utoipa::path(
    put, path = "/v1/modules/{name}/aliases/{alias}", tag = "modules",
    params(("name" = String, Path), ("alias" = String, Path)),
    request_body = AliasRequest, responses((status = 200, body = AliasView))
)]
async fn set_alias(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, alias)): Segments<(String, String)>,
    _: Query<()>,
    Strict(request): Strict<AliasRequest>,
) -> Answer {
    json(StatusCode::OK, &app.set_alias(&tenant, &name, &alias, request).await?)
}

/// Removes an alias other than `live`.
#[utoipa::path(
    delete, path = "/v1/modules/{name}/aliases/{alias}", tag = "modules",
    params(("name" = String, Path), ("alias" = String, Path)), responses((status = 204))
)]
async fn delete_alias(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, alias)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    app.delete_alias(&tenant, &name, &alias).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Moves an alias to what it named before; again, further back.
#[utoipa::path(
    post, path = "/v1/modules/{name}/rollback", tag = "modules", params(("name" = String, Path)),
    request_body = Option<RollbackRequest>, responses((status = 200, body = AliasView))
)]
async fn rollback_module(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
    Strict(request): Strict<RollbackRequest>,
) -> Answer {
    json(StatusCode::OK, &app.rollback_module(&tenant, &name, request).await?)
}
