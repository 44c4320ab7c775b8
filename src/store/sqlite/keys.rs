//! Answers kept for `Idempotency-Key`s.

use rusqlite::{Connection, params};

use super::columns::{read_first, signed, signed_limit};
use crate::{
    model::{TenantId, Timestamp, row::KeyRow},
    store::Error,
};

/// Keeps answers, each over one of the same scope.
pub(super) fn put(connection: &Connection, keys: &[KeyRow]) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    let put = "INSERT OR REPLACE INTO keys (tenant, scope, request_hash, seq, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut put = connection.prepare_cached(put)?;
    for key in keys {
        put.execute(params![key.tenant.as_str(), key.scope, key.request_hash, signed(key.seq), key.expires_at.0])?;
    }
    Ok(())
}

/// Returns the answer of each scope that has one, unless it has expired at `now`.
pub(super) fn find(
    connection: &Connection,
    scopes: &[(TenantId, String)],
    now: Timestamp,
) -> Result<Vec<Option<KeyRow>>, Error> {
    let select = "SELECT tenant, scope, request_hash, seq, expires_at FROM keys \
                  WHERE tenant = ?1 AND scope = ?2 AND expires_at > ?3";
    let find_one = |(tenant, scope): &(TenantId, String)| {
        read_first(connection, select, params![tenant.as_str(), scope, now.0], |columns| {
            Ok(KeyRow {
                tenant: columns.id()?,
                scope: columns.text()?.to_owned(),
                request_hash: columns.text()?.to_owned(),
                seq: columns.number()?,
                expires_at: columns.time()?,
            })
        })
    };
    scopes.iter().map(find_one).collect()
}

/// Removes answers that have expired at `now`; returns how many.
pub(super) fn prune(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize, Error> {
    let delete = "DELETE FROM keys WHERE (tenant, scope) IN \
                  (SELECT tenant, scope FROM keys WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
    Ok(connection.prepare_cached(delete)?.execute(params![now.0, signed_limit(limit)])?)
}
