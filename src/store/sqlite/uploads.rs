//! Uploads that are not modules yet, and the pieces of their bytes.

use rusqlite::{Connection, params};

use super::columns::{Columns, read_rows, signed};
use crate::{
    model::{Digest, TenantId, row::UploadRow},
    store::{Batch, Error},
};

const COLUMNS: &str = "name, digest, size_bytes, reason, created_at";

fn read(columns: &mut Columns<'_>) -> Result<UploadRow, Error> {
    Ok(UploadRow {
        name: columns.id()?,
        digest: columns.id()?,
        size_bytes: columns.number()?,
        reason: columns.text_or_none()?.map(str::to_owned),
        created_at: columns.time()?,
    })
}

/// Writes what a batch says of uploads and pieces; before its modules.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for (tenant, row) in &batch.uploads {
        let put = "INSERT OR REPLACE INTO uploads (tenant, name, digest, size_bytes, reason, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.prepare_cached(put)?.execute(params![
            tenant.as_str(),
            row.name.as_str(),
            row.digest.as_str(),
            signed(row.size_bytes),
            row.reason,
            row.created_at.0,
        ])?;
    }
    for chunk in &batch.chunks {
        let insert = "INSERT OR IGNORE INTO module_chunks (digest, number, bytes) VALUES (?1, ?2, ?3)";
        connection.prepare_cached(insert)?.execute(params![chunk.digest.as_str(), chunk.number, &chunk.bytes[..]])?;
    }
    Ok(())
}

/// Removes what a batch says that goes, and the bytes that nobody needs any more; after its modules.
pub(super) fn remove(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for (tenant, name, digest) in &batch.uploads_drop {
        let delete = "DELETE FROM uploads WHERE tenant = ?1 AND name = ?2 AND digest = ?3";
        connection.prepare_cached(delete)?.execute([tenant.as_str(), name.as_str(), digest.as_str()])?;
    }
    let refused = batch.uploads.iter().filter(|(_, row)| row.reason.is_some()).map(|(_, row)| &row.digest);
    let gone = batch.uploads_drop.iter().chain(&batch.modules_drop).map(|(_, _, digest)| digest);
    for digest in gone.chain(refused) {
        forget(connection, digest)?;
    }
    Ok(())
}

/// Removes the bytes of a digest that no module and no upload needs.
fn forget(connection: &Connection, digest: &Digest) -> Result<(), Error> {
    let delete = "DELETE FROM module_chunks WHERE digest = ?1 \
                  AND NOT EXISTS (SELECT 1 FROM modules WHERE digest = ?1) \
                  AND NOT EXISTS (SELECT 1 FROM uploads WHERE digest = ?1 AND reason IS NULL)";
    connection.prepare_cached(delete)?.execute([digest.as_str()])?;
    Ok(())
}

/// Removes bytes that no module and no upload needs: an end of the process left them. Returns how many pieces.
pub(super) fn sweep(connection: &Connection) -> Result<usize, Error> {
    let delete = "DELETE FROM module_chunks WHERE digest NOT IN (SELECT digest FROM modules) \
                  AND digest NOT IN (SELECT digest FROM uploads WHERE reason IS NULL)";
    Ok(connection.execute(delete, [])?)
}

/// Returns the uploads of a tenant, by name and digest.
pub(super) fn list(connection: &Connection, tenant: &TenantId) -> Result<Vec<UploadRow>, Error> {
    let select = format!("SELECT {COLUMNS} FROM uploads WHERE tenant = ?1 ORDER BY name, digest");
    read_rows(connection, &select, [tenant.as_str()], usize::MAX, read)
}

/// Returns the uploads of all tenants that are compiling.
pub(super) fn compiling(connection: &Connection) -> Result<Vec<(TenantId, UploadRow)>, Error> {
    let select = format!("SELECT {COLUMNS}, tenant FROM uploads WHERE reason IS NULL ORDER BY created_at");
    read_rows(connection, &select, [], usize::MAX, |columns| {
        let row = read(columns)?;
        Ok((columns.id()?, row))
    })
}
