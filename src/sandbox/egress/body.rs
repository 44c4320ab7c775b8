//! Bodies on their way: counted, bounded in bytes and time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    outgoing::{Outgoing, Permit},
    pool::Loan,
    send::error_of,
};

/// The body of a request on its way to a connection.
pub(super) struct Request {
    body: WasiBody,
    outgoing: Arc<Outgoing>,
    bytes_left: u64,
}

impl Request {
    pub(super) fn new(body: WasiBody, outgoing: &Arc<Outgoing>) -> Self {
        outgoing.begin_sending();
        Self { body, outgoing: Arc::clone(outgoing), bytes_left: outgoing.limits().egress_body_bytes }
    }
}

impl Body for Request {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        Poll::Ready(match std::task::ready!(polled) {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.outgoing.took(bytes, true);
                match self.bytes_left.checked_sub(bytes as u64) {
                    Some(left) => {
                        self.bytes_left = left;
                        Some(Ok(frame))
                    }
                    None => Some(Err(Error::HttpRequestBodySize(Some(self.outgoing.limits().egress_body_bytes)))),
                }
            }
            // A guest that is gone has not said that the body is whole.
            None if self.outgoing.is_over() => Some(Err(Error::ConnectionTerminated)),
            other => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // What still waits in it will not be sent: give its room back.
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut self.body).poll_frame(&mut context) {
            self.outgoing.took(frame.data_ref().map_or(0, Bytes::len), false);
        }
        self.outgoing.end_sending();
    }
}

/// The body of a response on its way to the guest.
pub(super) struct Response {
    body: Incoming,
    outgoing: Arc<Outgoing>,
    bytes_left: u64,
    /// When all of it must be there.
    deadline: Pin<Box<Sleep>>,
    /// How long its next part may take.
    patience: Option<(Duration, Pin<Box<Sleep>>)>,
    /// The connection, until the body has ended.
    loan: Option<Loan>,
    _permit: Permit,
}

impl Response {
    pub(super) fn new(
        body: Incoming,
        outgoing: &Arc<Outgoing>,
        deadline: Instant,
        patience: Option<Duration>,
        loan: Loan,
        permit: Permit,
    ) -> Self {
        Self {
            body,
            outgoing: Arc::clone(outgoing),
            bytes_left: outgoing.limits().egress_body_bytes,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            patience: patience.map(|patience| (patience, Box::pin(tokio::time::sleep(patience)))),
            loan: Some(loan),
            _permit: permit,
        }
    }

    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let late = |sleep: &mut Pin<Box<Sleep>>, context: &mut Context<'_>| sleep.as_mut().poll(context).is_ready();
        late(&mut self.deadline, context) || self.patience.as_mut().is_some_and(|(_, patience)| late(patience, context))
    }
}

impl Body for Response {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Pending if this.is_late(context) => {
                this.loan = None;
                Poll::Ready(Some(Err(Error::HttpResponseTimeout)))
            }
            Poll::Pending => Poll::Pending,
            // Asked for before the deadline it may be late all the same, where parts keep coming.
            Poll::Ready(Some(Ok(_))) if this.deadline.is_elapsed() || Instant::now() >= this.deadline.deadline() => {
                this.loan = None;
                Poll::Ready(Some(Err(Error::HttpResponseTimeout)))
            }
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.outgoing.count_received(bytes);
                if let Some((patience, sleep)) = &mut this.patience {
                    sleep.as_mut().reset(Instant::now() + *patience);
                }
                match this.bytes_left.checked_sub(bytes as u64) {
                    Some(left) => {
                        this.bytes_left = left;
                        Poll::Ready(Some(Ok(frame)))
                    }
                    None => {
                        this.loan = None;
                        let max = this.outgoing.limits().egress_body_bytes;
                        Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(max)))))
                    }
                }
            }
            Poll::Ready(Some(Err(error))) => {
                this.loan = None;
                Poll::Ready(Some(Err(error_of(&error))))
            }
            Poll::Ready(None) => {
                if let Some(loan) = this.loan.take() {
                    loan.give_back();
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take().filter(|_| self.body.is_end_stream()) {
            loan.give_back();
        }
    }
}
