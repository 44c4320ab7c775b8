//! Facts of each tenant: shared snapshots, made anew when a module or alias changes.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    model::{
        Alias, Facts, TenantId,
        facts::{Builtin, Limits},
        row::{AliasRow, ModuleRow},
    },
    store::{self, System},
    tenancy::Directory,
};

/// How many modules of a tenant one read takes.
const PAGE: usize = 500;

/// Facts by tenant.
pub(super) struct Tenants {
    facts: RwLock<HashMap<TenantId, Arc<Facts>>>,
    empty: Arc<Facts>,
}

impl Tenants {
    pub(super) fn new(builtin: Option<Builtin>, limits: Limits) -> Self {
        Self { facts: RwLock::default(), empty: Arc::new(Facts { builtin, limits, ..Facts::default() }) }
    }

    /// Returns the snapshot of a tenant.
    pub(super) fn facts(&self, tenant: &TenantId) -> Arc<Facts> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        facts.get(tenant).unwrap_or(&self.empty).clone()
    }

    /// Reads a tenant's modules and aliases; what is known of it beside them comes from the directory.
    pub(super) async fn refresh(
        &self,
        store: &dyn System,
        directory: &Directory,
        tenant: &TenantId,
    ) -> Result<(), store::Error> {
        let mut facts = (*self.empty).clone();
        if let Some(known) = directory.find(tenant) {
            facts.shadow_builtins = known.policy.as_ref().is_some_and(|row| row.policy.granted.shadow_builtins);
            facts.settings = known.settings.iter().map(|(name, row)| (name.clone(), row.revision)).collect();
        }
        let mut after = None;
        loop {
            let page = store.list_modules(tenant, None, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_at, last.name.clone(), last.digest.clone()));
            for module in page {
                describe(&mut facts, module);
            }
        }
        for alias in store.list_aliases(tenant).await? {
            point(&mut facts, alias);
        }
        self.facts.write().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), Arc::new(facts));
        Ok(())
    }
}

fn describe(facts: &mut Facts, module: ModuleRow) {
    facts.described.insert((module.name, module.digest), module.tasks.into());
}

fn point(facts: &mut Facts, alias: AliasRow) {
    if alias.alias == Alias::live()
        && let Some(tasks) = facts.described.get(&(alias.module.clone(), alias.digest.clone()))
    {
        for task in tasks.iter() {
            facts.live.insert(task.name.clone(), alias.module.clone());
        }
    }
    if !alias.split.is_empty() {
        facts.splits.insert((alias.module.clone(), alias.alias.clone()), alias.split);
    }
    facts.modules.entry(alias.module).or_default().insert(alias.alias, alias.digest);
}
