//! Recorded attempts.

use rusqlite::{Connection, params};

use super::columns::{read_first, signed_limit};
use crate::{
    model::{id::UnitRef, row::RecordingRow},
    store::{Batch, Error, RECORDINGS_MAX},
};

/// Writes what a batch keeps, and removes what is older than the newest of its tenant.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for RecordingRow { unit, attempt, recorded_at, bundle } in &batch.recordings {
        let run = &unit.run;
        let tenant = run.tenant.as_str();
        // The number of one that is replaced goes with it: the new one is the newest.
        let put = "INSERT OR REPLACE INTO recordings (tenant, execution, run, unit, attempt, recorded_at, bundle) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let row = params![tenant, run.execution.as_str(), run.run, unit.unit.as_str(), attempt, recorded_at.0, bundle];
        connection.prepare_cached(put)?.execute(row)?;
        let drop = "DELETE FROM recordings WHERE tenant = ?1 AND number <= \
                    (SELECT number FROM recordings WHERE tenant = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)";
        connection.prepare_cached(drop)?.execute(params![tenant, signed_limit(RECORDINGS_MAX)])?;
    }
    Ok(())
}

/// Returns what was kept of an attempt.
pub(super) fn find(connection: &Connection, unit: &UnitRef, attempt: u32) -> Result<Option<RecordingRow>, Error> {
    let select = "SELECT recorded_at, bundle FROM recordings \
                  WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND unit = ?4 AND attempt = ?5";
    let run = &unit.run;
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run, unit.unit.as_str(), attempt];
    read_first(connection, select, key, |columns| {
        let recorded_at = columns.time()?;
        Ok(RecordingRow { unit: unit.clone(), attempt, recorded_at, bundle: columns.bytes()?.to_vec() })
    })
}
