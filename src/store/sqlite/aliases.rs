//! Aliases of modules, and what each of them named before.

use rusqlite::{Connection, params};

use super::{
    columns::{Columns, read_rows, signed},
    error::unreadable,
};
use crate::{
    model::{Alias, Digest, ModuleName, TenantId, facts::Share, row::AliasRow},
    store::{Batch, Error, MOVES_MAX},
};

/// Writes what a batch says of aliases.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for (tenant, row) in &batch.aliases {
        remember(connection, tenant, row)?;
        put(connection, tenant, row)?;
    }
    for back in &batch.aliases_back {
        let delete = "DELETE FROM alias_moves WHERE tenant = ?1 AND module = ?2 AND alias = ?3 AND number >= ?4";
        let (tenant, module, alias) = (back.tenant.as_str(), back.row.module.as_str(), back.row.alias.as_str());
        connection.prepare_cached(delete)?.execute(params![tenant, module, alias, signed(back.number)])?;
        put(connection, &back.tenant, &back.row)?;
    }
    for (tenant, module, alias) in &batch.aliases_drop {
        for table in ["aliases", "alias_moves"] {
            let delete = format!("DELETE FROM {table} WHERE tenant = ?1 AND module = ?2 AND alias = ?3");
            connection.prepare_cached(&delete)?.execute([tenant.as_str(), module.as_str(), alias.as_str()])?;
        }
    }
    Ok(())
}

fn put(connection: &Connection, tenant: &TenantId, row: &AliasRow) -> Result<(), Error> {
    let put = "INSERT OR REPLACE INTO aliases (tenant, module, alias, digest, split, moved_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (module, alias, digest) = (row.module.as_str(), row.alias.as_str(), row.digest.as_str());
    let key = params![tenant.as_str(), module, alias, digest, split_text(&row.split), row.moved_at.0];
    connection.prepare_cached(put)?.execute(key)?;
    Ok(())
}

/// Keeps what the alias names now, where the new row names something else.
fn remember(connection: &Connection, tenant: &TenantId, row: &AliasRow) -> Result<(), Error> {
    let insert = "INSERT INTO alias_moves (tenant, module, alias, number, digest, split, moved_at) \
         SELECT tenant, module, alias, 1 + coalesce((SELECT max(number) FROM alias_moves \
             WHERE tenant = ?1 AND module = ?2 AND alias = ?3), 0), digest, split, moved_at \
         FROM aliases WHERE tenant = ?1 AND module = ?2 AND alias = ?3 AND (digest <> ?4 OR split IS NOT ?5)";
    let (tenant, module, alias) = (tenant.as_str(), row.module.as_str(), row.alias.as_str());
    let key = params![tenant, module, alias, row.digest.as_str(), split_text(&row.split)];
    if connection.prepare_cached(insert)?.execute(key)? == 0 {
        return Ok(());
    }
    let delete = "DELETE FROM alias_moves WHERE tenant = ?1 AND module = ?2 AND alias = ?3 AND number <= \
         (SELECT max(number) FROM alias_moves WHERE tenant = ?1 AND module = ?2 AND alias = ?3) - ?4";
    let most = i64::try_from(MOVES_MAX).unwrap_or(i64::MAX);
    connection.prepare_cached(delete)?.execute(params![tenant, module, alias, most])?;
    Ok(())
}

/// Forgets of every alias of a module that it named this digest.
pub(super) fn forget(
    connection: &Connection,
    tenant: &TenantId,
    module: &ModuleName,
    digest: &Digest,
) -> Result<(), Error> {
    let delete = "DELETE FROM alias_moves WHERE tenant = ?1 AND module = ?2 \
         AND (digest = ?3 OR instr(split, CAST(?3 AS BLOB)) > 0)";
    connection.prepare_cached(delete)?.execute([tenant.as_str(), module.as_str(), digest.as_str()])?;
    Ok(())
}

/// Returns every alias of a tenant.
pub(super) fn list(connection: &Connection, tenant: &TenantId) -> Result<Vec<AliasRow>, Error> {
    let select = "SELECT module, alias, digest, split, moved_at FROM aliases WHERE tenant = ?1 ORDER BY module, alias";
    read_rows(connection, select, [tenant.as_str()], usize::MAX, read)
}

/// Returns what an alias named before, newest first.
pub(super) fn moves(
    connection: &Connection,
    tenant: &TenantId,
    module: &ModuleName,
    alias: &Alias,
) -> Result<Vec<(u64, AliasRow)>, Error> {
    let select = "SELECT number, module, alias, digest, split, moved_at FROM alias_moves \
                  WHERE tenant = ?1 AND module = ?2 AND alias = ?3 ORDER BY number DESC";
    let key = [tenant.as_str(), module.as_str(), alias.as_str()];
    read_rows(connection, select, key, MOVES_MAX, |columns| Ok((columns.number()?, read(columns)?)))
}

fn read(columns: &mut Columns<'_>) -> Result<AliasRow, Error> {
    Ok(AliasRow {
        module: columns.id()?,
        alias: columns.id()?,
        digest: columns.id()?,
        split: match columns.bytes_or_none()? {
            Some(bytes) => serde_json::from_slice(bytes).map_err(unreadable)?,
            None => Vec::new(),
        },
        moved_at: columns.time()?,
    })
}

fn split_text(split: &[Share]) -> Option<Vec<u8>> {
    (!split.is_empty()).then(|| serde_json::to_vec(split).expect("shares hold nothing that JSON cannot"))
}
