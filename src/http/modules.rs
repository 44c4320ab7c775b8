//! Uploaded components.

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json, raw},
    body::{self, MODULE_BYTES_MAX, Takes},
    caller::{Segments, Tenant},
    query::{PageQuery, Query},
};
use crate::app::{App, ModuleView, PageRequest, Uploaded};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(list_modules))
        .routes(routes!(upload_module, find_module))
        .routes(routes!(find_module_digest))
        .routes(routes!(find_module_content))
}

/// Uploads a component. 201 when it is new, 200 when the same bytes are there, 202 when it takes longer than two seconds to
/// compile: its `state` is then `compiling`, and `GET` shows `ready` or `rejected` with the `reason`.
#[utoipa::path(
    post, path = "/v1/modules/{name}", tag = "modules", params(("name" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/wasm", description = "The component."),
    responses(
        (status = 201, body = ModuleView), (status = 200, body = ModuleView), (status = 202, body = ModuleView)
    )
)]
async fn upload_module(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
    request: Request,
) -> Answer {
    let room = app.upload_room(&tenant)?;
    let content = body::read(request, Takes::Component, MODULE_BYTES_MAX).await?;
    let (module, uploaded) = app.upload_module(room, &name, content).await?;
    let status = match uploaded {
        Uploaded::Created => StatusCode::CREATED,
        Uploaded::Present => StatusCode::OK,
        Uploaded::Compiling => StatusCode::ACCEPTED,
    };
    json(status, &module)
}

/// A page of modules, newest first.
#[derive(Serialize, ToSchema)]
struct Modules {
    /// One row for each digest.
    modules: Vec<ModuleView>,
    /// On the first page: what is compiling, and what was rejected lately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uploads: Vec<ModuleView>,
    /// Where the next page begins; null: this is the last.
    next_cursor: Option<String>,
}

/// Returns the uploaded modules.
#[utoipa::path(
    get, path = "/v1/modules", tag = "modules", params(PageQuery), responses((status = 200, body = Modules))
)]
async fn list_modules(State(app): State<App>, Tenant(tenant): Tenant, Query(page): Query<PageRequest>) -> Answer {
    let uploads = if page.cursor.is_none() { app.list_uploads(&tenant).await? } else { Vec::new() };
    let page = app.list_modules(&tenant, page).await?;
    json(StatusCode::OK, &Modules { modules: page.items, uploads, next_cursor: page.next_cursor })
}

/// Returns the live digest of a module, else the newest.
#[utoipa::path(
    get, path = "/v1/modules/{name}", tag = "modules", params(("name" = String, Path)),
    responses((status = 200, body = ModuleView))
)]
async fn find_module(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &app.find_module(&tenant, &name, None).await?)
}

/// Returns one digest of a module.
#[utoipa::path(
    get, path = "/v1/modules/{name}/{digest}", tag = "modules",
    params(("name" = String, Path), ("digest" = String, Path)), responses((status = 200, body = ModuleView))
)]
async fn find_module_digest(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, digest)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &app.find_module(&tenant, &name, Some(&digest)).await?)
}

/// Returns the bytes of one digest of a module.
#[utoipa::path(
    get, path = "/v1/modules/{name}/{digest}/content", tag = "modules",
    params(("name" = String, Path), ("digest" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/wasm"))
)]
async fn find_module_content(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, digest)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    Ok(raw(StatusCode::OK, "application/wasm", app.module_content(&tenant, &name, &digest).await?))
}
