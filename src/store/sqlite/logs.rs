//! Captured log lines, numbered from 1 in each run.

use rusqlite::{Connection, params};

use super::{
    columns::{Columns, read_rows, signed, signed_limit},
    error::unreadable,
};
use crate::{
    model::{
        Payload,
        id::RunKey,
        row::{LogLevel, LogLine},
    },
    store::Error,
};

/// Every level with its text in rows.
const LEVELS: [(LogLevel, &str); 4] =
    [(LogLevel::Debug, "debug"), (LogLevel::Info, "info"), (LogLevel::Warn, "warn"), (LogLevel::Error, "error")];

fn text_of(level: LogLevel) -> &'static str {
    LEVELS.iter().find(|(known, _)| *known == level).map(|(_, text)| *text).expect("LEVELS lists every level")
}

fn level_of(text: &str) -> Option<LogLevel> {
    LEVELS.iter().find(|(_, known)| *known == text).map(|(level, _)| *level)
}

/// Appends lines to those of a run.
pub(super) fn add(connection: &Connection, run: &RunKey, lines: &[LogLine]) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let (tenant, execution) = (run.tenant.as_str(), run.execution.as_str());
    let select = "SELECT max(number) FROM logs WHERE tenant = ?1 AND execution = ?2 AND run = ?3";
    let mut select = connection.prepare_cached(select)?;
    let last: Option<i64> = select.query_row(params![tenant, execution, run.run], |row| row.get(0))?;
    let insert = "INSERT INTO logs (tenant, execution, run, number, at, unit, attempt, level, message, fields) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let mut insert = connection.prepare_cached(insert)?;
    for (line, number) in lines.iter().zip(last.unwrap_or(0) + 1..) {
        insert.execute(params![
            tenant,
            execution,
            run.run,
            number,
            line.at_ms.0,
            line.unit.as_str(),
            line.attempt,
            text_of(line.level),
            line.message,
            line.fields.as_ref().map(|fields| fields.as_str().as_bytes()),
        ])?;
    }
    Ok(())
}

/// Returns lines of a run after the one with number `after`.
pub(super) fn read(
    connection: &Connection,
    run: &RunKey,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, LogLine)>, Error> {
    let select = "SELECT number, at, unit, attempt, level, message, fields FROM logs \
                  WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND number > ?4 ORDER BY number LIMIT ?5";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run, signed(after), signed_limit(limit)];
    read_rows(connection, select, key, limit, |columns| {
        let number = columns.number()?;
        let line = LogLine {
            at_ms: columns.time()?,
            unit: columns.id()?,
            attempt: columns.number()?,
            level: columns.word(level_of)?,
            message: columns.text()?.to_owned(),
            fields: fields(columns)?,
        };
        Ok((number, line))
    })
}

fn fields(columns: &mut Columns<'_>) -> Result<Option<Payload>, Error> {
    let bytes = columns.bytes_or_none()?;
    bytes.map(|bytes| std::str::from_utf8(bytes).map(Payload::trusted).map_err(unreadable)).transpose()
}
