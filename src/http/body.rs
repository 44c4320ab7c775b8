//! Bodies: their type, their coding and their size are judged before and while they come in, never after.

use std::time::Duration;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::{
    app::{Error, ErrorCode},
    model::json::PAYLOAD_BYTES_MAX,
};

/// The largest start or signal: a payload and what is around it.
pub(super) const START_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + 64 * 1024;
/// The largest message of a worker, envelope included.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// The largest component.
pub(super) const MODULE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest of any other body.
pub(super) const OTHER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The longest silence of a client that is sending a body.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// How much room is made for a body before its bytes are there, whatever its length is said to be.
const FIRST_ROOM_BYTES: usize = 1024 * 1024;

/// Which types of body a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// JSON.
    Json,
    /// A WASM component.
    Component,
    /// Whatever it says it is.
    Anything,
}

/// Returns the body of `request`, of a type that the route takes and of at most `bytes_max`. No body is an empty one, and
/// that has no type.
pub(super) async fn read(request: Request, takes: Takes, bytes_max: usize) -> Result<Bytes, Error> {
    let (head, mut body) = request.into_parts();
    check_coding(&head.headers)?;
    if axum::body::HttpBody::is_end_stream(&body) {
        return Ok(Bytes::new());
    }
    check_type(&head.headers, takes)?;
    collect(&mut body, bytes_max).await
}

/// Nothing is unpacked here, so nothing can grow behind the limit.
fn check_coding(headers: &HeaderMap) -> Result<(), Error> {
    let plain = |value: &axum::http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        Ok(())
    } else {
        Err(Error::new(ErrorCode::UnsupportedMediaType, "the body must not be compressed (no Content-Encoding)"))
    }
}

fn check_type(headers: &HeaderMap, takes: Takes) -> Result<(), Error> {
    let given = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or(""));
    let (essence, parameters) = given.unwrap_or("").split_once(';').unwrap_or((given.unwrap_or(""), ""));
    let is = |name: &str| essence.trim().eq_ignore_ascii_case(name);
    let (good, wanted) = match takes {
        Takes::Anything => (true, ""),
        Takes::Json => (is("application/json") && is_utf8(parameters), "application/json"),
        Takes::Component => {
            (given.is_none() || is("application/wasm") || is("application/octet-stream"), "application/wasm")
        }
    };
    if good {
        return Ok(());
    }
    let sent = match given {
        Some(_) => format!("`{}`", essence.trim().chars().take(80).flat_map(char::escape_default).collect::<String>()),
        None => "nothing".to_owned(),
    };
    let message = format!("the body must have the Content-Type {wanted}, not {sent}");
    Err(Error::new(ErrorCode::UnsupportedMediaType, message))
}

fn is_utf8(parameters: &str) -> bool {
    parameters.split(';').all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}

/// Takes the body in, piece by piece. A body of one piece is not copied.
async fn collect(body: &mut Body, bytes_max: usize) -> Result<Bytes, Error> {
    let said = usize::try_from(axum::body::HttpBody::size_hint(body).lower()).unwrap_or(usize::MAX);
    if said > bytes_max {
        return Err(too_large(bytes_max));
    }
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    if first.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    let Some(second) = next(body).await? else { return Ok(first) };
    let mut all = BytesMut::with_capacity(said.min(FIRST_ROOM_BYTES).max(first.len() + second.len()));
    all.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        if all.len() + bytes.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        all.extend_from_slice(&bytes);
        piece = next(body).await?;
    }
    Ok(all.freeze())
}

async fn next(body: &mut Body) -> Result<Option<Bytes>, Error> {
    loop {
        let frame = tokio::time::timeout(SILENCE_MAX, body.frame());
        match frame.await {
            Err(_) => {
                return Err(Error::invalid(format!("the body stopped for more than {} s", SILENCE_MAX.as_secs())));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Error::invalid("the body ended before its time")),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                // Trailers say nothing that is read here.
                Err(_) => continue,
            },
        }
    }
}

fn too_large(bytes_max: usize) -> Error {
    let details = serde_json::json!({ "limit_bytes": bytes_max });
    Error::new(ErrorCode::PayloadTooLarge, format!("the body is larger than {bytes_max} bytes")).with_details(&details)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    fn request(headers: &[(&str, &str)], body: Body) -> Request {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).unwrap()
    }

    async fn check(takes: Takes, headers: &[(&str, &str)], body: &'static str) -> Result<Bytes, ErrorCode> {
        read(request(headers, Body::from(body)), takes, 10).await.map_err(|error| error.code)
    }

    #[tokio::test]
    async fn types_are_told_apart() {
        let refused = Err(ErrorCode::UnsupportedMediaType);
        let kept = Ok(Bytes::from_static(b"{}"));
        for (takes, content_type, wanted) in [
            (Takes::Json, "application/json", &kept),
            (Takes::Json, "Application/JSON; charset=UTF-8", &kept),
            (Takes::Json, "application/json;charset=\"utf-8\"", &kept),
            (Takes::Json, "application/json; charset=latin1", &refused),
            (Takes::Json, "application/x-www-form-urlencoded", &refused),
            (Takes::Json, "text/plain", &refused),
            (Takes::Json, "", &refused),
            (Takes::Component, "application/wasm", &kept),
            (Takes::Component, "application/octet-stream", &kept),
            (Takes::Component, "application/json", &refused),
            (Takes::Anything, "text/yaml", &kept),
        ] {
            assert_eq!(
                &check(takes, &[("content-type", content_type)], "{}").await,
                wanted,
                "{takes:?} {content_type}"
            );
        }
        assert_eq!(check(Takes::Json, &[], "{}").await, refused);
        assert_eq!(check(Takes::Component, &[], "{}").await, kept);
        let empty = check(Takes::Json, &[("content-type", "application/x-www-form-urlencoded")], "").await;
        assert_eq!(empty, Ok(Bytes::new()), "an empty body has no type");
    }

    #[tokio::test]
    async fn packed_bodies_are_refused() {
        for coding in ["gzip", "br", "zstd", "identity, gzip", "x"] {
            let headers = [("content-type", "application/json"), ("content-encoding", coding)];
            assert_eq!(check(Takes::Json, &headers, "{}").await, Err(ErrorCode::UnsupportedMediaType), "C103 {coding}");
        }
        let headers = [("content-type", "application/json"), ("content-encoding", "identity")];
        assert!(check(Takes::Json, &headers, "{}").await.is_ok());
    }

    #[tokio::test]
    async fn the_limit_holds_while_pieces_come() {
        for (pieces, good) in
            [(vec!["12345", "67890"], true), (vec!["12345", "67890", "1"], false), (vec!["12345678901"], false)]
        {
            let wanted: Vec<u8> = pieces.concat().into_bytes();
            let pieces = stream::iter(pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece))));
            let answer = read(request(&[], Body::from_stream(pieces)), Takes::Anything, 10).await;
            match answer {
                Ok(bytes) => assert!(good && bytes == wanted),
                Err(error) => assert!(!good && error.code == ErrorCode::PayloadTooLarge),
            }
        }
        let endless = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1024])));
        let error = read(request(&[], Body::from_stream(endless)), Takes::Anything, 10_000).await.unwrap_err();
        assert_eq!(error.details.unwrap().as_str(), r#"{"limit_bytes":10000}"#);
    }

    #[tokio::test]
    async fn a_body_that_is_cut_is_refused() {
        let pieces = stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))]);
        let error = read(request(&[], Body::from_stream(pieces)), Takes::Anything, 10).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
    }
}
