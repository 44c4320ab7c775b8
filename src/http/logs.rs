//! The log lines that sandboxed attempts wrote.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Edge,
    answer::{Answer, json},
    caller::{LastEventId, Subject},
    query::{FromQuery, Given, Query},
    stream::{self, Batch, Feed, push_event},
};
use crate::app::{Error, HistoryRequest, LogView};

/// How many lines a page has where nothing is said, and at most.
const LINES: u64 = 50;
const LINES_MAX: u64 = 500;

pub(super) fn routes() -> OpenApiRouter<Edge> {
    OpenApiRouter::new().routes(routes!(list_logs))
}

/// Which log lines are wanted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// Only lines after this one. `next_cursor` of the page before goes here.
    after: Option<u64>,
    /// How many lines: 50 where absent, at most 500.
    limit: Option<u64>,
    /// Which run; the last one where absent.
    run: Option<u32>,
    /// Answers with a stream that shows what is there, then what comes, and ends with the run.
    follow: Option<bool>,
}

impl FromQuery for LogQuery {
    const KEYS: &'static [&'static str] = &["after", "limit", "run", "follow"];

    fn read(given: &Given) -> Result<Self, Error> {
        Ok(Self {
            after: given.number("after")?,
            limit: given.number("limit")?,
            run: given.run()?,
            follow: given.flag("follow")?,
        })
    }
}

/// A page of log lines, oldest first.
#[derive(Serialize, ToSchema)]
struct Logs {
    /// The execution.
    execution_id: String,
    /// The lines: `id`, `at_ms`, `unit`, `attempt`, `level`, `message` and perhaps `fields`.
    #[schema(value_type = Vec<serde_json::Value>)]
    lines: Vec<LogView>,
    /// The `after` of the next page; null: nothing follows now.
    next_cursor: Option<u64>,
}

/// Returns the log lines of an execution.
#[utoipa::path(
    get, path = "/v1/executions/{id}/logs", tag = "executions",
    params(
        ("id" = String, Path), LogQuery,
        ("last-event-id" = Option<u64>, Header, description = "With `follow`: goes on after this line.")
    ),
    responses((status = 200, content(
        (Logs = "application/json"),
        (String = "text/event-stream", example = "id: 1\ndata: {\"id\":1,\"level\":\"info\",\"message\":\"hello\"}\n\n")
    )))
)]
async fn list_logs(subject: Subject, Query(query): Query<LogQuery>, LastEventId(last): LastEventId) -> Answer {
    let after = query.after.unwrap_or(0);
    if query.follow == Some(true) {
        let draining = subject.app.draining();
        let feed = LogFeed { subject, run: query.run, after: last.unwrap_or(after), seen_seq: 0 };
        return stream::answer(feed, last.is_some(), draining).await;
    }
    let limit = query.limit.unwrap_or(LINES).clamp(1, LINES_MAX);
    let Subject { app, tenant, id } = subject;
    let lines = app.logs(&tenant, &id, query.run, after, Some(limit)).await?;
    let next_cursor = full(&lines, limit).then(|| lines.last().map(|line| line.id)).flatten();
    json(StatusCode::OK, &Logs { execution_id: id, lines, next_cursor })
}

/// Returns whether more lines may follow a page of at most `limit`.
fn full(lines: &[LogView], limit: u64) -> bool {
    lines.len() as u64 >= limit
}

struct LogFeed {
    subject: Subject,
    run: Option<u32>,
    after: u64,
    /// Lines are committed with the events of their attempts, so that events tell of lines.
    seen_seq: u64,
}

impl Feed for LogFeed {
    async fn read(&mut self) -> Result<Batch, Error> {
        if self.seen_seq == 0 {
            self.changed().await?;
        }
        // Asked before the lines are read: what is closed then has no more lines than are found now.
        let rest = HistoryRequest { run: self.run, after_seq: self.seen_seq, limit: Some(1), reverse: false };
        let over = self.subject.history(rest).await?.closed;
        let Subject { app, tenant, id } = &self.subject;
        let lines = app.logs(tenant, id, self.run, self.after, Some(LINES_MAX)).await?;
        let mut text = String::new();
        for line in &lines {
            push_event(&mut text, line.id, &serde_json::to_string(line).map_err(Error::internal)?);
            self.after = line.id;
        }
        let more = full(&lines, LINES_MAX);
        Ok(Batch { text, more, closed: over && !more })
    }

    async fn changed(&mut self) -> Result<(), Error> {
        self.seen_seq = self.subject.changed(self.seen_seq).await?;
        Ok(())
    }
}
