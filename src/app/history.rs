//! Operations on what happened: histories, log lines, and waiting for more of them.

use super::{
    App, Error, ErrorCode, cursor,
    view::{EventView, HistoryPage, HistoryRequest, LogView, PageRequest},
};
use crate::{
    model::{ExecutionId, StoredEvent, TenantId, id::RunKey, row::ExecutionKey},
    store::HistoryQuery,
};

/// Events of a history answer where the request does not say.
const HISTORY_EVENTS: u64 = 5_000;
/// Bytes of a history answer.
const HISTORY_BYTES: usize = 4 * 1024 * 1024;

impl App {
    /// Returns a part of the history.
    pub async fn history(&self, tenant: &TenantId, id: &str, request: HistoryRequest) -> Result<HistoryPage, Error> {
        let id = ExecutionId::new(id)?;
        let row = self.row(tenant, &id).await?;
        let run = request.run.unwrap_or(row.run.run);
        if run == 0 || run > row.run.run {
            return Err(Error::new(ErrorCode::ExecutionNotFound, format!("the execution `{id}` has no run {run}")));
        }
        let limit = request.limit.unwrap_or(HISTORY_EVENTS).clamp(1, HISTORY_EVENTS);
        let query = HistoryQuery {
            after_seq: request.after_seq,
            reverse: request.reverse,
            limit: usize::try_from(limit).expect("at most 5,000"),
            bytes: HISTORY_BYTES,
        };
        let key = RunKey { run, ..row.run.clone() };
        let events = self.inner.store.history(&key, query).await?;
        let last = events.last().map(|event| event.seq);
        let more = match last {
            Some(seq) if request.reverse => seq > 1,
            Some(seq) => run < row.run.run || seq < row.last_seq,
            None => false,
        };
        let closed = !more && (row.status.is_terminal() || run < row.run.run);
        let events = events.iter().map(|event| EventView { seq: event.seq, json: event_json(run, event) }).collect();
        Ok(HistoryPage { run, events, next_seq: last.filter(|_| more), closed })
    }

    /// Returns captured log lines of a run, oldest first.
    pub async fn logs(
        &self,
        tenant: &TenantId,
        id: &str,
        run: Option<u32>,
        after: u64,
        limit: Option<u64>,
    ) -> Result<Vec<LogView>, Error> {
        let id = ExecutionId::new(id)?;
        let row = self.row(tenant, &id).await?;
        let limit = cursor::limit(&PageRequest { limit, cursor: None });
        let key = RunKey { run: run.unwrap_or(row.run.run), ..row.run };
        let lines = self.inner.store.logs(&key, after, limit).await?;
        Ok(lines.into_iter().map(|(id, line)| LogView { id, line }).collect())
    }

    /// Waits until the execution may have changed past `seen_seq`; returns the seq that was seen.
    pub async fn changed(&self, tenant: &TenantId, id: &str, seen_seq: u64) -> Result<u64, Error> {
        let id = ExecutionId::new(id)?;
        let key = ExecutionKey { tenant: tenant.clone(), execution: id.clone() };
        let mut watch = self.inner.waiters.watch(&key);
        let row = self.row(tenant, &id).await?;
        if row.last_seq > seen_seq || row.status.is_terminal() {
            return Ok(row.last_seq);
        }
        // Past the terminal event the sender goes, which ends the wait, too.
        let _ = watch.wait_for(|seq| *seq > seen_seq).await;
        Ok(self.row(tenant, &id).await?.last_seq)
    }
}

/// An event on the wire: its place, its type, and its fields as they are stored.
fn event_json(run: u32, event: &StoredEvent) -> String {
    let fields = event.fields.strip_prefix('{').unwrap_or("}");
    let comma = if fields.starts_with('}') { "" } else { "," };
    format!(r#"{{"seq":{},"run":{run},"at_ms":{},"type":"{}"{comma}{fields}"#, event.seq, event.at.0, event.kind)
}
