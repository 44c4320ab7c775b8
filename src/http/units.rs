//! The units of an execution.

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{Segments, Subject, Tenant},
    query::{PageQuery, Query},
};
use crate::app::{App, PageRequest, UnitView, Units};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(list_units)).routes(routes!(find_unit))
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
