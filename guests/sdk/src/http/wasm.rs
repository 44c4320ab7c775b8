//! Sends a request through the host's `wasi:http`.

use super::bindings::wasi::http::outgoing_handler;
use super::bindings::wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme, http_error_code,
};
use super::bindings::wasi::io::streams::StreamError;
use super::url::Target;
use super::{Error, Request, Response};

/// How much may be written at a time, in bytes; the interface says so.
const WRITE_BYTES_MAX: usize = 4096;
/// How much is read at a time, in bytes.
const READ_BYTES_MAX: u64 = 64 * 1024;
/// A denial begins with this.
const DENIED: &str = "EGRESS_DENIED: ";

pub fn exchange(request: Request, target: Target) -> Result<Response, Error> {
    let body = request.body.clone();
    let options = options(&request);
    let outgoing = outgoing(request, target)?;
    let stream = if body.is_empty() { None } else { Some(outgoing.body().map_err(|()| invalid("body"))?) };
    // Handed over before the body is written: only then does anybody take it.
    let future = outgoing_handler::handle(outgoing, Some(options)).map_err(error_of)?;
    let written = stream.map_or(Ok(()), |stream| write(stream, &body));
    // A server may answer before it has the whole body; its answer says more than that it stopped reading.
    match (response(&future), written) {
        (Ok(response), _) => read(response),
        (Err(error), Ok(())) | (Err(_), Err(error)) => Err(error),
    }
}

fn outgoing(request: Request, target: Target) -> Result<OutgoingRequest, Error> {
    let mut headers: Vec<(String, Vec<u8>)> =
        request.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let has_length = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    if !request.body.is_empty() && !has_length {
        headers.push(("content-length".to_owned(), request.body.len().to_string().into_bytes()));
    }
    let headers = Fields::from_list(&headers)
        .map_err(|error| Error::Invalid(format!("a header is not for the module to set: {error:?}")))?;
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if target.is_tls { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method(request.method)).map_err(|()| invalid("method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| invalid("scheme"))?;
    outgoing.set_authority(Some(&target.authority)).map_err(|()| invalid("host"))?;
    outgoing.set_path_with_query(Some(&target.path_with_query)).map_err(|()| invalid("path"))?;
    Ok(outgoing)
}

fn options(request: &Request) -> RequestOptions {
    let options = RequestOptions::new();
    if let Some(timeout) = request.timeout {
        let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // A host that does not take them keeps its own limits.
        let _ = options.set_connect_timeout(Some(nanoseconds));
        let _ = options.set_first_byte_timeout(Some(nanoseconds));
        let _ = options.set_between_bytes_timeout(Some(nanoseconds));
    }
    options
}

fn method(name: String) -> Method {
    match name.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        _ => Method::Other(name),
    }
}

fn invalid(part: &str) -> Error {
    Error::Invalid(format!("the {part} of the request is not valid"))
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), Error> {
    let stream = body.write().map_err(|()| invalid("body"))?;
    for part in bytes.chunks(WRITE_BYTES_MAX) {
        stream.blocking_write_and_flush(part).map_err(error_of_stream)?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(error_of)
}

fn response(future: &FutureIncomingResponse) -> Result<IncomingResponse, Error> {
    loop {
        match future.get() {
            Some(Ok(response)) => return response.map_err(error_of),
            // It is taken once.
            Some(Err(())) => return Err(Error::Response("the response was taken already".to_owned())),
            None => future.subscribe().block(),
        }
    }
}

fn read(response: IncomingResponse) -> Result<Response, Error> {
    let status = response.status();
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let headers = response.headers().entries().into_iter().map(|(name, value)| (name, text(value))).collect();
    let taken = |()| Error::Response("the body was taken already".to_owned());
    let incoming = response.consume().map_err(taken)?;
    let stream = incoming.stream().map_err(taken)?;
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES_MAX) {
            Ok(part) => body.extend(part),
            Err(StreamError::Closed) => return Ok(Response { status, headers, body }),
            Err(error) => return Err(error_of_stream(error)),
        }
    }
}

fn error_of_stream(error: StreamError) -> Error {
    match error {
        StreamError::Closed => Error::Unreachable("the connection was closed".to_owned()),
        StreamError::LastOperationFailed(error) => match http_error_code(&error) {
            Some(code) => error_of(code),
            // The host's own words: more was written than it takes.
            None => Error::TooLarge(error.to_debug_string()),
        },
    }
}

fn error_of(code: ErrorCode) -> Error {
    let sentence = format!("{code:?}");
    match code {
        ErrorCode::InternalError(Some(text)) => match text.strip_prefix(DENIED) {
            Some(reason) => Error::Denied(reason.to_owned()),
            None => Error::Unreachable(text),
        },
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => Error::Denied(sentence),
        ErrorCode::DnsError(payload) => Error::Unreachable(payload.rcode.unwrap_or(sentence)),
        ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => Error::Timeout(sentence),
        ErrorCode::TlsProtocolError | ErrorCode::TlsCertificateError | ErrorCode::TlsAlertReceived(_) => {
            Error::Tls(sentence)
        }
        ErrorCode::HttpRequestBodySize(_)
        | ErrorCode::HttpRequestHeaderSectionSize(_)
        | ErrorCode::HttpRequestHeaderSize(_)
        | ErrorCode::HttpResponseBodySize(_)
        | ErrorCode::HttpResponseHeaderSectionSize(_)
        | ErrorCode::HttpResponseHeaderSize(_) => Error::TooLarge(sentence),
        ErrorCode::HttpRequestMethodInvalid
        | ErrorCode::HttpRequestUriInvalid
        | ErrorCode::HttpRequestUriTooLong
        | ErrorCode::HttpRequestLengthRequired => Error::Invalid(sentence),
        ErrorCode::HttpProtocolError | ErrorCode::HttpUpgradeFailed => Error::Response(sentence),
        _ => Error::Unreachable(sentence),
    }
}
