//! Histories: appended to, and read back whole or in part.

use rusqlite::{Connection, Statement, params};

use super::columns::{Columns, read_first, signed, signed_limit};
use crate::{
    model::{Event, Payload, StoredEvent, id::RunKey, row::ExecutionKey},
    store::{Error, HistoryQuery, Loaded},
};

/// Appends an event.
pub(super) const ADD: &str = "INSERT INTO events (tenant, execution, run, seq, at, kind, format, fields) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Appends an event by [`ADD`].
pub(super) fn add(statement: &mut Statement<'_>, run: &RunKey, event: &StoredEvent) -> Result<(), Error> {
    statement.execute(params![
        run.tenant.as_str(),
        run.execution.as_str(),
        run.run,
        signed(event.seq),
        event.at.0,
        event.kind,
        event.format,
        event.fields.as_bytes(),
    ])?;
    Ok(())
}

fn read(columns: &mut Columns<'_>) -> Result<StoredEvent, Error> {
    Ok(StoredEvent {
        seq: columns.number()?,
        at: columns.time()?,
        kind: columns.text()?.to_owned(),
        format: columns.number()?,
        fields: fields(columns.bytes()?),
    })
}

/// Bytes that are no text become fields that no event has, so that the one event is unreadable and not all beside it.
fn fields(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|error| format!("not UTF-8: {error}"))
}

/// Returns the seq of a run's last event; 0: it has none.
pub(super) fn last_seq(connection: &Connection, run: &RunKey) -> Result<u64, Error> {
    let select = "SELECT max(seq) FROM events WHERE tenant = ?1 AND execution = ?2 AND run = ?3";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run];
    let last: Option<i64> = connection.prepare_cached(select)?.query_row(key, |row| row.get(0))?;
    Ok(last.map_or(0, i64::cast_unsigned))
}

/// Returns a part of a history.
pub(super) fn history(connection: &Connection, run: &RunKey, query: &HistoryQuery) -> Result<Vec<StoredEvent>, Error> {
    let (select, from) = if query.reverse {
        let before = if query.after_seq == 0 { i64::MAX } else { signed(query.after_seq) };
        let select = "SELECT seq, at, kind, format, fields FROM events \
                      WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND seq < ?4 ORDER BY seq DESC LIMIT ?5";
        (select, before)
    } else {
        let select = "SELECT seq, at, kind, format, fields FROM events \
                      WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND seq > ?4 ORDER BY seq LIMIT ?5";
        (select, signed(query.after_seq))
    };
    let (tenant, execution) = (run.tenant.as_str(), run.execution.as_str());
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query(params![tenant, execution, run.run, from, signed_limit(query.limit)])?;
    let mut events = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let event = read(&mut Columns::of(row))?;
        bytes += event.fields.len();
        if bytes > query.bytes && !events.is_empty() {
            break;
        }
        events.push(event);
    }
    Ok(events)
}

/// Returns the last run of an execution with its whole history; the inner error says that it cannot be read.
pub(super) fn load(connection: &Connection, key: &ExecutionKey) -> Result<Result<Option<Loaded>, Error>, Error> {
    match load_readable(connection, key) {
        Err(error @ Error::Unreadable { .. }) => Ok(Err(error)),
        other => other.map(Ok),
    }
}

fn load_readable(connection: &Connection, key: &ExecutionKey) -> Result<Option<Loaded>, Error> {
    let Some(projection) = super::executions::find(connection, &key.tenant, &key.execution)? else { return Ok(None) };
    let whole = HistoryQuery { after_seq: 0, reverse: false, limit: usize::MAX, bytes: usize::MAX };
    let events = history(connection, &projection.run, &whole)?;
    Ok(Some(Loaded { projection, events }))
}

/// Returns the input of a unit from the event that holds it; the inner error says why it cannot be read.
pub(super) fn input(connection: &Connection, run: &RunKey, seq: u64) -> Result<Result<Payload, String>, Error> {
    let select = "SELECT seq, at, kind, format, fields FROM events \
                  WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND seq = ?4";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run, signed(seq)];
    let stored = match read_first(connection, select, key, read) {
        Ok(Some(stored)) => stored,
        Ok(None) => return Ok(Err(format!("event {seq}, which holds the input, is missing"))),
        Err(Error::Unreadable { what }) => return Ok(Err(what)),
        Err(error) => return Err(error),
    };
    Ok(match Event::read(&stored) {
        Ok(Event::StepScheduled(event)) => {
            event.input.map(|input| input.json).ok_or_else(|| format!("event {seq} holds no input"))
        }
        Ok(other) => Err(format!("event {seq} is `{}` and holds no input", other.kind())),
        Err(error) => Err(error.to_string()),
    })
}
