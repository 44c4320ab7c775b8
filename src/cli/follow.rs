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

/// The longest silence of a stream that lives; its server says something at least every ten seconds.
const SILENCE_MAX: Duration = Duration::from_secs(35);

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
        let chunk = tokio::time::timeout(SILENCE_MAX, stream.chunk()).await;
        let Ok(chunk) = chunk else { return Ok(Some(client.odd("it has fallen silent".to_owned()))) };
        match chunk {
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
            let data: Box<RawValue> = serde_json::from_str(&event.data)
                .map_err(|error| client.odd(format!("an event is not JSON: {error}")))?;
            show(&data)?;
            *seen = event.id.unwrap_or(*seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::{
        Router,
        http::HeaderMap,
        response::{IntoResponse, Response},
        routing::get,
    };

    use super::{super::client::testing::serve, *};

    /// Follows a server that gives these answers, one a connection, and returns what was shown, what was asked as the
    /// last event, and how it ended.
    async fn followed(answers: Vec<(u16, &'static str)>) -> (Vec<String>, Vec<String>, Option<u8>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&asked);
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let answer = move |headers: HeaderMap| async move {
            let last = headers.get("last-event-id").map_or("-", |last| last.to_str().unwrap()).to_owned();
            keep.lock().unwrap().push(last);
            let (status, body) = answers.lock().unwrap().next().unwrap();
            let status = axum::http::StatusCode::from_u16(status).unwrap();
            (status, body).into_response() as Response
        };
        let client = serve(Router::new().route("/v1/feed", get(answer))).await.client().unwrap();
        let mut shown = Vec::new();
        let feed = Feed { to: To::path(&["feed"]), after_key: "after", after: 0 };
        let ended = follow(&client, feed, |data| {
            shown.push(data.get().to_owned());
            Ok(())
        })
        .await;
        let asked = asked.lock().unwrap().clone();
        (shown, asked, ended.err().map(|error| error.exit_code()))
    }

    #[tokio::test]
    async fn a_broken_stream_goes_on_where_it_was() {
        let (shown, asked, ended) = followed(vec![
            (200, "id: 1\ndata: \"a\"\n\nid: 2\ndata: \"b\"\n\n"),
            (503, r#"{"error":{"code":"UNAVAILABLE","message":"stopping"}}"#),
            (200, "id: 2\ndata: \"b\"\n\nid: 3\ndata: \"c\"\n\n"),
            (204, ""),
        ])
        .await;
        assert_eq!(shown, ["\"a\"", "\"b\"", "\"c\""], "each event once");
        assert_eq!(asked, ["-", "2", "2", "3"]);
        assert_eq!(ended, None);
    }

    #[tokio::test]
    async fn a_refusal_ends_a_stream() {
        let missing = r#"{"error":{"code":"EXECUTION_NOT_FOUND","message":"no"}}"#;
        assert_eq!(followed(vec![(404, missing)]).await.2, Some(3));
        let broken = "event: error\ndata: {\"error\":{\"code\":\"INTERNAL\",\"message\":\"internal error\"}}\n\n";
        assert_eq!(followed(vec![(200, broken)]).await, (vec![], vec!["-".to_owned()], Some(3)));
    }
}
