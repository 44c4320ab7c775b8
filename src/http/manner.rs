//! What every answer carries, whatever became of the request; and the one log line of what went wrong inside.

use std::panic::AssertUnwindSafe;

use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use uuid::Uuid;

use super::{
    API_VERSION,
    answer::{Fault, Refused},
    browser::Guard,
    unread,
};
use crate::app::Error;

const VERSION: HeaderName = HeaderName::from_static("x-sandkeep-api-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Serves a request in the manner of this API.
pub(super) async fn apply(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let id = Uuid::now_v7();
    let method = request.method().clone();
    let uri = request.uri().clone();
    let (request, unread) = unread::share(request);
    let mut response = match guard.check(&request) {
        Ok(()) => run(request, next).await,
        Err(error) => Refused(error).into_response(),
    };
    if response.status().is_client_error() || response.status().is_server_error() {
        unread.discard().await;
    }
    let status = response.status().as_u16();
    if let Some(Fault(error)) = response.extensions_mut().remove::<Fault>() {
        let cause = error.cause.as_deref().map(causes).unwrap_or_default();
        tracing::error!(request_id = %id, %method, path = uri.path(), status, cause, "{}", error.message);
    } else {
        tracing::debug!(request_id = %id, %method, path = uri.path(), status, "answered");
    }
    let headers = response.headers_mut();
    headers.insert(VERSION, HeaderValue::from_static(API_VERSION));
    headers.insert(REQUEST_ID, HeaderValue::from_str(&id.to_string()).expect("an id is plain text"));
    response
}

/// A handler that panics costs its own request, not the connection with others on it.
async fn run(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            Refused(Error::internal("a handler panicked; the panic was printed where it happened")).into_response()
        }
    }
}

/// Returns a cause with its own causes.
fn causes(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        text.push_str(": ");
        text.push_str(&error.to_string());
        inner = error.source();
    }
    text
}
