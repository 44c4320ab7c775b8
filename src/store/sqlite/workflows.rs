//! Registered documents and their default versions.

use rusqlite::{Connection, params};

use super::columns::{Columns, read_first, read_rows, signed_limit};
use crate::{
    model::{TenantId, Timestamp, WorkflowName, WorkflowVersion, row::WorkflowRow},
    store::{Batch, Error, WorkflowPut},
};

const COLUMNS: &str = "w.name, w.version, w.definition_hash, w.document, w.created_at";

fn read(columns: &mut Columns<'_>) -> Result<WorkflowRow, Error> {
    Ok(WorkflowRow {
        name: columns.id()?,
        version: columns.id()?,
        definition_hash: columns.id()?,
        document: columns.utf8()?,
        created_at: columns.time()?,
    })
}

/// Writes what a batch says of documents: new ones, those that go, defaults.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for put in &batch.workflows {
        insert(connection, put)?;
    }
    for (tenant, name, version) in &batch.workflows_drop {
        for delete in [
            "DELETE FROM workflows WHERE tenant = ?1 AND name = ?2 AND version = ?3",
            "DELETE FROM workflow_defaults WHERE tenant = ?1 AND name = ?2 AND version = ?3",
        ] {
            connection.prepare_cached(delete)?.execute([tenant.as_str(), name.as_str(), version.as_str()])?;
        }
    }
    for (tenant, name, version) in &batch.defaults {
        let put = "INSERT OR REPLACE INTO workflow_defaults (tenant, name, version) VALUES (?1, ?2, ?3)";
        connection.prepare_cached(put)?.execute([tenant.as_str(), name.as_str(), version.as_str()])?;
    }
    Ok(())
}

fn insert(connection: &Connection, put: &WorkflowPut) -> Result<(), Error> {
    let insert = "INSERT OR IGNORE INTO workflows (tenant, name, version, definition_hash, document, created_at) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(insert)?.execute(params![
        put.tenant.as_str(),
        put.row.name.as_str(),
        put.row.version.as_str(),
        put.row.definition_hash.as_str(),
        put.row.document.as_bytes(),
        put.row.created_at.0,
    ])?;
    Ok(())
}

/// Returns a document; without a version the default one.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantId,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> Result<Option<WorkflowRow>, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM workflows w WHERE w.tenant = ?1 AND w.name = ?2 AND w.version = coalesce(?3, \
            (SELECT d.version FROM workflow_defaults d WHERE d.tenant = ?1 AND d.name = ?2))"
    );
    let key = params![tenant.as_str(), name.as_str(), version.map(WorkflowVersion::as_str)];
    read_first(connection, &select, key, read)
}

/// Returns a page of documents, newest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    after: Option<&(Timestamp, WorkflowName, WorkflowVersion)>,
    limit: usize,
) -> Result<Vec<WorkflowRow>, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM workflows w \
         WHERE w.tenant = ?1 AND (?2 IS NULL OR (w.created_at, w.name, w.version) < (?2, ?3, ?4)) \
         ORDER BY w.created_at DESC, w.name DESC, w.version DESC LIMIT ?5"
    );
    let (at, name, version) = match after {
        Some((at, name, version)) => (Some(at.0), Some(name.as_str()), Some(version.as_str())),
        None => (None, None, None),
    };
    let key = params![tenant.as_str(), at, name, version, signed_limit(limit)];
    read_rows(connection, &select, key, limit, read)
}
