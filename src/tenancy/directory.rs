//! Every tenant in memory, with what it may use.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    model::{
        ModuleName, Policy, TenantId,
        row::{PolicyRow, SettingsRow, TenantRow},
    },
    store::{self, System},
};

/// How many tenants one read takes.
const PAGE: usize = 1_000;

/// The tenants that there are. What is not in it is not there.
#[derive(Debug, Default)]
pub struct Directory(RwLock<HashMap<TenantId, Arc<Tenant>>>);

/// What is known of a tenant: a snapshot, replaced and never changed.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its row.
    pub row: TenantRow,
    /// Its policy; none: it was never set.
    pub policy: Option<Arc<PolicyRow>>,
    /// The newest settings of its modules.
    pub settings: HashMap<ModuleName, Arc<SettingsRow>>,
}

impl Tenant {
    fn new(row: TenantRow) -> Self {
        Self { row, policy: None, settings: HashMap::new() }
    }
}

impl Directory {
    /// Reads every tenant.
    pub async fn read(&self, store: &dyn System) -> Result<(), store::Error> {
        let mut found: HashMap<TenantId, Tenant> = HashMap::new();
        let mut after = None;
        loop {
            let page = store.list_tenants(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_at, last.tenant.clone()));
            found.extend(page.into_iter().map(|row| (row.tenant.clone(), Tenant::new(row))));
        }
        for row in store.policies().await? {
            if let Some(tenant) = found.get_mut(&row.tenant) {
                tenant.policy = Some(Arc::new(row));
            }
        }
        for row in store.settings().await? {
            if let Some(tenant) = found.get_mut(&row.tenant) {
                tenant.settings.insert(row.module.clone(), Arc::new(row));
            }
        }
        *self.write() = found.into_iter().map(|(name, tenant)| (name, Arc::new(tenant))).collect();
        Ok(())
    }

    /// Returns whether the tenant is there.
    pub fn knows(&self, tenant: &TenantId) -> bool {
        self.reading().contains_key(tenant)
    }

    /// Returns what is known of a tenant.
    pub fn find(&self, tenant: &TenantId) -> Option<Arc<Tenant>> {
        self.reading().get(tenant).cloned()
    }

    /// Returns the policy of a tenant: where none was set, the one that every tenant begins with.
    pub fn policy_of(&self, tenant: &TenantId) -> Policy {
        self.find(tenant).and_then(|known| known.policy.as_ref().map(|row| row.policy.clone())).unwrap_or_default()
    }

    /// Returns the newest settings of a module; none: none were set.
    pub fn settings_of(&self, tenant: &TenantId, module: &ModuleName) -> Option<Arc<SettingsRow>> {
        self.find(tenant)?.settings.get(module).cloned()
    }

    /// Returns every tenant with what is known of it.
    pub fn all(&self) -> Vec<(TenantId, Arc<Tenant>)> {
        self.reading().iter().map(|(name, tenant)| (name.clone(), tenant.clone())).collect()
    }

    /// Returns how many tenants there are.
    pub fn count(&self) -> usize {
        self.reading().len()
    }

    /// A tenant was committed.
    pub fn add(&self, row: TenantRow) {
        self.write().entry(row.tenant.clone()).or_insert_with(|| Arc::new(Tenant::new(row)));
    }

    /// A policy was committed.
    pub fn set_policy(&self, row: PolicyRow) {
        self.change(row.tenant.clone(), |tenant| tenant.policy = Some(Arc::new(row)));
    }

    /// Settings were committed.
    pub fn set_settings(&self, row: SettingsRow) {
        self.change(row.tenant.clone(), |tenant| {
            tenant.settings.insert(row.module.clone(), Arc::new(row));
        });
    }

    fn change(&self, name: TenantId, change: impl FnOnce(&mut Tenant)) {
        let mut tenants = self.write();
        if let Some(tenant) = tenants.get_mut(&name) {
            let mut next = Tenant::clone(tenant);
            change(&mut next);
            *tenant = Arc::new(next);
        }
    }

    fn reading(&self) -> RwLockReadGuard<'_, HashMap<TenantId, Arc<Tenant>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<TenantId, Arc<Tenant>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
