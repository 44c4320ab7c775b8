//! Operations on modules.

use bytes::Bytes;

use super::{
    App, Error, ErrorCode, Inner, cursor,
    view::{ModuleView, Page, PageRequest},
};
use crate::model::{Alias, Digest, Failure, ModuleName, TenantId, Timestamp, code, row::ModuleRow};

impl App {
    /// Lists modules, newest first.
    pub async fn list_modules(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<ModuleView>, Error> {
        let app = &self.inner;
        let pager = app.cursors.page("modules", tenant, &page);
        let after = pager.after(|[at, name, digest]| {
            Ok((Timestamp(cursor::number(&at)?), ModuleName::new(name)?, Digest::new(digest)?))
        })?;
        let rows = app.store.list_modules(tenant, None, after, pager.reads()).await?;
        let page = pager.cut(rows, |row| [row.created_at.0.to_string(), row.name.to_string(), row.digest.to_string()]);
        Ok(page.map(|row| self.module_view(tenant, row)))
    }

    /// Returns one module: the digest asked for, else the live one, else the newest. Where there is none, an upload that is
    /// to be one.
    pub async fn find_module(&self, tenant: &TenantId, name: &str, digest: Option<&str>) -> Result<ModuleView, Error> {
        let name = ModuleName::new(name)?;
        let asked = digest.map(Digest::new).transpose()?;
        let live = self
            .inner
            .tenants
            .facts(tenant)
            .modules
            .get(&name)
            .and_then(|aliases| aliases.get(&Alias::live()).cloned());
        if let Some(row) = self.module_row(tenant, &name, asked.as_ref().or(live.as_ref())).await? {
            return Ok(self.module_view(tenant, row));
        }
        let uploads = self.inner.store.list_uploads(tenant).await?.into_iter();
        let meant = uploads.filter(|row| row.name == name && asked.as_ref().is_none_or(|asked| row.digest == *asked));
        let upload = meant.max_by_key(|row| row.created_at).ok_or_else(|| not_found(&name, asked.as_ref()))?;
        Ok(ModuleView::of_upload(upload))
    }

    /// Returns the bytes of a module.
    pub async fn module_content(&self, tenant: &TenantId, name: &str, digest: &str) -> Result<Bytes, Error> {
        let name = ModuleName::new(name)?;
        let digest = Digest::new(digest)?;
        let content = self.inner.store.module_content(tenant, &name, &digest).await?;
        content.map(Bytes::from).ok_or_else(|| not_found(&name, Some(&digest)))
    }

    /// Finds a digest under a name; without a digest the newest.
    pub(super) async fn module_row(
        &self,
        tenant: &TenantId,
        name: &ModuleName,
        digest: Option<&Digest>,
    ) -> Result<Option<ModuleRow>, Error> {
        let mut after = None;
        loop {
            let page = self.inner.store.list_modules(tenant, Some(name), after, 500).await?;
            let Some(last) = page.last() else { return Ok(None) };
            after = Some((last.created_at, last.name.clone(), last.digest.clone()));
            let wanted = |row: &ModuleRow| digest.is_none_or(|digest| row.digest == *digest);
            if let Some(row) = page.into_iter().find(wanted) {
                return Ok(Some(row));
            }
        }
    }

    pub(super) fn module_view(&self, tenant: &TenantId, row: ModuleRow) -> ModuleView {
        let facts = self.inner.tenants.facts(tenant);
        let aliases = facts.modules.get(&row.name).into_iter().flatten();
        let aliases =
            aliases.map(|(alias, _)| alias).filter(|alias| facts.all_named(&row.name, alias).contains(&&row.digest));
        ModuleView {
            name: row.name.to_string(),
            digest: row.digest.to_string(),
            size_bytes: row.size_bytes,
            state: "ready".to_owned(),
            reason: None,
            tasks: row.tasks,
            imports: row.imports,
            aliases: aliases.map(ToString::to_string).collect(),
            created_at_ms: row.created_at.0,
            warnings: Vec::new(),
        }
    }
}

impl Inner {
    /// Returns the bytes of a digest that one of the tenant's modules has, or the built-in's.
    pub(super) async fn module_bytes(&self, tenant: &TenantId, digest: &Digest) -> Result<Bytes, Failure> {
        let facts = self.tenants.facts(tenant);
        if facts.builtin.as_ref().is_some_and(|builtin| builtin.digest == *digest) {
            return Ok(self.settings.builtin.clone());
        }
        let gone = || Failure::engine(code::MODULE_NOT_FOUND, format!("the module `{digest}` is not there any more"));
        let (name, _) = facts.described.keys().find(|(_, other)| other == digest).ok_or_else(gone)?;
        match self.store.module_content(tenant, name, digest).await {
            Ok(content) => content.map(Bytes::from).ok_or_else(gone),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, %digest, "a module cannot be read");
                Err(Failure::sandbox(code::INTERNAL, "the module cannot be read now"))
            }
        }
    }
}

pub(super) fn not_found(name: &ModuleName, digest: Option<&Digest>) -> Error {
    let digest = digest.map(|digest| format!(" with the digest `{digest}`")).unwrap_or_default();
    Error::new(ErrorCode::ModuleNotFound, format!("there is no module `{name}`{digest}"))
}
