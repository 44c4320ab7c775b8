//! The OpenAPI document, made from the table of routes that the router is made from.

use axum::{extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use utoipa::{
    OpenApi,
    openapi::{
        Content, Header, ObjectBuilder, Ref, RefOr, ResponseBuilder, Type,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge, aliases,
    answer::{ErrorBody, raw},
    executions, health, history, interactions, logs, module_life, module_settings, modules,
    query::Query,
    repin, tasks, tenants, units, workers, workflows,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sandkeep",
        description = "Durable workflows whose tasks are uploaded WASM components or native workers.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "server", description = "The server itself."),
        (name = "workflows", description = "Registered documents."),
        (name = "executions", description = "What runs and ran."),
        (name = "modules", description = "Uploaded components."),
        (name = "tenants", description = "Who owns what, and what each may use."),
        (name = "workers", description = "The protocol of native workers. Unknown fields are skipped in both directions.")
    )
)]
struct Base;

/// Returns every route with what the document says of it.
pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::with_openapi(Base::openapi())
        .merge(health::routes())
        .merge(workflows::routes())
        .merge(executions::routes())
        .merge(units::routes())
        .merge(interactions::routes())
        .merge(history::routes())
        .merge(logs::routes())
        .merge(modules::routes())
        .merge(aliases::routes())
        .merge(module_life::routes())
        .merge(module_settings::routes())
        .merge(repin::routes())
        .merge(tenants::routes())
        .merge(workers::routes())
        .merge(tasks::routes())
        .routes(routes!(find_document))
}

/// Returns the OpenAPI document of this version.
pub fn document() -> utoipa::openapi::OpenApi {
    finish(routes().into_openapi())
}

/// Returns the document as it is served.
pub(super) fn text(document: utoipa::openapi::OpenApi) -> Bytes {
    finish(document).to_json().expect("a document is JSON").into()
}

/// Returns this document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", responses((status = 200, body = serde_json::Value)))]
async fn find_document(State(edge): State<Edge>, _: Query<()>) -> Response {
    raw(StatusCode::OK, "application/json", edge.document)
}

/// Adds what holds for every route: its errors, the headers of its answers, the tenant.
fn finish(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    for item in document.paths.paths.values_mut() {
        operations(item).for_each(finish_operation);
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

fn finish_operation(operation: &mut Operation) {
    let errors = Content::new(Some(Ref::from_schema_name("ErrorBody")));
    let errors =
        ResponseBuilder::new().description("The request is refused, or failed.").content("application/json", errors);
    operation.responses.responses.insert("default".to_owned(), errors.build().into());
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            if response.description.is_empty() {
                response.description = described(status).to_owned();
            }
            for name in ["x-sandkeep-api-version", "x-request-id"] {
                response.headers.insert(name.to_owned(), Header::default().into());
            }
        }
    }
    if operation.tags.as_ref().is_none_or(|tags| tags.iter().all(|tag| tag != "server" && tag != "tenants")) {
        operation.parameters.get_or_insert_default().push(tenant().into());
    }
}

fn described(status: &str) -> &'static str {
    match status {
        "201" => "Done; it is new.",
        "204" => "Done; there is nothing to show.",
        _ => "Done.",
    }
}

fn tenant() -> Parameter {
    ParameterBuilder::new()
        .name("x-sandkeep-tenant")
        .parameter_in(ParameterIn::Header)
        .description(Some("The owner of what is asked for; `default` where absent."))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every route of this version. A route that is missing here or there is noticed.
    const ROUTES: &[(&str, &[&str])] = &[
        ("/livez", &["get"]),
        ("/readyz", &["get"]),
        ("/v1/executions", &["get", "post"]),
        ("/v1/executions/{id}", &["get"]),
        ("/v1/executions/{id}/cancel", &["post"]),
        ("/v1/executions/{id}/history", &["get"]),
        ("/v1/executions/{id}/logs", &["get"]),
        ("/v1/executions/{id}/queries/{name}", &["get"]),
        ("/v1/executions/{id}/repin", &["post"]),
        ("/v1/executions/{id}/result", &["get"]),
        ("/v1/executions/{id}/signals/{name}", &["post"]),
        ("/v1/executions/{id}/units", &["get"]),
        ("/v1/executions/{id}/units/{unit}", &["get"]),
        ("/v1/executions/{id}/units/{unit}/attempts/{attempt}/bundle", &["get"]),
        ("/v1/executions/{id}/wait", &["get"]),
        ("/v1/health", &["get"]),
        ("/v1/metrics", &["get"]),
        ("/v1/modules", &["get"]),
        ("/v1/modules/{name}", &["get", "post"]),
        ("/v1/modules/{name}/aliases", &["get"]),
        ("/v1/modules/{name}/aliases/{alias}", &["delete", "get", "put"]),
        ("/v1/modules/{name}/diff", &["get"]),
        ("/v1/modules/{name}/rollback", &["post"]),
        ("/v1/modules/{name}/settings", &["get", "put"]),
        ("/v1/modules/{name}/{digest}", &["delete", "get"]),
        ("/v1/modules/{name}/{digest}/content", &["get"]),
        ("/v1/openapi.json", &["get"]),
        ("/v1/tasks/complete", &["post"]),
        ("/v1/tasks/fail", &["post"]),
        ("/v1/tenants", &["get", "post"]),
        ("/v1/tenants/{tenant}", &["get"]),
        ("/v1/tenants/{tenant}/policy", &["get", "put"]),
        ("/v1/workers", &["get"]),
        ("/v1/workers/heartbeat", &["post"]),
        ("/v1/workers/poll", &["post"]),
        ("/v1/workers/register", &["post"]),
        ("/v1/workers/unregister", &["post"]),
        ("/v1/workflows", &["get", "post"]),
        ("/v1/workflows/{name}", &["get"]),
        ("/v1/workflows/{name}/default", &["put"]),
        ("/v1/workflows/{name}/{version}", &["delete", "get"]),
    ];

    #[test]
    fn the_document_names_every_route() {
        let document = serde_json::to_value(document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let found: Vec<_> = paths.iter().map(|(path, item)| (path.as_str(), methods(item))).collect();
        let wanted: Vec<_> = ROUTES.iter().map(|(path, methods)| (*path, methods.to_vec())).collect();
        assert_eq!(found, wanted);
        assert_eq!(document["openapi"], "3.1.0");
    }

    #[test]
    fn the_guide_shows_every_route() {
        let guide = include_str!("../../docs/http-api.md");
        for (path, _) in ROUTES {
            assert!(guide.contains(&format!("{path}`")), "{path}");
        }
    }

    fn methods(item: &serde_json::Value) -> Vec<&str> {
        let mut methods: Vec<_> = item.as_object().unwrap().keys().map(String::as_str).collect();
        methods.sort_unstable();
        methods
    }

    #[test]
    fn the_document_is_whole() {
        let document = serde_json::to_value(document()).unwrap();
        let mut ids = std::collections::HashSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                assert!(operation["summary"].is_string(), "{path}");
                let responses = operation["responses"].as_object().unwrap();
                assert!(responses.contains_key("default") && responses.len() > 1, "{path}");
                assert!(responses.values().all(|response| response["description"].is_string()), "{path}");
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}");
            }
        }
        check_references(&document, &document);
    }

    fn check_references(document: &serde_json::Value, part: &serde_json::Value) {
        if let Some(reference) = part.get("$ref").and_then(|reference| reference.as_str()) {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} is not there");
        }
        match part {
            serde_json::Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
            serde_json::Value::Object(members) => {
                members.values().for_each(|member| check_references(document, member))
            }
            _ => {}
        }
    }
}
