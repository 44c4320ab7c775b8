//! Uploaded components and their bytes, which are stored in pieces and once for all who have the same.

use rusqlite::{Connection, params};

use super::{
    aliases,
    columns::{Columns, read_first, read_rows, signed, signed_limit},
    error::unreadable,
};
use crate::{
    model::{Digest, ModuleName, TenantId, Timestamp, row::ModuleRow},
    store::{Batch, Error, ModulePut},
};

const COLUMNS: &str = "name, digest, size_bytes, tasks, imports, created_at";

fn read(columns: &mut Columns<'_>) -> Result<ModuleRow, Error> {
    Ok(ModuleRow {
        name: columns.id()?,
        digest: columns.id()?,
        size_bytes: columns.number()?,
        tasks: serde_json::from_slice(columns.bytes()?).map_err(unreadable)?,
        imports: serde_json::from_slice(columns.bytes()?).map_err(unreadable)?,
        created_at: columns.time()?,
    })
}

/// Writes what a batch says of modules: new ones, aliases, those that go.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for put in &batch.modules {
        insert(connection, put)?;
    }
    aliases::write(connection, batch)?;
    for (tenant, name, digest) in &batch.modules_drop {
        remove(connection, tenant, name, digest)?;
    }
    Ok(())
}

fn insert(connection: &Connection, put: &ModulePut) -> Result<(), Error> {
    let insert = "INSERT OR IGNORE INTO modules (tenant, name, digest, size_bytes, tasks, imports, created_at) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = &put.row;
    connection.prepare_cached(insert)?.execute(params![
        put.tenant.as_str(),
        row.name.as_str(),
        row.digest.as_str(),
        signed(row.size_bytes),
        serde_json::to_vec(&row.tasks).expect("tasks hold nothing that JSON cannot"),
        serde_json::to_vec(&row.imports).expect("imports are texts"),
        row.created_at.0,
    ])?;
    Ok(())
}

fn remove(connection: &Connection, tenant: &TenantId, name: &ModuleName, digest: &Digest) -> Result<(), Error> {
    let delete = "DELETE FROM modules WHERE tenant = ?1 AND name = ?2 AND digest = ?3 \
         AND NOT EXISTS (SELECT 1 FROM aliases WHERE tenant = ?1 AND module = ?2 \
             AND (digest = ?3 OR instr(split, CAST(?3 AS BLOB)) > 0)) \
         AND NOT EXISTS (SELECT 1 FROM pins WHERE tenant = ?1 AND module = ?2 AND digest = ?3)";
    if connection.prepare_cached(delete)?.execute([tenant.as_str(), name.as_str(), digest.as_str()])? > 0 {
        aliases::forget(connection, tenant, name, digest)?;
    }
    Ok(())
}

/// Returns a page of modules, newest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    name: Option<&ModuleName>,
    after: Option<&(Timestamp, ModuleName, Digest)>,
    limit: usize,
) -> Result<Vec<ModuleRow>, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM modules WHERE tenant = ?1 AND (?2 IS NULL OR name = ?2) \
         AND (?3 IS NULL OR (created_at, name, digest) < (?3, ?4, ?5)) \
         ORDER BY created_at DESC, name DESC, digest DESC LIMIT ?6"
    );
    let (at, after_name, digest) = match after {
        Some((at, name, digest)) => (Some(at.0), Some(name.as_str()), Some(digest.as_str())),
        None => (None, None, None),
    };
    let name = name.map(ModuleName::as_str);
    let key = params![tenant.as_str(), name, at, after_name, digest, signed_limit(limit)];
    read_rows(connection, &select, key, limit, read)
}

/// Returns the bytes of a module that the tenant has.
pub(super) fn content(
    connection: &Connection,
    tenant: &TenantId,
    name: &ModuleName,
    digest: &Digest,
) -> Result<Option<Vec<u8>>, Error> {
    let select = "SELECT size_bytes FROM modules WHERE tenant = ?1 AND name = ?2 AND digest = ?3";
    let key = [tenant.as_str(), name.as_str(), digest.as_str()];
    let size = read_first(connection, select, key, |columns| columns.number::<usize>())?;
    let Some(size) = size else { return Ok(None) };
    let content = bytes_of(connection, digest)?;
    if content.len() != size {
        return Err(unreadable(format_args!("module `{name}` {digest} has {} of {size} bytes", content.len())));
    }
    Ok(Some(content))
}

/// Returns the bytes of a digest, as many as there are.
pub(super) fn bytes_of(connection: &Connection, digest: &Digest) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let mut select = connection.prepare_cached("SELECT bytes FROM module_chunks WHERE digest = ?1 ORDER BY number")?;
    let mut rows = select.query([digest.as_str()])?;
    while let Some(row) = rows.next()? {
        content.extend_from_slice(Columns::of(row).bytes()?);
    }
    Ok(content)
}

/// Returns how many digests a tenant has, and their bytes.
pub(super) fn count(connection: &Connection, tenant: &TenantId) -> Result<(u64, u64), Error> {
    let select = "SELECT count(*), coalesce(sum(size_bytes), 0) FROM modules WHERE tenant = ?1";
    let counted =
        read_first(connection, select, [tenant.as_str()], |columns| Ok((columns.number()?, columns.number()?)))?;
    Ok(counted.unwrap_or_default())
}

/// Returns every tenant that has a module.
pub(super) fn tenants(connection: &Connection) -> Result<Vec<TenantId>, Error> {
    let select = "SELECT DISTINCT tenant FROM modules ORDER BY tenant";
    read_rows(connection, select, [], usize::MAX, |columns| columns.id())
}
