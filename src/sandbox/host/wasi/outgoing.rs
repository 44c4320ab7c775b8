//! The stream by which a guest writes the body of a request.
//!
//! A guest may write before it hands the request over, when nobody takes what it writes. Up to a point that waits in the
//! host; past it the guest is told so instead of waiting for what cannot come.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource},
    format_err,
};
use wasmtime_wasi::{
    async_trait,
    p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult},
};
use wasmtime_wasi_http::p2::body::HostOutgoingBody;

use super::{super::super::egress::Outgoing, State, TYPES};

/// Takes the place of the function that gives a guest the stream.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.instance(TYPES)?.func_wrap("[method]outgoing-body.write", write)
}

type Written = Result<Resource<DynOutputStream>, ()>;

fn write(
    mut store: StoreContextMut<'_, State>,
    (body,): (Resource<HostOutgoingBody>,),
) -> wasmtime::Result<(Written,)> {
    let (wasi, table) = store.data_mut().wasi();
    let outgoing = Arc::clone(&wasi.hooks.outgoing);
    let Some(inner) = table.get_mut(&body)?.take_output_stream() else { return Ok((Err(()),)) };
    let stream: DynOutputStream = Box::new(BodyStream { inner, outgoing, bytes: 0, waited_in_vain: false });
    Ok((Ok(table.push_child(stream, &body)?),))
}

/// A stream that counts what waits to be sent.
struct BodyStream {
    inner: DynOutputStream,
    outgoing: Arc<Outgoing>,
    bytes: u64,
    waited_in_vain: bool,
}

impl BodyStream {
    /// Returns how much may be written now, or why nothing ever will be.
    fn permit(&mut self) -> StreamResult<usize> {
        let inner = self.inner.check_write()?;
        let room = usize::try_from(self.outgoing.room()).unwrap_or(usize::MAX);
        match inner.min(room) {
            0 if self.waited_in_vain => Err(failed("the body waited for too long to be sent".to_owned())),
            0 if !self.outgoing.is_sending() => Err(failed(
                "too much of the body waits to be sent: hand the request over before writing the rest".to_owned(),
            )),
            permit => Ok(permit),
        }
    }
}

fn failed(sentence: String) -> StreamError {
    StreamError::LastOperationFailed(format_err!("{sentence}"))
}

impl OutputStream for BodyStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let max = self.outgoing.limits().egress_body_bytes;
        let length = bytes.len();
        if self.bytes + length as u64 > max {
            return Err(failed(format!("the body of a request has {max} bytes at most")));
        }
        if length as u64 > self.outgoing.room() {
            return Err(StreamError::trap("more was written than `check-write` permits"));
        }
        self.inner.write(bytes)?;
        self.bytes += length as u64;
        self.outgoing.wrote(length);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.permit()
    }
}

#[async_trait]
impl Pollable for BodyStream {
    async fn ready(&mut self) {
        let patience = Duration::from_millis(self.outgoing.limits().egress_time.0);
        let outgoing = Arc::clone(&self.outgoing);
        let waiting = async {
            loop {
                let mut moved = std::pin::pin!(outgoing.moved().notified());
                // Listened to before looking, so that nothing is missed between.
                moved.as_mut().enable();
                if !matches!(self.permit(), Ok(0)) {
                    return;
                }
                if outgoing.room() == 0 {
                    moved.await;
                } else {
                    tokio::select! {
                        () = self.inner.ready() => {}
                        () = moved => {}
                    }
                }
            }
        };
        self.waited_in_vain = tokio::time::timeout(patience, waiting).await.is_err();
    }
}
