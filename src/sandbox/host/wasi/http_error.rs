//! Which error of `wasi:http` ended a stream.
//!
//! `wasmtime-wasi-http` 48 looks for its `ErrorCode` in a stream that ends with its `Error`, and so never finds one: a
//! guest could not tell a body that is cut from one that is late or too large. This takes the place of its function.

use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource},
};
use wasmtime_wasi_http::{
    Error,
    p2::bindings::http::types::{DnsErrorPayload, ErrorCode, IoError},
};

use super::{State, TYPES};

/// Takes the place of the function that tells a guest the error.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.instance(TYPES)?.func_wrap("http-error-code", http_error_code)
}

fn http_error_code(
    mut store: StoreContextMut<'_, State>,
    (error,): (Resource<IoError>,),
) -> wasmtime::Result<(Option<ErrorCode>,)> {
    let (_, table) = store.data_mut().wasi();
    Ok((table.get(&error)?.downcast_ref::<Error>().map(code_of),))
}

/// What a guest is told of an error with which the host ends a body (`sandbox/egress/`).
fn code_of(error: &Error) -> ErrorCode {
    match error {
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseHeaderSectionSize(size) => ErrorCode::HttpResponseHeaderSectionSize(*size),
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        Error::ConnectionRefused => ErrorCode::ConnectionRefused,
        Error::ConnectionTimeout => ErrorCode::ConnectionTimeout,
        Error::DestinationUnavailable => ErrorCode::DestinationUnavailable,
        Error::DnsError { rcode, info_code } => {
            ErrorCode::DnsError(DnsErrorPayload { rcode: rcode.clone(), info_code: *info_code })
        }
        Error::InternalError(text) => ErrorCode::InternalError(text.clone()),
        other => ErrorCode::InternalError(Some(other.to_string())),
    }
}
