//! Bodies that a refusal left unread: taken in, within bounds, before the answer goes out.
//!
//! A client that is writing does not read, and a connection that ends on it takes the answer along. So whoever refuses a
//! request, for whatever it is refused, need not think of its body.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Error,
    body::{Body, HttpBody},
    extract::Request,
    http::header,
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// How much of a refused body is still taken in and thrown away, and for how long.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
const DISCARDING_MAX: Duration = Duration::from_secs(5);

/// The body of a request on its way through a handler.
#[derive(Clone)]
struct Shared(Arc<Mutex<Body>>);

/// What a handler may have left of a body.
pub(super) struct Unread(Option<Shared>);

/// Returns the request, and what will tell how much of its body was left.
pub(super) fn share(request: Request) -> (Request, Unread) {
    // Who expects to be asked for the body has not begun to send it, and must not be asked.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, Unread(None));
    }
    let (head, body) = request.into_parts();
    let shared = Shared(Arc::new(Mutex::new(body)));
    (Request::from_parts(head, Body::new(shared.clone())), Unread(Some(shared)))
}

impl Unread {
    /// Takes the rest in.
    pub(super) async fn discard(self) {
        let Some(mut body) = self.0 else { return };
        let rest = async {
            let mut left = DISCARDED_BYTES_MAX;
            while let Some(Ok(frame)) = body.frame().await {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(bytes) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        // Out of time: the rest is left where it is.
        let _ = tokio::time::timeout(DISCARDING_MAX, rest).await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::stream;

    use super::*;

    fn counted(pieces: usize, taken: &Arc<AtomicUsize>) -> Body {
        let taken = Arc::clone(taken);
        Body::from_stream(stream::iter((0..pieces).map(move |_| {
            taken.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1024 * 1024]))
        })))
    }

    #[tokio::test]
    async fn what_was_left_is_taken_in_within_bounds() {
        for (pieces, read, expected) in [(3, 0, 3), (3, 1, 3), (3, 3, 3), (100, 1, 18), (100, 0, 17)] {
            let taken = Arc::new(AtomicUsize::new(0));
            let (request, unread) = share(Request::new(counted(pieces, &taken)));
            let mut body = request.into_body();
            for _ in 0..read {
                assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 1024 * 1024);
            }
            drop(body);
            unread.discard().await;
            assert_eq!(taken.load(Ordering::SeqCst), expected, "{pieces} {read}");
        }
    }

    #[tokio::test]
    async fn a_body_that_waits_to_be_asked_for_is_not() {
        let taken = Arc::new(AtomicUsize::new(0));
        let request = Request::builder().header("expect", "100-continue").body(counted(3, &taken)).unwrap();
        let (request, unread) = share(request);
        drop(request);
        unread.discard().await;
        assert_eq!(taken.load(Ordering::SeqCst), 0);
    }
}
