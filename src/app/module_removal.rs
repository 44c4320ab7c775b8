//! Removes a digest of a module that nothing needs any more.

use super::{App, Error, ErrorCode, modules::not_found};
use crate::{
    model::{Digest, ModuleName, TenantId, row::WorkflowRow},
    store::Batch,
};

/// How many of those that need a digest an answer names.
const NAMED_MAX: usize = 10;
/// How many documents one read takes; each may have a mebibyte.
const PAGE: usize = 16;

impl App {
    /// Removes a digest; refused while an alias or a live execution needs it. The bytes go with the last module that has
    /// them.
    pub async fn delete_module(&self, tenant: &TenantId, name: &str, digest: &str) -> Result<(), Error> {
        let app = &self.inner;
        let (name, digest) = (ModuleName::new(name)?, Digest::new(digest)?);
        let _guard = app.registering.lock().await;
        if self.module_row(tenant, &name, Some(&digest)).await?.is_none() {
            return Err(not_found(&name, Some(&digest)));
        }
        self.must_be_unneeded(tenant, &name, &digest).await?;
        let batch = Batch { modules_drop: vec![(tenant.clone(), name.clone(), digest.clone())], ..Batch::default() };
        app.writer.write(batch).await?;
        app.refresh_facts(tenant).await?;
        // The store looks again in its transaction: a run may have used the digest meanwhile.
        if self.module_row(tenant, &name, Some(&digest)).await?.is_some() {
            self.must_be_unneeded(tenant, &name, &digest).await?;
            return Err(in_use(&name, &digest, "something that ended meanwhile", "aliases", &[]));
        }
        tracing::info!(module = %name, %digest, "a module is removed");
        Ok(())
    }

    async fn must_be_unneeded(&self, tenant: &TenantId, name: &ModuleName, digest: &Digest) -> Result<(), Error> {
        let store = &self.inner.store;
        let aliases = store.list_aliases(tenant).await?;
        let aliases = aliases.iter().filter(|row| row.module == *name && row.digests().contains(&digest));
        let aliases: Vec<String> = aliases.map(|row| row.alias.to_string()).collect();
        if let Some(first) = aliases.first() {
            return Err(in_use(name, digest, &format!("the alias `{first}`"), "aliases", &aliases));
        }
        let executions = store.pinned_by(tenant, name, digest, None, NAMED_MAX).await?;
        let executions: Vec<String> = executions.iter().map(ToString::to_string).collect();
        if let Some(first) = executions.first() {
            return Err(in_use(name, digest, &format!("the execution `{first}`"), "executions", &executions));
        }
        match self.live_workflow_naming(tenant, name, digest).await? {
            Some(row) => {
                let workflow = format!("{} {}", row.name, row.version);
                let by = format!("a live execution of the workflow `{}` `{}`", row.name, row.version);
                Err(in_use(name, digest, &by, "workflows", &[workflow]))
            }
            None => Ok(()),
        }
    }

    /// Finds a document that names the digest itself and has a live execution: a step may still come to it.
    async fn live_workflow_naming(
        &self,
        tenant: &TenantId,
        name: &ModuleName,
        digest: &Digest,
    ) -> Result<Option<WorkflowRow>, Error> {
        let wanted = format!("{name}@{digest}");
        let mut after = None;
        loop {
            let page = self.inner.store.list_workflows(tenant, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(None) };
            after = Some((last.created_at, last.name.clone(), last.version.clone()));
            for row in page.into_iter().filter(|row| row.document.contains(&wanted)) {
                if self.inner.store.workflow_in_use(tenant, &row.name, &row.version).await? {
                    return Ok(Some(row));
                }
            }
        }
    }
}

fn in_use(name: &ModuleName, digest: &Digest, by: &str, kind: &str, all: &[String]) -> Error {
    let message = format!("the module `{name}` `{digest}` is needed by {by}");
    Error::new(ErrorCode::ModuleInUse, message).with_details(&serde_json::json!({ kind: all }))
}
