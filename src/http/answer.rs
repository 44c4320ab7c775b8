//! Answers: JSON from views, and the one place where an error becomes a status, headers and a body.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use crate::{
    app::{Error, ErrorCode},
    model::Payload,
};

/// What a handler gives.
pub(super) type Answer = Result<Response, Refused>;

/// An error on its way out.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Error);

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// The body of every error.
#[derive(Serialize, ToSchema)]
pub(super) struct ErrorBody<'a> {
    /// The error.
    error: ErrorView<'a>,
}

/// An error.
#[derive(Serialize, ToSchema)]
struct ErrorView<'a> {
    /// For programs: one of a closed list.
    #[schema(schema_with = code_schema)]
    code: &'static str,
    /// For people.
    message: &'a str,
    /// Anything more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Payload>,
}

fn code_schema() -> RefOr<Schema> {
    let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).into()
}

/// What the log must hold of an error that the server is to blame for. Travels beside the answer to where the request id
/// is known.
#[derive(Clone)]
pub(super) struct Fault(pub(super) Arc<Error>);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status = StatusCode::from_u16(error.code.http_status()).expect("the table of codes holds HTTP statuses");
        let body = ErrorBody {
            error: ErrorView { code: error.code.as_str(), message: &error.message, details: error.details.as_ref() },
        };
        let text = serde_json::to_vec(&body).expect("an error is JSON");
        let mut response = raw(status, "application/json", text);
        if let Some(millis) = error.retry_after_ms {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
        }
        if status.is_server_error() {
            response.extensions_mut().insert(Fault(Arc::new(error)));
        }
        response
    }
}

/// Returns the answer to a request that is refused.
pub(super) fn refuse(code: ErrorCode, message: &str) -> Response {
    Refused(Error::new(code, message)).into_response()
}

/// Returns `view` as JSON.
pub(super) fn json(status: StatusCode, view: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(view).map_err(Error::internal)?;
    Ok(raw(status, "application/json", text))
}

/// Returns a payload as it is.
pub(super) fn payload(payload: &Payload) -> Response {
    raw(StatusCode::OK, "application/json", payload.as_str().to_owned())
}

/// Returns a body as it is.
pub(super) fn raw(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body.into()).into_response()
}

/// Returns 201 for what is new and 200 for what was there.
pub(super) fn created(new: bool) -> StatusCode {
    if new { StatusCode::CREATED } else { StatusCode::OK }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn shown(error: Error) -> (u16, Option<String>, String) {
        let response = Refused(error).into_response();
        let retry_after = response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, retry_after, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn errors_read_as_documented() {
        let details = serde_json::json!({"limit_bytes": 5});
        let refused = Error::new(ErrorCode::PayloadTooLarge, "too \"large\"").with_details(&details);
        let text = r#"{"error":{"code":"PAYLOAD_TOO_LARGE","message":"too \"large\"","details":{"limit_bytes":5}}}"#;
        assert_eq!(shown(refused).await, (413, None, text.to_owned()));
    }

    #[tokio::test]
    async fn a_cause_stays_inside() {
        let (status, _, text) = shown(Error::internal("disk 7 smells of smoke")).await;
        assert_eq!((status, text.contains("smoke")), (500, false));
        let response = Refused(Error::internal("disk 7 smells of smoke")).into_response();
        let fault = response.extensions().get::<Fault>().unwrap();
        assert_eq!(fault.0.cause.as_ref().unwrap().to_string(), "disk 7 smells of smoke");
    }

    #[tokio::test]
    async fn a_delay_is_told_in_whole_seconds() {
        for (millis, seconds) in [(1, "1"), (1_000, "1"), (1_001, "2"), (5_000, "5")] {
            let error = Error::new(ErrorCode::ResourceExhausted, "full").retry_after(millis);
            assert_eq!(shown(error).await.1.as_deref(), Some(seconds));
        }
    }

    #[test]
    fn every_code_has_an_error_status() {
        for code in ErrorCode::ALL {
            let status = StatusCode::from_u16(code.http_status()).unwrap();
            assert!(status.is_client_error() || status.is_server_error(), "{}", code.as_str());
        }
    }
    #[test]
    fn the_guide_lists_every_code() {
        let guide = include_str!("../../docs/http-api.md");
        for code in ErrorCode::ALL {
            let row = format!("| `{}` | {} |", code.as_str(), code.http_status());
            assert!(guide.contains(&row), "{row}");
        }
    }
}
