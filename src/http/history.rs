//! The history of an execution: pages, and a stream of what comes.

use axum::http::StatusCode;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, raw},
    caller::{LastEventId, Subject},
    query::{FromQuery, Given, Query},
    stream::{self, Batch, Feed, push_event},
};
use crate::app::{Error, HistoryPage, HistoryRequest};

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(find_history))
}

/// Which part of a history is wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// Only events after this seq; with `reverse`, before it. `next_cursor` of the page before goes here.
    after_seq: Option<u64>,
    /// At most this many events; up to 5,000 of them or 4 MiB where absent.
    limit: Option<u64>,
    /// Newest first.
    reverse: Option<bool>,
    /// Which run; the last one where absent.
    run: Option<u32>,
    /// Answers with a stream that shows what is there, then what comes, and ends with the run.
    follow: Option<bool>,
}

impl FromQuery for HistoryQuery {
    const KEYS: &'static [&'static str] = &["after_seq", "limit", "reverse", "run", "follow"];

    fn read(given: &Given) -> Result<Self, Error> {
        let query = Self {
            after_seq: given.number("after_seq")?,
            limit: given.number("limit")?,
            reverse: given.flag("reverse")?,
            run: given.run()?,
            follow: given.flag("follow")?,
        };
        if query.follow == Some(true) && query.reverse == Some(true) {
            return Err(Error::invalid("`follow` goes forward only; it cannot be combined with `reverse`"));
        }
        Ok(query)
    }
}

/// A page of a history.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer in the OpenAPI document; events are passed on as the JSON they are")]
struct History {
    /// The execution.
    execution_id: String,
    /// The events: `seq`, `run`, `at_ms`, `type` and the fields of the type.
    events: Vec<EventSchema>,
    /// The `after_seq` of the next page; null: nothing follows now.
    next_cursor: Option<u64>,
}

/// An event: these fields and those of its type.
#[derive(ToSchema)]
#[schema(as = Event)]
#[expect(dead_code, reason = "describes events in the OpenAPI document")]
struct EventSchema {
    /// Its number in the run, from 1, without gaps.
    seq: u64,
    /// The run.
    run: u32,
    /// When it was decided, in milliseconds since 1970.
    at_ms: i64,
    /// Its type, for instance `StepSucceeded`.
    r#type: String,
}

/// Returns the events of a run.
#[utoipa::path(
    get, path = "/v1/executions/{id}/history", tag = "executions",
    params(
        ("id" = String, Path), HistoryQuery,
        ("last-event-id" = Option<u64>, Header, description = "With `follow`: goes on after this seq.")
    ),
    responses((status = 200, content(
        (History = "application/json"),
        (String = "text/event-stream", example = "id: 1\ndata: {\"seq\":1,\"run\":1,\"at_ms\":0,\"type\":\"WorkflowCreated\"}\n\n")
    )))
)]
async fn find_history(subject: Subject, Query(query): Query<HistoryQuery>, LastEventId(last): LastEventId) -> Answer {
    let request = HistoryRequest {
        run: query.run,
        after_seq: query.after_seq.unwrap_or(0),
        limit: query.limit,
        reverse: query.reverse.unwrap_or(false),
    };
    if query.follow == Some(true) {
        let request = HistoryRequest { after_seq: last.unwrap_or(request.after_seq), ..request };
        let draining = subject.app.draining();
        return stream::answer(HistoryFeed { subject, request }, last.is_some(), draining).await;
    }
    let page = subject.history(request).await?;
    Ok(raw(StatusCode::OK, "application/json", text(&subject.id, &page)))
}

/// Events are JSON already; they are joined, not read.
fn text(id: &str, page: &HistoryPage) -> String {
    let size: usize = page.events.iter().map(|event| event.json.len() + 1).sum();
    let mut text = String::with_capacity(size + id.len() + 64);
    text.push_str("{\"execution_id\":");
    text.push_str(&serde_json::Value::from(id).to_string());
    text.push_str(",\"events\":[");
    for (at, event) in page.events.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&event.json);
    }
    text.push_str("],\"next_cursor\":");
    text.push_str(&serde_json::Value::from(page.next_seq).to_string());
    text.push('}');
    text
}

impl Subject {
    /// Returns a part of its history.
    pub(super) async fn history(&self, request: HistoryRequest) -> Result<HistoryPage, Error> {
        self.app.history(&self.tenant, &self.id, request).await
    }

    /// Waits until it may have changed past `seen_seq`; returns the seq that was seen.
    pub(super) async fn changed(&self, seen_seq: u64) -> Result<u64, Error> {
        self.app.changed(&self.tenant, &self.id, seen_seq).await
    }
}

struct HistoryFeed {
    subject: Subject,
    request: HistoryRequest,
}

impl Feed for HistoryFeed {
    async fn read(&mut self) -> Result<Batch, Error> {
        let page = self.subject.history(self.request.clone()).await?;
        // A run that follows this one is another stream.
        self.request.run = Some(page.run);
        let mut text = String::new();
        for event in &page.events {
            push_event(&mut text, event.seq, &event.json);
            self.request.after_seq = event.seq;
        }
        Ok(Batch { text, more: page.next_seq.is_some(), closed: page.closed })
    }

    async fn changed(&mut self) -> Result<(), Error> {
        self.subject.changed(self.request.after_seq).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::EventView;

    #[test]
    fn a_page_is_joined_from_its_events() {
        let event = |seq| EventView { seq, json: format!("{{\"seq\":{seq}}}") };
        let page = |events: Vec<EventView>, next_seq| HistoryPage { run: 1, events, next_seq, closed: false };
        for (page, wanted) in [
            (page(vec![], None), r#"{"execution_id":"a\"b","events":[],"next_cursor":null}"#),
            (
                page(vec![event(1), event(2)], Some(2)),
                r#"{"execution_id":"a\"b","events":[{"seq":1},{"seq":2}],"next_cursor":2}"#,
            ),
        ] {
            assert_eq!(text("a\"b", &page), wanted);
        }
    }
}
