//! Settings of modules.

use axum::{extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{Segments, Tenant},
    envelope::Fields,
    query::Query,
};
use crate::app::{App, ModuleSettingsView};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(find_module_settings, set_module_settings))
}

/// Returns the newest settings of a module.
#[utoipa::path(
    get, path = "/v1/modules/{name}/settings", tag = "modules", params(("name" = String, Path)),
    responses((status = 200, body = ModuleSettingsView))
)]
async fn find_module_settings(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
) -> Answer {
    json(StatusCode::OK, &app.find_module_settings(&tenant, &name).await?)
}

/// Sets the settings of a module; what the body does not have is set to nothing.
#[utoipa::path(
    put, path = "/v1/modules/{name}/settings", tag = "modules", params(("name" = String, Path)),
    request_body(content = Object, description = "`environment`, `limits`, `egress`."),
    responses((status = 200, body = ModuleSettingsView))
)]
async fn set_module_settings(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    _: Query<()>,
    Fields(request): Fields,
) -> Answer {
    json(StatusCode::OK, &app.set_module_settings(&tenant, &name, &request).await?)
}
