//! Digests of modules: compared, and removed.

use axum::{extract::State, http::StatusCode, response::IntoResponse};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{Segments, Tenant},
    query::{FromQuery, Given, Query},
};
use crate::app::{App, Error, ModuleDiff};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(delete_module)).routes(routes!(diff_module))
}

/// Which digests are compared.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct DiffQuery {
    /// The digest, or the alias of it, that is compared with.
    from: String,
    /// The digest, or the alias of it, that is compared.
    to: String,
}

impl FromQuery for DiffQuery {
    const KEYS: &'static [&'static str] = &["from", "to"];

    fn read(given: &Given) -> Result<Self, Error> {
        let must =
            |key: &str| given.text(key)?.ok_or_else(|| Error::invalid(format!("the query key `{key}` must be there")));
        Ok(Self { from: must("from")?, to: must("to")? })
    }
}

/// Removes a digest that no alias and no live execution needs.
#[utoipa::path(
    delete, path = "/v1/modules/{name}/{digest}", tag = "modules",
    params(("name" = String, Path), ("digest" = String, Path)), responses((status = 204))
)]
async fn delete_module(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments((name, digest)): Segments<(String, String)>,
    _: Query<()>,
) -> Answer {
    app.delete_module(&tenant, &name, &digest).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Compares two digests of a module.
#[utoipa::path(
    get, path = "/v1/modules/{name}/diff", tag = "modules", params(("name" = String, Path), DiffQuery),
    responses((status = 200, body = ModuleDiff))
)]
async fn diff_module(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Segments(name): Segments<String>,
    Query(query): Query<DiffQuery>,
) -> Answer {
    json(StatusCode::OK, &app.diff_module(&tenant, &name, &query.from, &query.to).await?)
}
