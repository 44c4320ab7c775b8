//! Tasks on their way to a worker. They count as sent when their bytes have left for the network; when the connection ends
//! before that, they are given back at once and no attempt is spent.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::app::Handed;

/// What a connection has written but not flushed. Dropped with its connection, and with it what was never flushed.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Handed>>>);

impl Ledger {
    fn note(&self, handed: Handed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(handed);
    }

    /// Everything written so far has left.
    pub(super) fn flushed(&self) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        noted.into_iter().for_each(Handed::sent);
    }
}

/// The body of an answer that hands out tasks.
pub(super) struct HandedBody {
    text: Bytes,
    /// Until the connection has taken the text.
    handed: Option<Handed>,
    ledger: Option<Ledger>,
}

impl HandedBody {
    /// Returns a body of `text`, which shows what `handed` holds. Without a ledger the tasks count as sent when the text
    /// was taken.
    pub(super) fn new(text: Vec<u8>, handed: Handed, ledger: Option<Ledger>) -> Self {
        Self { text: text.into(), handed: Some(handed), ledger }
    }
}

impl Body for HandedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(handed) = self.handed.take() else { return Poll::Ready(None) };
        match &self.ledger {
            Some(ledger) => ledger.note(handed),
            None => handed.sent(),
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.text)))))
    }

    fn is_end_stream(&self) -> bool {
        self.handed.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.len() as u64)
    }
}
