//! Operations on tenants.

use super::{
    App, Error, ErrorCode, cursor,
    view::{CreateTenantRequest, Page, PageRequest, TenantView},
};
use crate::{
    model::{TenantId, Timestamp, row::TenantRow},
    store::Batch,
};

/// The most tenants of a server.
const TENANTS_MAX: usize = 100_000;
/// The longest name for people, in bytes.
const DISPLAY_NAME_BYTES_MAX: usize = 256;

impl App {
    /// Returns the tenant that a request names, where it is there.
    pub fn tenant(&self, name: &str) -> Result<TenantId, Error> {
        let tenant = TenantId::new(name)?;
        if self.inner.directory.knows(&tenant) { Ok(tenant) } else { Err(unknown()) }
    }

    /// Makes a tenant; the flag says whether it is new. The same again is no change.
    pub async fn create_tenant(&self, request: CreateTenantRequest) -> Result<(TenantView, bool), Error> {
        let app = &self.inner;
        let tenant = TenantId::new(&request.tenant)?;
        if let Some(name) = &request.display_name
            && (name.len() > DISPLAY_NAME_BYTES_MAX || name.chars().any(char::is_control))
        {
            let message =
                format!("`display_name` must be at most {DISPLAY_NAME_BYTES_MAX} bytes without control characters");
            return Err(Error::invalid(message));
        }
        // One at a time: two of the same name must not both be first.
        let _guard = app.registering.lock().await;
        if let Some(found) = app.directory.find(&tenant) {
            if found.row.display_name == request.display_name {
                return Ok((view(found.row.clone()), false));
            }
            let message = format!("the tenant `{tenant}` is there with another `display_name`");
            return Err(Error::new(ErrorCode::TenantConflict, message));
        }
        if app.directory.count() >= TENANTS_MAX {
            let message = format!("the server has {TENANTS_MAX} tenants, which is the most");
            return Err(Error::new(ErrorCode::ResourceExhausted, message));
        }
        let row = TenantRow { tenant, display_name: request.display_name, created_at: app.clock.now() };
        app.writer.write(Batch { tenants: vec![row.clone()], ..Batch::default() }).await?;
        app.directory.add(row.clone());
        tracing::info!(tenant = %row.tenant, "a tenant was made");
        Ok((view(row), true))
    }

    /// Lists tenants, newest first.
    pub async fn list_tenants(&self, page: PageRequest) -> Result<Page<TenantView>, Error> {
        let app = &self.inner;
        // The list is the server's own; its cursors are sealed under the tenant that is always there.
        let owner = TenantId::default_tenant();
        let pager = app.cursors.page("tenants", &owner, &page);
        let after = pager.after(|[at, name]| Ok((Timestamp(cursor::number(&at)?), TenantId::new(name)?)))?;
        let rows = app.store.list_tenants(after, pager.reads()).await?;
        Ok(pager.cut(rows, |row| [row.created_at.0.to_string(), row.tenant.to_string()]).map(view))
    }

    /// Returns a tenant.
    pub fn find_tenant(&self, name: &str) -> Result<TenantView, Error> {
        let found = self.inner.directory.find(&TenantId::new(name)?).ok_or_else(unknown)?;
        Ok(view(found.row.clone()))
    }
}

/// The answer about a tenant that is not there, which is the same for one that may not be seen.
pub(super) fn unknown() -> Error {
    Error::new(ErrorCode::NotFound, "there is no such tenant")
}

fn view(row: TenantRow) -> TenantView {
    TenantView { tenant: row.tenant.to_string(), display_name: row.display_name, created_at_ms: row.created_at.0 }
}
