//! Operations on modules.

use bytes::Bytes;

use super::{
    App, Error, ErrorCode, Inner, ambiguity, cursor,
    view::{ModuleView, Page, PageRequest},
};
use crate::{
    model::{
        Alias, Digest, Failure, ModuleName, TenantId, Timestamp, code,
        facts::TaskSpec,
        row::{AliasRow, ModuleRow},
    },
    sandbox::Rejected,
    store::{Batch, ModulePut},
};

impl App {
    /// Takes in a component: examined, compiled, asked what it does, stored, and named `live`. The flag says whether the
    /// digest is new under this name.
    pub async fn upload_module(
        &self,
        tenant: &TenantId,
        name: &str,
        content: Bytes,
    ) -> Result<(ModuleView, bool), Error> {
        let app = &self.inner;
        let name = ModuleName::new(name)?;
        let digest = Digest::of(&content);
        let found = self.module_row(tenant, &name, Some(&digest)).await?;
        let (row, created) = match found {
            Some(row) => (row, false),
            None => (self.examine(tenant, &name, &content).await?, true),
        };
        let _guard = app.registering.lock().await;
        let mut batch = Batch::default();
        if created {
            batch.modules.push(ModulePut { tenant: tenant.clone(), row: row.clone(), content });
        }
        let before = self.named_by(tenant, &name, &Alias::live());
        let clash = self.clash(tenant, &name, &row.tasks);
        let is_live = app.tenants.facts(tenant).modules.get(&name).and_then(|aliases| aliases.get(&Alias::live()))
            == Some(&digest);
        if clash.is_none() && !is_live {
            let alias = AliasRow {
                module: name.clone(),
                alias: Alias::live(),
                digest: digest.clone(),
                split: Vec::new(),
                moved_at: app.clock.now(),
            };
            batch.aliases.push((tenant.clone(), alias));
        }
        if !batch.is_empty() {
            app.writer.write(batch).await?;
            app.tenants.refresh(&*app.store, tenant).await?;
        }
        if let Some(clash) = clash {
            return Err(
                Error::new(ErrorCode::TaskAmbiguous, clash).with_details(&serde_json::json!({ "digest": digest }))
            );
        }
        tracing::info!(module = %name, %digest, created, "a module is live");
        let warnings = self.broken_contracts(tenant, (&name, &Alias::live()), &before, &[digest]).await?;
        Ok((ModuleView { warnings, ..self.module_view(tenant, row) }, created))
    }

    async fn examine(&self, tenant: &TenantId, name: &ModuleName, content: &Bytes) -> Result<ModuleRow, Error> {
        let inspected = self.inner.sandbox.inspect(tenant, content.clone()).await;
        let inspected = inspected.map_err(refused)?;
        Ok(ModuleRow {
            name: name.clone(),
            digest: inspected.module.digest().clone(),
            size_bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
            tasks: inspected.tasks,
            imports: inspected.imports,
            created_at: self.inner.clock.now(),
        })
    }

    /// Says which other live module, or that a built-in, describes one of the tasks.
    fn clash(&self, tenant: &TenantId, name: &ModuleName, tasks: &[TaskSpec]) -> Option<String> {
        let clash = ambiguity::clash(&self.inner.tenants.facts(tenant), name, tasks)?;
        Some(format!("{clash}; the module was kept but is not live"))
    }

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

    /// Returns one module: the digest asked for, else the live one, else the newest.
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
        let row = self.module_row(tenant, &name, asked.as_ref().or(live.as_ref())).await?;
        let row = row.ok_or_else(|| not_found(&name, asked.as_ref()))?;
        Ok(self.module_view(tenant, row))
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

    fn module_view(&self, tenant: &TenantId, row: ModuleRow) -> ModuleView {
        let facts = self.inner.tenants.facts(tenant);
        let aliases = facts.modules.get(&row.name).into_iter().flatten();
        let aliases = aliases.map(|(alias, _)| alias).filter(|alias| facts.names(&row.name, alias, &row.digest));
        ModuleView {
            name: row.name.to_string(),
            digest: row.digest.to_string(),
            size_bytes: row.size_bytes,
            state: "ready".to_owned(),
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

/// A component that is too large, or that could not be looked at now, is no bad component.
fn refused(rejected: Rejected) -> Error {
    match rejected {
        Rejected::TooLarge { .. } => Error::new(ErrorCode::PayloadTooLarge, rejected.to_string()),
        Rejected::Closed => Error::new(ErrorCode::Unavailable, "the server is stopping").retry_after(1_000),
        Rejected::Internal => Error::internal(rejected),
        _ => Error::new(ErrorCode::ModuleRejected, rejected.to_string()),
    }
}

pub(super) fn not_found(name: &ModuleName, digest: Option<&Digest>) -> Error {
    let digest = digest.map(|digest| format!(" with the digest `{digest}`")).unwrap_or_default();
    Error::new(ErrorCode::ModuleNotFound, format!("there is no module `{name}`{digest}"))
}
