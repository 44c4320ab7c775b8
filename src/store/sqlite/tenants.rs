//! Tenants, their policies, and the settings of their modules.

use rusqlite::{Connection, params};

use super::{
    columns::{Columns, read_first, read_rows, signed, signed_limit},
    error::unreadable,
};
use crate::{
    model::{
        ModuleName, TenantId, Timestamp,
        row::{PolicyRow, SettingsRow, TenantRow},
    },
    store::{Batch, Error},
};

const POLICY: &str = "tenant, revision, policy, set_at";
const SETTINGS: &str = "tenant, module, revision, settings, set_at";

/// Writes what a batch says of tenants.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Result<(), Error> {
    for row in &batch.tenants {
        let insert = "INSERT OR IGNORE INTO tenants (tenant, display_name, created_at) VALUES (?1, ?2, ?3)";
        let key = params![row.tenant.as_str(), row.display_name, row.created_at.0];
        connection.prepare_cached(insert)?.execute(key)?;
    }
    for row in &batch.policies {
        let put = format!("INSERT OR REPLACE INTO policies ({POLICY}) VALUES (?1, ?2, ?3, ?4)");
        let policy = serde_json::to_vec(&row.policy).expect("policies hold nothing that JSON cannot");
        let key = params![row.tenant.as_str(), signed(row.revision), policy, row.set_at.0];
        connection.prepare_cached(&put)?.execute(key)?;
    }
    for row in &batch.settings {
        let put = format!("INSERT INTO module_settings ({SETTINGS}) VALUES (?1, ?2, ?3, ?4, ?5)");
        let settings = serde_json::to_vec(&row.settings).expect("settings hold nothing that JSON cannot");
        let (tenant, module) = (row.tenant.as_str(), row.module.as_str());
        let key = params![tenant, module, signed(row.revision), settings, row.set_at.0];
        connection.prepare_cached(&put)?.execute(key)?;
    }
    Ok(())
}

/// Returns a page of tenants, newest first.
pub(super) fn list(
    connection: &Connection,
    after: Option<&(Timestamp, TenantId)>,
    limit: usize,
) -> Result<Vec<TenantRow>, Error> {
    let select = "SELECT tenant, display_name, created_at FROM tenants \
                  WHERE ?1 IS NULL OR (created_at, tenant) < (?1, ?2) \
                  ORDER BY created_at DESC, tenant DESC LIMIT ?3";
    let (at, tenant) = after.map(|(at, tenant)| (at.0, tenant.as_str())).unzip();
    read_rows(connection, select, params![at, tenant, signed_limit(limit)], limit, |columns| {
        Ok(TenantRow {
            tenant: columns.id()?,
            display_name: columns.text_or_none()?.map(str::to_owned),
            created_at: columns.time()?,
        })
    })
}

/// Returns every policy.
pub(super) fn policies(connection: &Connection) -> Result<Vec<PolicyRow>, Error> {
    read_rows(connection, &format!("SELECT {POLICY} FROM policies ORDER BY tenant"), [], usize::MAX, policy)
}

fn policy(columns: &mut Columns<'_>) -> Result<PolicyRow, Error> {
    Ok(PolicyRow {
        tenant: columns.id()?,
        revision: columns.number()?,
        policy: serde_json::from_slice(columns.bytes()?).map_err(unreadable)?,
        set_at: columns.time()?,
    })
}

/// Returns one revision of the settings of a module.
pub(super) fn find_settings(
    connection: &Connection,
    tenant: &TenantId,
    module: &ModuleName,
    revision: u64,
) -> Result<Option<SettingsRow>, Error> {
    let select = format!("SELECT {SETTINGS} FROM module_settings WHERE tenant = ?1 AND module = ?2 AND revision = ?3");
    read_first(connection, &select, params![tenant.as_str(), module.as_str(), signed(revision)], read_settings)
}

/// Returns the newest settings of every module that has any.
pub(super) fn settings(connection: &Connection) -> Result<Vec<SettingsRow>, Error> {
    let select = format!(
        "SELECT {SETTINGS} FROM module_settings s WHERE revision = \
            (SELECT max(n.revision) FROM module_settings n WHERE n.tenant = s.tenant AND n.module = s.module) \
         ORDER BY tenant, module"
    );
    read_rows(connection, &select, [], usize::MAX, read_settings)
}

fn read_settings(columns: &mut Columns<'_>) -> Result<SettingsRow, Error> {
    Ok(SettingsRow {
        tenant: columns.id()?,
        module: columns.id()?,
        revision: columns.number()?,
        settings: serde_json::from_slice(columns.bytes()?).map_err(unreadable)?,
        set_at: columns.time()?,
    })
}
