//! Follows a stream of events to its end, over as many connections as it takes, each event once.

use std::time::{Duration, Instant};

use reqwest::{Response, StatusCode};
use serde_json::value::RawValue;

use super::{
    Error,
    client::{Client, To},
    sse, state,
};

/// How long a server may be away while it is followed: long enough for a restart.
const AWAY_MAX: Duration = Duration::from_secs(30);

/// The pause before a stream is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// What is followed.
pub(super) struct Feed<'a> {
    /// Its route.
    pub(super) to: To<'a>,
    /// The query key that says after which event to begin.
    pub(super) after_key: &'static str,
    /// The event after which to begin.
    pub(super) after: u64,
}

/// Hands every event's data to `show` until nothing can follow.
pub(super) async fn follow(
    client: &Client,
    feed: Feed<'_>,
    mut show: impl FnMut(&RawValue) -> Result<(), Error>,
) -> Result<(), Error> {
    let to = feed.to.with("follow", true).with(feed.after_key, feed.after);
    let mut seen = feed.after;
    let Some(mut stream) = client.stream(&to, None).await? else { return Ok(()) };
    loop {
        let before = Instant::now();
        if let Some(error) = read(client, stream, &mut seen, &mut show).await?
            && !state::may_come_back(&error)
        {
            return Err(error);
        }
        // A stream that ended by itself may be over, or its server may be stopping: asking again tells.
        if before.elapsed() < PAUSE {
            tokio::time::sleep(PAUSE - before.elapsed()).await;
        }
        match reopen(client, &to, seen).await? {
            Some(again) => stream = again,
            None => return Ok(()),
        }
    }
}

async fn reopen(client: &Client, to: &To<'_>, seen: u64) -> Result<Option<Response>, Error> {
    let away_since = Instant::now();
    loop {
        match client.stream(to, Some(seen)).await {
            Err(error) if state::may_come_back(&error) && away_since.elapsed() < AWAY_MAX => {
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// Shows one stream; returns why it broke, if it did. What `show` refuses is not the stream's failure.
async fn read(
    client: &Client,
    mut stream: Response,
    seen: &mut u64,
    show: &mut impl FnMut(&RawValue) -> Result<(), Error>,
) -> Result<Option<Error>, Error> {
    let mut reader = sse::Reader::default();
    loop {
        match stream.chunk().await {
            Ok(Some(bytes)) => {
                reader.push(&bytes).map_err(|sse::TooLong| client.odd("it sends an event without end".to_owned()))?;
            }
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(client.unreachable(&error))),
        }
        while let Some(event) = reader.next() {
            if event.kind == "error" {
                return Ok(Some(client.refusal(StatusCode::OK, None, event.data.as_bytes())));
            }
            if event.id.is_some_and(|id| id <= *seen) {
                continue;
            }
            let data: Box<RawValue> =
                serde_json::from_str(&event.data).map_err(|error| client.odd(format!("an event is not JSON: {error}")))?;
            show(&data)?;
            *seen = event.id.unwrap_or(*seen);
        }
    }
}
