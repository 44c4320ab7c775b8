//! Uploaded components, their aliases, and their bytes, which are stored in pieces and once for all who have the same.

use rusqlite::{Connection, params};

use super::{
    columns::{Columns, read_first, read_rows, signed, signed_limit},
    error::unreadable,
};
use crate::{
    model::{
        Alias, Digest, ModuleName, TenantId, Timestamp,
        row::{AliasRow, ModuleRow},
    },
    store::{Batch, Error, ModulePut},
};

/// The size of a piece. SQLite reads and writes a value as a whole; this bounds what it holds at once.
const CHUNK_BYTES: usize = 256 * 1024;

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
    for (tenant, row) in &batch.aliases {
        let put =
            "INSERT OR REPLACE INTO aliases (tenant, module, alias, digest, moved_at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let (module, alias, digest) = (row.module.as_str(), row.alias.as_str(), row.digest.as_str());
        connection.prepare_cached(put)?.execute(params![tenant.as_str(), module, alias, digest, row.moved_at.0])?;
    }
    for (tenant, module, alias) in &batch.aliases_drop {
        let delete = "DELETE FROM aliases WHERE tenant = ?1 AND module = ?2 AND alias = ?3";
        connection.prepare_cached(delete)?.execute([tenant.as_str(), module.as_str(), alias.as_str()])?;
    }
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
    let stored = "SELECT 1 FROM module_chunks WHERE digest = ?1 LIMIT 1";
    if connection.prepare_cached(stored)?.exists([row.digest.as_str()])? {
        return Ok(());
    }
    let mut insert =
        connection.prepare_cached("INSERT INTO module_chunks (digest, number, bytes) VALUES (?1, ?2, ?3)")?;
    for (number, chunk) in (0i64..).zip(put.content.chunks(CHUNK_BYTES)) {
        insert.execute(params![row.digest.as_str(), number, chunk])?;
    }
    Ok(())
}

fn remove(connection: &Connection, tenant: &TenantId, name: &ModuleName, digest: &Digest) -> Result<(), Error> {
    let delete = "DELETE FROM modules WHERE tenant = ?1 AND name = ?2 AND digest = ?3";
    connection.prepare_cached(delete)?.execute([tenant.as_str(), name.as_str(), digest.as_str()])?;
    let delete = "DELETE FROM module_chunks WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM modules WHERE digest = ?1)";
    connection.prepare_cached(delete)?.execute([digest.as_str()])?;
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

/// Returns every alias of a tenant.
pub(super) fn list_aliases(connection: &Connection, tenant: &TenantId) -> Result<Vec<AliasRow>, Error> {
    let select = "SELECT module, alias, digest, moved_at FROM aliases WHERE tenant = ?1 ORDER BY module, alias";
    read_rows(connection, select, [tenant.as_str()], usize::MAX, |columns| {
        Ok(AliasRow {
            module: columns.id::<ModuleName>()?,
            alias: columns.id::<Alias>()?,
            digest: columns.id()?,
            moved_at: columns.time()?,
        })
    })
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
    let mut content = Vec::new();
    let mut select = connection.prepare_cached("SELECT bytes FROM module_chunks WHERE digest = ?1 ORDER BY number")?;
    let mut rows = select.query([digest.as_str()])?;
    while let Some(row) = rows.next()? {
        content.extend_from_slice(Columns::of(row).bytes()?);
    }
    if content.len() != size {
        return Err(unreadable(format_args!("module `{name}` {digest} has {} of {size} bytes", content.len())));
    }
    Ok(Some(content))
}

/// Returns how many digests a tenant has, and their bytes.
pub(super) fn count(connection: &Connection, tenant: &TenantId) -> Result<(u64, u64), Error> {
    let select = "SELECT count(*), coalesce(sum(size_bytes), 0) FROM modules WHERE tenant = ?1";
    let counted = read_first(connection, select, [tenant.as_str()], |columns| Ok((columns.number()?, columns.number()?)))?;
    Ok(counted.unwrap_or_default())
}

/// Returns every tenant that has a module.
pub(super) fn tenants(connection: &Connection) -> Result<Vec<TenantId>, Error> {
    let select = "SELECT DISTINCT tenant FROM modules ORDER BY tenant";
    read_rows(connection, select, [], usize::MAX, |columns| columns.id())
}
