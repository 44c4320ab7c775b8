//! Pins: which digests the live runs need.

use rusqlite::{Connection, params};

use super::columns::{read_rows, signed_limit};
use crate::{
    model::{Digest, ExecutionId, ModuleName, TenantId, id::RunKey},
    store::Error,
};

/// Notes digests that a run needs.
pub(super) fn put(connection: &Connection, run: &RunKey, pins: &[(ModuleName, Digest)]) -> Result<(), Error> {
    let put = "INSERT OR IGNORE INTO pins (tenant, execution, run, module, digest) VALUES (?1, ?2, ?3, ?4, ?5)";
    each(connection, put, run, pins)
}

/// Forgets digests that a run needs no more.
pub(super) fn drop_some(connection: &Connection, run: &RunKey, pins: &[(ModuleName, Digest)]) -> Result<(), Error> {
    let delete = "DELETE FROM pins WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND module = ?4 AND digest = ?5";
    each(connection, delete, run, pins)
}

/// Forgets every digest of a run: one by one, as with timers.
pub(super) fn drop_all(connection: &Connection, run: &RunKey) -> Result<(), Error> {
    let select = "SELECT module, digest FROM pins WHERE tenant = ?1 AND execution = ?2 AND run = ?3";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run];
    let pins: Vec<(ModuleName, Digest)> =
        read_rows(connection, select, key, usize::MAX, |columns| Ok((columns.id()?, columns.id()?)))?;
    drop_some(connection, run, &pins)
}

fn each(connection: &Connection, statement: &str, run: &RunKey, pins: &[(ModuleName, Digest)]) -> Result<(), Error> {
    if pins.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(statement)?;
    for (module, digest) in pins {
        let (tenant, execution) = (run.tenant.as_str(), run.execution.as_str());
        statement.execute(params![tenant, execution, run.run, module.as_str(), digest.as_str()])?;
    }
    Ok(())
}

/// Returns the executions that need a digest, by id.
pub(super) fn holders(
    connection: &Connection,
    tenant: &TenantId,
    module: &ModuleName,
    digest: &Digest,
    after: Option<&ExecutionId>,
    limit: usize,
) -> Result<Vec<ExecutionId>, Error> {
    let select = "SELECT execution FROM pins INDEXED BY pins_of \
                  WHERE tenant = ?1 AND module = ?2 AND digest = ?3 AND execution > ?4 ORDER BY execution LIMIT ?5";
    let after = after.map_or("", ExecutionId::as_str);
    let key = params![tenant.as_str(), module.as_str(), digest.as_str(), after, signed_limit(limit)];
    read_rows(connection, select, key, limit, |columns| columns.id())
}
