//! Rows of executions: made, moved on, found, and compared by the sweep.

use std::collections::BTreeMap;

use rusqlite::{Connection, Statement, params};

use super::columns::{Columns, read_first, read_rows, signed};
use crate::{
    model::{
        ExecutionId, Status, TenantId, WorkflowName, WorkflowVersion,
        id::RunKey,
        row::{ExecutionKey, Projection, Waiting},
    },
    store::{Error, SweepRow},
};

/// Moves a run on whose status stays: last seq, waiting kind, next wake and time, where seq and status are as expected.
pub(super) const ADVANCE: &str = "UPDATE executions SET last_seq = ?1, waiting = ?2, next_wake = ?3, updated_at = ?4 \
    WHERE tenant = ?5 AND id = ?6 AND run = ?7 AND last_seq = ?8 AND status = ?9";

pub(super) const ADVANCE_TO_STATUS: &str = "UPDATE executions \
    SET last_seq = ?1, waiting = ?2, next_wake = ?3, updated_at = ?4, status = ?9, finished_at = ?10 \
    WHERE tenant = ?5 AND id = ?6 AND run = ?7 AND last_seq = ?8";

/// Makes the row of a run where its execution has none.
pub(super) const CREATE: &str = "INSERT OR IGNORE INTO executions (tenant, id, run, workflow, version, definition_hash, \
        status, last_seq, waiting, next_wake, created_at, updated_at, finished_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// The columns that [`read`] reads.
pub(super) const COLUMNS: &str = "e.tenant, e.id, e.run, e.workflow, e.version, e.definition_hash, e.status, e.last_seq, \
    e.waiting, e.next_wake, e.created_at, e.updated_at, e.finished_at";

/// Says of a row that its execution is not terminal, word for word as the partial indexes say it.
pub(super) const ACTIVE: &str = "(status = 'RUNNING' OR status = 'COMPENSATING')";

/// Reads an execution's row.
pub(super) fn read(columns: &mut Columns<'_>) -> Result<Projection, Error> {
    Ok(Projection {
        run: columns.run()?,
        workflow: columns.id()?,
        version: columns.id()?,
        definition_hash: columns.id()?,
        status: columns.word(Status::from_text)?,
        last_seq: columns.number()?,
        waiting: columns.word(Waiting::from_text)?,
        next_wake: columns.time_or_none()?,
        created_at: columns.time()?,
        updated_at: columns.time()?,
        finished_at: columns.time_or_none()?,
    })
}

/// Makes the row of a new run with its labels; false: the run, or a later one, is there.
pub(super) fn create(
    connection: &Connection,
    row: &Projection,
    labels: &BTreeMap<String, String>,
) -> Result<bool, Error> {
    if !insert(connection, row)? {
        let RunKey { tenant, execution, run } = &row.run;
        let delete = "DELETE FROM executions WHERE tenant = ?1 AND id = ?2 AND run < ?3";
        let mut delete = connection.prepare_cached(delete)?;
        if delete.execute(params![tenant.as_str(), execution.as_str(), run])? == 0 || !insert(connection, row)? {
            return Ok(false);
        }
    }
    add_labels(connection, row, labels)?;
    Ok(true)
}

fn insert(connection: &Connection, row: &Projection) -> Result<bool, Error> {
    let made = connection.prepare_cached(CREATE)?.execute(params![
        row.run.tenant.as_str(),
        row.run.execution.as_str(),
        row.run.run,
        row.workflow.as_str(),
        row.version.as_str(),
        row.definition_hash.as_str(),
        row.status.as_str(),
        signed(row.last_seq),
        row.waiting.as_str(),
        row.next_wake.map(|wake| wake.0),
        row.created_at.0,
        row.updated_at.0,
        row.finished_at.map(|at| at.0),
    ])?;
    Ok(made == 1)
}

fn add_labels(connection: &Connection, row: &Projection, labels: &BTreeMap<String, String>) -> Result<(), Error> {
    if labels.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO labels (tenant, key, value, created_at, id, run) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(insert)?;
    let RunKey { tenant, execution, run } = &row.run;
    for (key, value) in labels {
        insert.execute(params![tenant.as_str(), key, value, row.created_at.0, execution.as_str(), run])?;
    }
    Ok(())
}

/// Moves a run on by [`ADVANCE`]; false: it is not at this seq and status.
pub(super) fn advance(statement: &mut Statement<'_>, row: &Projection, expected_seq: u64) -> Result<bool, Error> {
    bind_advance(statement, row, expected_seq)?;
    Ok(statement.raw_execute()? == 1)
}

/// Moves a run on to another status; false: it is not at this seq.
pub(super) fn advance_to_status(connection: &Connection, row: &Projection, expected_seq: u64) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached(ADVANCE_TO_STATUS)?;
    bind_advance(&mut statement, row, expected_seq)?;
    statement.raw_bind_parameter(10, row.finished_at.map(|at| at.0))?;
    Ok(statement.raw_execute()? == 1)
}

/// Binds what both ways of moving on have in common: ?1 to ?9.
fn bind_advance(statement: &mut Statement<'_>, row: &Projection, expected_seq: u64) -> Result<(), Error> {
    statement.raw_bind_parameter(1, signed(row.last_seq))?;
    statement.raw_bind_parameter(2, row.waiting.as_str())?;
    statement.raw_bind_parameter(3, row.next_wake.map(|wake| wake.0))?;
    statement.raw_bind_parameter(4, row.updated_at.0)?;
    statement.raw_bind_parameter(5, row.run.tenant.as_str())?;
    statement.raw_bind_parameter(6, row.run.execution.as_str())?;
    statement.raw_bind_parameter(7, row.run.run)?;
    statement.raw_bind_parameter(8, signed(expected_seq))?;
    statement.raw_bind_parameter(9, row.status.as_str())?;
    Ok(())
}

/// Returns the row of an execution's last run.
pub(super) fn find(connection: &Connection, tenant: &TenantId, id: &ExecutionId) -> Result<Option<Projection>, Error> {
    let select = format!("SELECT {COLUMNS} FROM executions e WHERE tenant = ?1 AND id = ?2");
    read_first(connection, &select, [tenant.as_str(), id.as_str()], read)
}

/// Returns whether a run that is not terminal uses a version.
pub(super) fn workflow_in_use(
    connection: &Connection,
    tenant: &TenantId,
    name: &WorkflowName,
    version: &WorkflowVersion,
) -> Result<bool, Error> {
    let select = format!(
        "SELECT 1 FROM executions INDEXED BY executions_in_use \
         WHERE tenant = ?1 AND workflow = ?2 AND version = ?3 AND {ACTIVE} LIMIT 1"
    );
    Ok(connection.prepare_cached(&select)?.exists([tenant.as_str(), name.as_str(), version.as_str()])?)
}

/// Returns how many executions are not terminal.
pub(super) fn count_active(connection: &Connection) -> Result<u64, Error> {
    let select = format!("SELECT count(*) FROM executions INDEXED BY executions_active WHERE {ACTIVE}");
    let count: i64 = connection.prepare_cached(&select)?.query_row([], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Returns executions whose engine has more to do.
pub(super) fn unfinished_turns(connection: &Connection, limit: usize) -> Result<Vec<ExecutionKey>, Error> {
    let select =
        "SELECT tenant, id FROM executions INDEXED BY executions_turns WHERE waiting = 'turn' ORDER BY tenant, id";
    read_rows(connection, select, [], limit, |columns| {
        Ok(ExecutionKey { tenant: columns.id()?, execution: columns.id()? })
    })
}

/// Returns a page of executions that wind down and have a ready row.
pub(super) fn winding_down(
    connection: &Connection,
    after: Option<&ExecutionKey>,
    limit: usize,
) -> Result<Vec<ExecutionKey>, Error> {
    let select = "SELECT tenant, id FROM executions e INDEXED BY executions_winding_down \
         WHERE status = 'COMPENSATING' AND (tenant, id) > (?1, ?2) \
             AND EXISTS (SELECT 1 FROM ready r WHERE r.tenant = e.tenant AND r.execution = e.id AND r.run = e.run) \
         ORDER BY tenant, id";
    read_rows(connection, select, place_of(after), limit, |columns| {
        Ok(ExecutionKey { tenant: columns.id()?, execution: columns.id()? })
    })
}

/// The key to go on after. No id is empty, so that the empty one stands before all.
fn place_of(after: Option<&ExecutionKey>) -> [&str; 2] {
    after.map_or(["", ""], |key| [key.tenant.as_str(), key.execution.as_str()])
}

/// Returns a page of what the sweep compares.
pub(super) fn sweep_page(
    connection: &Connection,
    after: Option<&ExecutionKey>,
    limit: usize,
) -> Result<Vec<SweepRow>, Error> {
    let select = format!(
        "SELECT {COLUMNS}, \
            (SELECT count(*) FROM ready r WHERE r.tenant = e.tenant AND r.execution = e.id AND r.run = e.run), \
            (SELECT min(due_at) FROM timers t WHERE t.tenant = e.tenant AND t.execution = e.id AND t.run = e.run) \
         FROM executions e INDEXED BY executions_active WHERE {ACTIVE} AND (tenant, id) > (?1, ?2) ORDER BY tenant, id"
    );
    read_rows(connection, &select, place_of(after), limit, |columns| {
        Ok(SweepRow { projection: read(columns)?, ready: columns.number()?, next_timer: columns.time_or_none()? })
    })
}
