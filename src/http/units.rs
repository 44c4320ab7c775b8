//! The units of an execution.

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json, raw},
    caller::{Segments, Subject, Tenant},
    query::{PageQuery, Query},
};
use crate::app::{App, Bundle, PageRequest, UnitView, Units};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(list_units)).routes(routes!(find_unit)).routes(routes!(find_bundle))
}

/// A page of units, in document order.
#[derive(Serialize, ToSchema)]
struct UnitPage {
    /// The units by key.
    units: Units,
    /// Where the next page begins; null: this is the last.
    next_cursor: Option<String>,
}

/// Returns the units of an execution.
#[utoipa::path(
    get, path = "/v1/executions/{id}/units", tag = "executions", params(("id" = String, Path), PageQuery),
    responses((status = 200, body = UnitPage))
)]
async fn list_units(Subject { app, tenant, id }: Subject, Query(page): Query<PageRequest>) -> Answer {
    let page = app.list_units(&tenant, &id, page).await?;
    json(StatusCode::OK, &UnitPage { units: Units(page.items), next_cursor: page.next_cursor })
}

/// Returns one unit with its payloads.
#[utoipa::path(
    get, path = "/v1/executions/{id}/units/{unit}", tag = "executions",
    params(("id" = String, Path), ("unit" = String, Path)), responses((status = 200, body = UnitView))
)]
async fn find_unit(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((id, unit)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &app.find_unit(&tenant, &id, &unit).await?)
}

/// Returns a recorded attempt of a unit: its input, its settings, and what the host answered it.
#[utoipa::path(
    get, path = "/v1/executions/{id}/units/{unit}/attempts/{attempt}/bundle", tag = "executions",
    params(("id" = String, Path), ("unit" = String, Path), ("attempt" = u32, Path)),
    responses((status = 200, body = Bundle))
)]
async fn find_bundle(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((id, unit, attempt)): Segments<(String, String, String)>,
    _: Query<()>,
) -> Answer {
    Ok(raw(StatusCode::OK, "application/json", app.find_bundle(&tenant, &id, &unit, &attempt).await?))
}
