//! Tenants and their policies.

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, created, json},
    caller::Segments,
    envelope::{Fields, Strict},
    query::{PageQuery, Query},
};
use crate::app::{App, CreateTenantRequest, PageRequest, PolicyView, TenantView};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(create_tenant, list_tenants))
        .routes(routes!(find_tenant))
        .routes(routes!(find_policy, set_policy))
}

/// Makes a tenant. 201 when it is new, 200 when the same is there.
#[utoipa::path(
    post, path = "/v1/tenants", tag = "tenants", request_body = CreateTenantRequest,
    responses((status = 201, body = TenantView), (status = 200, body = TenantView))
)]
async fn create_tenant(State(app): State<App>, _: Query<()>, Strict(request): Strict<CreateTenantRequest>) -> Answer {
    let (tenant, new) = app.create_tenant(request).await?;
    json(created(new), &tenant)
}

/// A page of tenants, newest first.
#[derive(Serialize, ToSchema)]
struct Tenants {
    /// The tenants.
    tenants: Vec<TenantView>,
    /// Where the next page begins; null: this is the last.
    next_cursor: Option<String>,
}

/// Returns the tenants.
#[utoipa::path(
    get, path = "/v1/tenants", tag = "tenants", params(PageQuery), responses((status = 200, body = Tenants))
)]
async fn list_tenants(State(app): State<App>, Query(page): Query<PageRequest>) -> Answer {
    let page = app.list_tenants(page).await?;
    json(StatusCode::OK, &Tenants { tenants: page.items, next_cursor: page.next_cursor })
}

/// Returns a tenant.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 200, body = TenantView))
)]
async fn find_tenant(State(app): State<App>, Segments(tenant): Segments<String>, _: Query<()>) -> Answer {
    json(StatusCode::OK, &app.find_tenant(&tenant)?)
}

/// Returns the policy of a tenant, and what holds of it.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/policy", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 200, body = PolicyView))
)]
async fn find_policy(State(app): State<App>, Segments(tenant): Segments<String>, _: Query<()>) -> Answer {
    json(StatusCode::OK, &app.find_policy(&tenant)?)
}

/// Sets the halves of a policy that the body has; the other stays.
#[utoipa::path(
    put, path = "/v1/tenants/{tenant}/policy", tag = "tenants", params(("tenant" = String, Path)),
    request_body(content = Object, description = "`granted`, `own`, or both."), responses((status = 200, body = PolicyView))
)]
async fn set_policy(
    State(app): State<App>,
    Segments(tenant): Segments<String>,
    _: Query<()>,
    Fields(request): Fields,
) -> Answer {
    json(StatusCode::OK, &app.set_policy(&tenant, &request).await?)
}
