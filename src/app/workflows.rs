//! Operations on registered documents.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::MutexGuard;

use super::{
    App, Error, ErrorCode, cursor,
    definitions::unknown_version,
    view::{Page, PageRequest, WorkflowRegistered, WorkflowView},
};
use crate::{
    model::{Payload, TenantId, Timestamp, WorkflowName, WorkflowVersion, row::WorkflowRow},
    store::{Batch, WorkflowPut},
    workflow::{self, Definition, Kind},
};

/// The most problems that an answer lists.
const PROBLEMS_MAX: usize = 200;

impl App {
    /// Registers a document; the same content again is no change.
    pub async fn register_workflow(
        &self,
        tenant: &TenantId,
        document: &[u8],
        make_default: bool,
    ) -> Result<WorkflowRegistered, Error> {
        let app = &self.inner;
        let text = document.to_vec();
        let parsed = tokio::task::spawn_blocking(move || workflow::parse(&text)).await.map_err(Error::internal)?;
        let parsed = parsed.map_err(|problems| {
            let count = problems.len();
            let shown: Vec<_> = problems.into_iter().take(PROBLEMS_MAX).collect();
            let message = format!("the document has {count} problem{}", if count == 1 { "" } else { "s" });
            Error::new(ErrorCode::InvalidIr, message).with_details(&serde_json::json!({ "problems": shown }))
        })?;
        let definition = Arc::new(parsed.definition);
        let (name, version) = (definition.name.clone(), definition.version.clone());
        // One registration at a time: two of the same version must not both be first.
        let _guard = app.registering.lock().await;
        let found = app.store.find_workflow(tenant, &name, Some(&version)).await?;
        if let Some(found) = &found
            && found.definition_hash != definition.hash
        {
            let message = format!("the workflow `{name}` `{version}` is registered with other content");
            return Err(Error::new(ErrorCode::WorkflowConflict, message)
                .with_details(&serde_json::json!({ "registered": found.definition_hash, "sent": definition.hash })));
        }
        let created = found.is_none();
        let mut batch = Batch::default();
        if created {
            let row = WorkflowRow {
                name: name.clone(),
                version: version.clone(),
                definition_hash: definition.hash.clone(),
                document: parsed.document.to_string(),
                created_at: app.clock.now(),
            };
            batch.workflows.push(WorkflowPut { tenant: tenant.clone(), row });
        }
        let first = app.store.find_workflow(tenant, &name, None).await?.is_none();
        if make_default || first {
            batch.defaults.push((tenant.clone(), name.clone(), version.clone()));
        }
        if !batch.is_empty() {
            app.writer.write(batch).await?;
        }
        app.default_versions.forget(tenant, &name);
        app.definitions.keep(tenant, definition.clone());
        Ok(WorkflowRegistered {
            name: name.to_string(),
            version: version.to_string(),
            definition_hash: definition.hash.to_string(),
            created,
        })
    }

    /// Lists registered documents, newest first.
    pub async fn list_workflows(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<WorkflowView>, Error> {
        let app = &self.inner;
        let pager = app.cursors.page("workflows", tenant, &page);
        let after = pager.after(|[at, name, version]| {
            Ok((Timestamp(cursor::number(&at)?), WorkflowName::new(name)?, WorkflowVersion::new(version)?))
        })?;
        let rows = app.store.list_workflows(tenant, after, pager.reads()).await?;
        let Page { items: rows, next_cursor } =
            pager.cut(rows, |row| [row.created_at.0.to_string(), row.name.to_string(), row.version.to_string()]);
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            items.push(view(&*app.definition(tenant, &row.name, &row.version).await?));
        }
        Ok(Page { items, next_cursor })
    }

    /// Returns a registered document; without a version the default one.
    pub async fn find_workflow(&self, tenant: &TenantId, name: &str, version: Option<&str>) -> Result<Payload, Error> {
        let name = WorkflowName::new(name)?;
        let version = version.map(WorkflowVersion::new).transpose()?;
        let row = self.inner.store.find_workflow(tenant, &name, version.as_ref()).await?;
        let row = row.ok_or_else(|| match &version {
            Some(version) => unknown_version(&name, version),
            None => unknown(&name),
        })?;
        Ok(Payload::trusted(&row.document))
    }

    /// Sets what a start without a version uses.
    pub async fn set_default_workflow(&self, tenant: &TenantId, name: &str, version: &str) -> Result<(), Error> {
        let app = &self.inner;
        let (name, version, _guard) = self.registered(tenant, name, version).await?;
        let batch = Batch { defaults: vec![(tenant.clone(), name.clone(), version)], ..Batch::default() };
        app.writer.write(batch).await?;
        app.default_versions.forget(tenant, &name);
        Ok(())
    }

    /// Removes a document that no live run uses.
    pub async fn delete_workflow(&self, tenant: &TenantId, name: &str, version: &str) -> Result<(), Error> {
        let app = &self.inner;
        let (name, version, _guard) = self.registered(tenant, name, version).await?;
        if app.store.workflow_in_use(tenant, &name, &version).await? {
            let message = format!("an execution of the workflow `{name}` `{version}` is not terminal");
            return Err(Error::new(ErrorCode::WorkflowInUse, message));
        }
        let default = app.store.find_workflow(tenant, &name, None).await?;
        if default.is_some_and(|row| row.version == version) && self.has_other_version(tenant, &name, &version).await? {
            let message =
                format!("`{version}` is the default version of the workflow `{name}`; move the default first");
            return Err(Error::new(ErrorCode::WorkflowInUse, message));
        }
        let batch = Batch { workflows_drop: vec![(tenant.clone(), name.clone(), version.clone())], ..Batch::default() };
        app.writer.write(batch).await?;
        app.default_versions.forget(tenant, &name);
        app.definitions.forget(tenant, &name, &version);
        Ok(())
    }

    /// Reads the name of a version, which must be registered and stays so as long as the guard is there.
    async fn registered(
        &self,
        tenant: &TenantId,
        name: &str,
        version: &str,
    ) -> Result<(WorkflowName, WorkflowVersion, MutexGuard<'_, ()>), Error> {
        let app = &self.inner;
        let name = WorkflowName::new(name)?;
        let version = WorkflowVersion::new(version)?;
        let guard = app.registering.lock().await;
        let found = app.store.find_workflow(tenant, &name, Some(&version)).await?;
        found.ok_or_else(|| unknown_version(&name, &version))?;
        Ok((name, version, guard))
    }

    async fn has_other_version(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: &WorkflowVersion,
    ) -> Result<bool, Error> {
        let mut after = None;
        loop {
            let page = self.inner.store.list_workflows(tenant, after, 500).await?;
            if page.iter().any(|row| row.name == *name && row.version != *version) {
                return Ok(true);
            }
            match page.last() {
                Some(last) => after = Some((last.created_at, last.name.clone(), last.version.clone())),
                None => return Ok(false),
            }
        }
    }

    /// Returns the version that a start without one uses.
    pub(super) async fn default_version(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
    ) -> Result<WorkflowVersion, Error> {
        let app = &self.inner;
        if let Some(version) = app.default_versions.get(tenant, name) {
            return Ok(version);
        }
        // Read and kept under the lock of registrations, so that an older answer cannot be kept over a newer one.
        let _guard = app.registering.lock().await;
        let row = app.store.find_workflow(tenant, name, None).await?.ok_or_else(|| unknown(name))?;
        app.default_versions.keep(tenant, name, &row.version);
        Ok(row.version)
    }
}

fn unknown(name: &WorkflowName) -> Error {
    Error::new(ErrorCode::WorkflowNotFound, format!("there is no workflow `{name}`"))
}

fn view(definition: &Definition) -> WorkflowView {
    let tasks: BTreeSet<String> = definition
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            Kind::Task(task) => Some(task.task.to_string()),
            Kind::Compute(_) | Kind::Sleep(_) | Kind::Await(_) => None,
        })
        .collect();
    WorkflowView {
        name: definition.name.to_string(),
        version: definition.version.to_string(),
        description: definition.description.clone(),
        definition_hash: definition.hash.to_string(),
        steps: definition.plan.steps().iter().map(|step| step.id.to_string()).collect(),
        tasks: tasks.into_iter().collect(),
    }
}
