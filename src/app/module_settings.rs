//! Operations on the settings of modules.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{App, Error, ErrorCode, modules::not_found, policies::wrong, view::ModuleSettingsView};
use crate::{
    model::{ModuleName, ModuleSettings, TaskName, TenantId, row::SettingsRow},
    store::Batch,
    tenancy::{beyond, read_settings, unknown_tasks},
};

/// The most revisions of a module's settings. All are kept, because runs are pinned to them.
const REVISIONS_MAX: u64 = 10_000;
/// How many versions of a module are read at a time.
const PAGE: usize = 500;

impl App {
    /// Returns the newest settings of a module.
    pub async fn find_module_settings(&self, tenant: &TenantId, name: &str) -> Result<ModuleSettingsView, Error> {
        let name = ModuleName::new(name)?;
        self.must_be_there(tenant, &name).await?;
        Ok(match self.inner.directory.settings_of(tenant, &name) {
            Some(row) => view(&name, row.revision, row.settings.clone()),
            None => view(&name, 0, ModuleSettings::default()),
        })
    }

    /// Sets the settings of a module: a new revision, which runs that use the module from then on are pinned to. The same
    /// again is no change.
    pub async fn set_module_settings(
        &self,
        tenant: &TenantId,
        name: &str,
        request: &Value,
    ) -> Result<ModuleSettingsView, Error> {
        let app = &self.inner;
        let name = ModuleName::new(name)?;
        let settings = read_settings(request).map_err(|problems| wrong("settings", &problems))?;
        let _guard = app.registering.lock().await;
        let known = self.tasks_of(tenant, &name).await?;
        let before = app.directory.settings_of(tenant, &name);
        let limits = app.sandbox.limits();
        let mut problems =
            beyond(&app.directory.policy_of(tenant), &settings, limits.memory_bytes as u64, limits.cpu.0);
        problems.extend(unknown_tasks(&settings, &known));
        if !problems.is_empty() {
            return Err(wrong("settings", &problems));
        }
        let revision = before.as_ref().map_or(0, |row| row.revision);
        if before.map_or_else(|| settings == ModuleSettings::default(), |row| row.settings == settings) {
            return Ok(view(&name, revision, settings));
        }
        if revision >= REVISIONS_MAX {
            let message = format!("the settings of `{name}` were changed {REVISIONS_MAX} times, which is the most");
            return Err(Error::new(ErrorCode::ResourceExhausted, message));
        }
        let row = SettingsRow {
            tenant: tenant.clone(),
            module: name.clone(),
            revision: revision + 1,
            settings,
            set_at: app.clock.now(),
        };
        app.writer.write(Batch { settings: vec![row.clone()], ..Batch::default() }).await?;
        app.directory.set_settings(row.clone());
        app.refresh_facts(tenant).await?;
        tracing::info!(module = %name, revision = row.revision, "settings of a module were set");
        Ok(view(&name, row.revision, row.settings))
    }

    /// Returns the tasks that any version of a module that is there describes.
    async fn tasks_of(&self, tenant: &TenantId, name: &ModuleName) -> Result<BTreeSet<TaskName>, Error> {
        let (mut tasks, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.inner.store.list_modules(tenant, Some(name), after.clone(), PAGE).await?;
            match page.last() {
                Some(last) => after = Some((last.created_at, last.name.clone(), last.digest.clone())),
                None if after.is_none() => return Err(not_found(name, None)),
                None => return Ok(tasks),
            }
            tasks.extend(page.into_iter().flat_map(|row| row.tasks).map(|task| task.name));
        }
    }

    async fn must_be_there(&self, tenant: &TenantId, name: &ModuleName) -> Result<(), Error> {
        match self.inner.store.list_modules(tenant, Some(name), None, 1).await?.is_empty() {
            true => Err(not_found(name, None)),
            false => Ok(()),
        }
    }
}

fn view(name: &ModuleName, revision: u64, settings: ModuleSettings) -> ModuleSettingsView {
    ModuleSettingsView { name: name.to_string(), revision, settings }
}
