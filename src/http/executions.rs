//! Executions: start, list, state, result.

use std::collections::BTreeMap;

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, created, json, payload},
    caller::{IdempotencyKey, Subject, Tenant},
    envelope::Strict,
    query::{FromQuery, Given, PageQuery, Query},
};
use crate::app::{
    App, Error, ExecutionFilter, ExecutionStarted, ExecutionSummary, ExecutionView, PageRequest, StartRequest,
};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new()
        .routes(routes!(start_execution, list_executions))
        .routes(routes!(find_execution))
        .routes(routes!(find_result))
}

/// Starts an execution. 201 when it is new, 200 when the same one is there.
#[utoipa::path(
    post, path = "/v1/executions", tag = "executions",
    params(("idempotency-key" = Option<String>, Header, description = "Recognises a repeated start for 24 hours.")),
    request_body = StartRequest,
    responses((status = 201, body = ExecutionStarted), (status = 200, body = ExecutionStarted))
)]
async fn start_execution(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    IdempotencyKey(key): IdempotencyKey,
    _: Query<()>,
    Strict(request): Strict<StartRequest>,
) -> Answer {
    let started = app.start_execution(&tenant, request, key.as_deref()).await?;
    json(created(started.created), &started)
}

/// Which executions are listed, and which page of them.
struct ListQuery {
    filter: ExecutionFilter,
    page: PageRequest,
}

/// Which executions are listed.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the keys in the OpenAPI document; the request itself is an ExecutionFilter")]
struct FilterQuery {
    /// Statuses in any case, joined by commas or given more than once.
    status: Option<Vec<String>>,
    /// Only this workflow.
    workflow: Option<String>,
    /// Only this version.
    version: Option<String>,
    /// Only those created after: milliseconds since 1970, or a time such as `2031-05-01T12:00:00Z`.
    created_after: Option<String>,
    /// Only those created before.
    created_before: Option<String>,
    /// `label.KEY=VALUE`, any number of times: only those that have all of these labels.
    #[param(rename = "label.*")]
    label: Option<String>,
}

impl FromQuery for ListQuery {
    const KEYS: &'static [&'static str] =
        &["status", "workflow", "version", "created_after", "created_before", "limit", "cursor", "label.KEY"];
    const PREFIX: Option<&'static str> = Some(LABEL);

    fn read(given: &Given) -> Result<Self, Error> {
        let statuses = given.all("status").flat_map(|value| value.split(',')).map(str::trim);
        let filter = ExecutionFilter {
            statuses: statuses.filter(|status| !status.is_empty()).map(str::to_owned).collect(),
            workflow: given.text("workflow")?,
            version: given.text("version")?,
            labels: labels(given)?,
            created_after: given.instant("created_after")?,
            created_before: given.instant("created_before")?,
        };
        Ok(Self { filter, page: PageRequest::read(given)? })
    }
}

const LABEL: &str = "label.";

fn labels(given: &Given) -> Result<BTreeMap<String, String>, Error> {
    let mut labels = BTreeMap::new();
    for (key, value) in given.family(LABEL) {
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Error::invalid("one label is asked for more than once"));
        }
    }
    Ok(labels)
}

/// A page of executions, newest first.
#[derive(Serialize, ToSchema)]
struct Executions {
    /// The executions.
    executions: Vec<ExecutionSummary>,
    /// Where the next page begins; null: this is the last.
    next_cursor: Option<String>,
}

/// Returns the executions that pass a filter.
#[utoipa::path(
    get, path = "/v1/executions", tag = "executions", params(FilterQuery, PageQuery),
    responses((status = 200, body = Executions))
)]
async fn list_executions(State(app): State<App>, Tenant(tenant): Tenant, Query(query): Query<ListQuery>) -> Answer {
    let page = app.list_executions(&tenant, query.filter, query.page).await?;
    json(StatusCode::OK, &Executions { executions: page.items, next_cursor: page.next_cursor })
}

/// Returns the state of an execution.
#[utoipa::path(
    get, path = "/v1/executions/{id}", tag = "executions", params(("id" = String, Path)),
    responses((status = 200, body = ExecutionView))
)]
async fn find_execution(Subject { app, tenant, id }: Subject, _: Query<()>) -> Answer {
    json(StatusCode::OK, &app.find_execution(&tenant, &id).await?)
}

/// Returns the output of a completed execution, alone and whole.
#[utoipa::path(
    get, path = "/v1/executions/{id}/result", tag = "executions", params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value))
)]
async fn find_result(Subject { app, tenant, id }: Subject, _: Query<()>) -> Answer {
    Ok(payload(&app.find_result(&tenant, &id).await?))
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::FromRequestParts, http::Request};

    use super::*;

    async fn read(query: &str) -> Result<ListQuery, String> {
        let request = Request::builder().uri(format!("/v1/executions?{query}")).body(Body::empty()).unwrap();
        let answer = Query::<ListQuery>::from_request_parts(&mut request.into_parts().0, &()).await;
        answer.map(|Query(query)| query).map_err(|refused| refused.0.message)
    }

    #[tokio::test]
    async fn filters_are_read() {
        let query = "status=running,Failed&status=COMPLETED&label.env=prod&label.a.b=c%3Dd&workflow=order&created_after=5&limit=7";
        let ListQuery { filter, page } = read(query).await.unwrap();
        assert_eq!(filter.statuses, ["running", "Failed", "COMPLETED"]);
        assert_eq!(
            filter.labels,
            [("a.b", "c=d"), ("env", "prod")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        );
        assert_eq!((filter.workflow.as_deref(), filter.created_after, page.limit), (Some("order"), Some(5), Some(7)));
    }

    #[tokio::test]
    async fn wrong_filters_are_refused() {
        for (query, message) in [
            ("state=running", "unknown query key `state`; did you mean `status`?"),
            ("label.=x", "unknown query key `label.`; did you mean `label.KEY`?"),
            ("label.a=x&label.a=y", "one label is asked for more than once"),
            ("workflow=a&workflow=b", "the query key `workflow` is there more than once"),
        ] {
            assert_eq!(read(query).await.map(|_| ()), Err(message.to_owned()), "{query}");
        }
    }
}
