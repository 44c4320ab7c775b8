//! Registered documents.

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::IntoResponse,
};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use super::{
    Edge,
    answer::{Answer, created, json, payload},
    body::{self, DOCUMENT_BYTES_MAX, Takes},
    caller::{Segments, Tenant},
    envelope::{DefaultRequest, Strict},
    query::{FromQuery, Given, PageQuery, Query},
};
use crate::app::{App, Error, PageRequest, WorkflowRegistered, WorkflowView};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    // The address that moves the default is also that of a version named `default`.
    let set_default = routes!(set_default_workflow)
        .map(|methods| methods.get(find_version_named_default).delete(delete_version_named_default));
    OpenApiRouter::new()
        .routes(routes!(register_workflow, list_workflows))
        .routes(routes!(find_workflow))
        .routes(routes!(find_workflow_version, delete_workflow))
        .routes(set_default)
}

/// Whether registering also makes the version the default one.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct RegisterQuery {
    /// Whether a start without a version uses this one from now on; `true` where absent.
    default: Option<bool>,
}

impl FromQuery for RegisterQuery {
    const KEYS: &'static [&'static str] = &["default"];

    fn read(given: &Given) -> Result<Self, Error> {
        Ok(Self { default: given.flag("default")? })
    }
}

/// A page of workflows, newest first.
#[derive(Serialize, ToSchema)]
struct Workflows {
    /// One row for each version.
    workflows: Vec<WorkflowView>,
    /// Where the next page begins; null: this is the last.
    next_cursor: Option<String>,
}

/// The version that a start without a version uses.
#[derive(Serialize, ToSchema)]
struct DefaultVersion {
    /// The workflow.
    name: String,
    /// The version.
    version: String,
}

/// Registers a document; any content type is taken. 201 when it is new, 200 when the same is there.
#[utoipa::path(
    post, path = "/v1/workflows", tag = "workflows", params(RegisterQuery),
    request_body(content = serde_json::Value, description = "The document."),
    responses((status = 201, body = WorkflowRegistered), (status = 200, body = WorkflowRegistered))
)]
async fn register_workflow(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Query(query): Query<RegisterQuery>,
    request: Request,
) -> Answer {
    let document = body::read(request, Takes::Anything, DOCUMENT_BYTES_MAX).await?;
    let registered = app.register_workflow(&tenant, &document, query.default.unwrap_or(true)).await?;
    json(created(registered.created), &registered)
}

/// Returns the registered workflows.
#[utoipa::path(
    get, path = "/v1/workflows", tag = "workflows", params(PageQuery), responses((status = 200, body = Workflows))
)]
async fn list_workflows(State(app): State<App>, Tenant(tenant): Tenant, Query(page): Query<PageRequest>) -> Answer {
    let page = app.list_workflows(&tenant, page).await?;
    json(StatusCode::OK, &Workflows { workflows: page.items, next_cursor: page.next_cursor })
}

/// Returns the document of the default version.
#[utoipa::path(
    get, path = "/v1/workflows/{name}", tag = "workflows", params(("name" = String, Path)),
    responses((status = 200, body = serde_json::Value))
)]
async fn find_workflow(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
) -> Answer {
    Ok(payload(&app.find_workflow(&tenant, &name, None).await?))
}

/// Returns the document of one version.
#[utoipa::path(
    get, path = "/v1/workflows/{name}/{version}", tag = "workflows",
    params(("name" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = serde_json::Value))
)]
async fn find_workflow_version(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, version)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    Ok(payload(&app.find_workflow(&tenant, &name, Some(&version)).await?))
}

async fn find_version_named_default(
    app: State<App>,
    tenant: Tenant,
    Segments(name): Segments<String>,
    query: Query<()>,
) -> Answer {
    find_workflow_version(app, tenant, Segments((name, "default".to_owned())), query).await
}

/// Sets the version that a start without a version uses.
#[utoipa::path(
    put, path = "/v1/workflows/{name}/default", tag = "workflows", params(("name" = String, Path)),
    request_body = DefaultRequest, responses((status = 200, body = DefaultVersion))
)]
async fn set_default_workflow(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
    Strict(request): Strict<DefaultRequest>,
) -> Answer {
    app.set_default_workflow(&tenant, &name, &request.version).await?;
    json(StatusCode::OK, &DefaultVersion { name, version: request.version })
}

/// Deletes a version that no running execution uses.
#[utoipa::path(
    delete, path = "/v1/workflows/{name}/{version}", tag = "workflows",
    params(("name" = String, Path), ("version" = String, Path)), responses((status = 204))
)]
async fn delete_workflow(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, version)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    app.delete_workflow(&tenant, &name, &version).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn delete_version_named_default(
    app: State<App>,
    tenant: Tenant,
    Segments(name): Segments<String>,
    query: Query<()>,
) -> Answer {
    delete_workflow(app, tenant, Segments((name, "default".to_owned())), query).await
}
