//! Armed timers.

use rusqlite::{Connection, params};

use super::columns::read_rows;
use crate::{
    model::{Timestamp, id::RunKey, row::TimerRow},
    store::Error,
};

/// Arms timers, each over one of the same name.
pub(super) fn put(connection: &Connection, run: &RunKey, rows: &[TimerRow]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let put = "INSERT OR REPLACE INTO timers (tenant, execution, run, timer, due_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut put = connection.prepare_cached(put)?;
    for row in rows {
        let (tenant, execution) = (run.tenant.as_str(), run.execution.as_str());
        put.execute(params![tenant, execution, run.run, row.timer.to_string(), row.due_at.0])?;
    }
    Ok(())
}

/// Disarms some timers of a run.
pub(super) fn drop_some(connection: &Connection, run: &RunKey, timers: &[impl ToString]) -> Result<(), Error> {
    if timers.is_empty() {
        return Ok(());
    }
    let delete = "DELETE FROM timers WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND timer = ?4";
    let mut delete = connection.prepare_cached(delete)?;
    for timer in timers {
        delete.execute(params![run.tenant.as_str(), run.execution.as_str(), run.run, timer.to_string()])?;
    }
    Ok(())
}

/// Disarms every timer of a run: one by one, because a range of them would be collected in a temporary table, and most runs
/// have none left.
pub(super) fn drop_all(connection: &Connection, run: &RunKey) -> Result<(), Error> {
    let select = "SELECT timer FROM timers WHERE tenant = ?1 AND execution = ?2 AND run = ?3";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run];
    let timers = read_rows(connection, select, key, usize::MAX, |columns| Ok(columns.text()?.to_owned()))?;
    drop_some(connection, run, &timers)
}

/// Returns the timers that are due at or before `until`, earliest first.
pub(super) fn due(connection: &Connection, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, Error> {
    let select = "SELECT tenant, execution, run, timer, due_at FROM timers INDEXED BY timers_due \
                  WHERE due_at <= ?1 ORDER BY due_at";
    read_rows(connection, select, [until.0], limit, |columns| {
        Ok(TimerRow { run: columns.run()?, timer: columns.id()?, due_at: columns.time()? })
    })
}
