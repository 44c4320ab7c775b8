//! Server-sent events: what is there, then what comes, until nothing more can come.
//!
//! An event's id is its number, so that `Last-Event-ID` goes on without a gap and without a repetition. A comment at least
//! every [`PING_EVERY`] keeps proxies from taking the stream for dead.

use std::{convert::Infallible, fmt::Write, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::{sync::watch, time::Instant};

use super::answer::Refused;
use crate::app::Error;

/// The longest silence of a stream.
const PING_EVERY: Duration = Duration::from_secs(10);

/// How long a stream rests when it was told of a change and finds nothing new, so that no mistake can make it spin.
const REST: Duration = Duration::from_millis(50);

/// What a stream shows.
pub(super) trait Feed: Send + 'static {
    /// Returns what is new since the last read.
    fn read(&mut self) -> impl Future<Output = Result<Batch, Error>> + Send;

    /// Resolves when another read may find more.
    fn changed(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// What one read found.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Events, each as [`push_event`] wrote it.
    pub(super) text: String,
    /// Whether another read finds more at once.
    pub(super) more: bool,
    /// Whether nothing can follow.
    pub(super) closed: bool,
}

/// Adds an event: a number and a JSON text, which has no line breaks between tokens.
pub(super) fn push_event(text: &mut String, id: u64, json: &str) {
    debug_assert!(!json.contains(['\n', '\r']), "compact JSON has no line breaks");
    writeln!(text, "id: {id}\ndata: {json}\n").expect("a string takes what is written");
}

fn error_event(error: Error) -> String {
    let code = error.code.as_str();
    tracing::warn!(code, error = &error as &dyn std::error::Error, "a stream ended with an error");
    let view = serde_json::json!({ "error": { "code": code, "message": error.message } });
    format!("event: error\ndata: {view}\n\n")
}

/// Answers with `feed` as a stream, or with an error when not even its beginning can be read. One that resumes and has
/// nothing left is answered 204, on which browsers stop to ask.
pub(super) async fn answer<F: Feed>(
    mut feed: F,
    resumes: bool,
    draining: watch::Receiver<bool>,
) -> Result<Response, Refused> {
    let first = feed.read().await?;
    if resumes && first.closed && first.text.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Proxies that buffer answers are told not to.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(frames(feed, first, draining))).into_response())
}

struct Follow<F> {
    feed: F,
    batch: Batch,
    /// Whether the batch was read after news of a change.
    told: bool,
    draining: watch::Receiver<bool>,
    done: bool,
}

fn frames<F: Feed>(
    feed: F,
    first: Batch,
    draining: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let follow = Follow { feed, batch: first, told: false, draining, done: false };
    stream::unfold(follow, async |mut follow| {
        let text = follow.next().await?;
        Some((Ok(Bytes::from(text)), follow))
    })
}

impl<F: Feed> Follow<F> {
    /// Returns what is sent next; none: the stream is over.
    async fn next(&mut self) -> Option<String> {
        let ping_at = Instant::now() + PING_EVERY;
        loop {
            if self.done || *self.draining.borrow() {
                return None;
            }
            self.done = self.batch.closed;
            let text = std::mem::take(&mut self.batch.text);
            if !text.is_empty() {
                return Some(text);
            }
            if self.done {
                return None;
            }
            let step = tokio::select! {
                step = step(&mut self.feed, self.batch.more, std::mem::take(&mut self.told)) => step,
                _ = tokio::time::sleep_until(ping_at) => return Some(": ping\n\n".to_owned()),
                _ = self.draining.wait_for(|draining| *draining) => return None,
            };
            match step {
                Ok(batch) => self.batch = batch,
                Err(error) => {
                    self.done = true;
                    return Some(error_event(error));
                }
            }
            self.told = !self.batch.more;
        }
    }
}

/// Waits for news, unless there is more already, and reads.
async fn step<F: Feed>(feed: &mut F, more: bool, told: bool) -> Result<Batch, Error> {
    if !more {
        if told {
            tokio::time::sleep(REST).await;
        }
        feed.changed().await?;
    }
    feed.read().await
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::BodyExt;

    use super::*;
    use crate::app::ErrorCode;

    /// Gives its batches one after the other; when there are none left, nothing ever changes.
    struct Canned(VecDeque<Result<Batch, Error>>);

    impl Feed for Canned {
        async fn read(&mut self) -> Result<Batch, Error> {
            self.0.pop_front().expect("it is read only after news")
        }

        async fn changed(&mut self) -> Result<(), Error> {
            if self.0.is_empty() { std::future::pending().await } else { Ok(()) }
        }
    }

    fn batch(ids: &[u64], more: bool, closed: bool) -> Result<Batch, Error> {
        let mut text = String::new();
        for id in ids {
            push_event(&mut text, *id, "{}");
        }
        Ok(Batch { text, more, closed })
    }

    async fn shown(batches: Vec<Result<Batch, Error>>, resumes: bool) -> Result<(u16, String), ErrorCode> {
        let (_keep, draining) = watch::channel(false);
        let response = answer(Canned(batches.into()), resumes, draining).await.map_err(|Refused(error)| error.code)?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Ok((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[tokio::test]
    async fn events_come_in_order_until_the_end() {
        let batches = vec![batch(&[1, 2], true, false), batch(&[3], false, false), batch(&[4], false, true)];
        let text = "id: 1\ndata: {}\n\nid: 2\ndata: {}\n\nid: 3\ndata: {}\n\nid: 4\ndata: {}\n\n";
        assert_eq!(shown(batches, false).await, Ok((200, text.to_owned())));
    }

    #[tokio::test]
    async fn a_stream_without_a_beginning_is_an_error() {
        let missing = || vec![Err(Error::new(ErrorCode::ExecutionNotFound, "there is no such execution"))];
        assert_eq!(shown(missing(), false).await, Err(ErrorCode::ExecutionNotFound));
    }

    #[tokio::test]
    async fn a_late_error_ends_the_stream() {
        let batches = vec![batch(&[1], false, false), Err(Error::new(ErrorCode::Unavailable, "stopping"))];
        let text = "id: 1\ndata: {}\n\nevent: error\ndata: {\"error\":{\"code\":\"UNAVAILABLE\",\"message\":\"stopping\"}}\n\n";
        assert_eq!(shown(batches, false).await, Ok((200, text.to_owned())));
    }

    #[tokio::test]
    async fn a_resumed_stream_that_is_over_says_so() {
        assert_eq!(shown(vec![batch(&[], false, true)], true).await, Ok((204, String::new())));
        assert_eq!(shown(vec![batch(&[], false, true)], false).await, Ok((200, String::new())));
        assert_eq!(shown(vec![batch(&[9], false, true)], true).await.unwrap().0, 200);
    }

    #[tokio::test]
    async fn a_drain_ends_a_stream_that_waits() {
        let (drain, draining) = watch::channel(false);
        let response = answer(Canned([batch(&[1], false, false)].into()), false, draining).await.unwrap();
        assert_eq!(response.headers()["x-accel-buffering"], "no", "C118");
        let body = tokio::spawn(response.into_body().collect());
        drain.send_replace(true);
        body.await.unwrap().unwrap();
    }
}
