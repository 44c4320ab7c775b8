//! Where `wasi:http` hands its requests over.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::header::HeaderName;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks, p2::bindings::http::types::ErrorCode,
};

use super::{
    super::tape::{Played, Tape, answer, keep},
    Egress, Outgoing, body, headers,
    refusal::Refusal,
    send,
};

/// How many writes of a body wait for a connection at most; how many bytes those of an attempt may be, `Outgoing` says.
const BODY_CHUNKS_MAX: usize = 1024;
/// How much of a body is written at a time, in bytes.
const BODY_CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Takes the requests of one attempt.
pub(in super::super) struct Hooks {
    pub(in super::super) egress: Arc<Egress>,
    pub(in super::super) outgoing: Arc<Outgoing>,
    pub(in super::super) tape: Tape,
}

type Sent = Result<(hyper::Response<WasiBody>, Ending), Error>;
type Ending = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// Takes the body of a request that is sent nowhere, so that its guest can write it.
fn swallow(request: hyper::Request<WasiBody>, outgoing: &Arc<Outgoing>) {
    outgoing.count_request();
    let body = body::Request::new(request.into_body(), outgoing);
    tokio::spawn(async move { drop(body.collect().await) });
}

impl WasiHttpHooks for Hooks {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        headers::is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_forbidden)
    }

    fn send_request(
        &mut self,
        request: hyper::Request<WasiBody>,
        options: Option<RequestOptions>,
        _fut: Ending,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let (egress, outgoing, tape) = (Arc::clone(&self.egress), Arc::clone(&self.outgoing), self.tape.clone());
        // Now, not when the future is first polled: the order in which the guest asks is the tape's.
        let played = tape.request(request.method().as_str(), &request.uri().to_string());
        Box::new(async move {
            let response = match played {
                Played::Live => send::send(&egress, &outgoing, request, options.unwrap_or_default()).await,
                Played::Kept(number) => {
                    let sent = send::send(&egress, &outgoing, request, options.unwrap_or_default()).await;
                    keep(&tape, number, sent)
                }
                Played::Recorded(recorded) => {
                    swallow(request, &outgoing);
                    answer(recorded, outgoing.limits().egress_body_bytes).await
                }
                Played::Missing(sentence) => {
                    let refusal = Refusal::Unrecorded { sentence };
                    outgoing.tell(&refusal, None);
                    Err(refusal.to_error())
                }
            };
            Ok((response?, Box::new(async { Ok(()) }) as Ending))
        })
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        BODY_CHUNKS_MAX
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES_MAX
    }

    // What strangers' requests run into is for them to know and not for the server's log.

    fn p2_error_from_hyper(&mut self, _error: &hyper::Error) -> ErrorCode {
        ErrorCode::HttpProtocolError
    }

    fn p2_error_from_connect(&mut self, _error: &std::io::Error) -> ErrorCode {
        ErrorCode::ConnectionRefused
    }

    fn p2_error_from_tls(&mut self, _error: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }
}
