//! What an attempt may use, is told and may reach: the least of what server, tenant and module say.

use std::sync::Arc;

use super::Inner;
use crate::{
    model::{
        EgressPolicy, Failure, Millis, TaskName, TenantId, code,
        policy::ModuleCaps,
        row::{PolicyRow, SettingsRef, SettingsRow},
    },
    sandbox::{Grant, Limits},
};

/// What one attempt is given.
pub(super) struct Allowance {
    pub(super) limits: Limits,
    pub(super) grant: Arc<Grant>,
    /// Whether what the host answers is kept.
    pub(super) recorded: bool,
}

impl Inner {
    /// Returns what an attempt of a tenant at `task` is given: by its policy of now, and by the settings that its run is pinned to.
    pub(super) async fn allowance(
        &self,
        tenant: &TenantId,
        task: &TaskName,
        settings: Option<&SettingsRef>,
    ) -> Result<Allowance, Failure> {
        let policy = self.directory.find(tenant).and_then(|known| known.policy.clone());
        let settings = match settings {
            Some(settings) => Some(self.settings_at(tenant, settings).await?),
            None => None,
        };
        let limits = self.sandbox.limits();
        if policy.is_none() && settings.is_none() {
            return Ok(Allowance { limits, grant: Arc::default(), recorded: false });
        }
        Ok(allowance(limits, policy.as_deref(), settings.as_deref(), task))
    }

    /// Returns a revision of settings: the newest from memory, an older one, which a run is pinned to, from the store.
    async fn settings_at(&self, tenant: &TenantId, named: &SettingsRef) -> Result<Arc<SettingsRow>, Failure> {
        let SettingsRef { module, revision } = named;
        if let Some(newest) = self.directory.settings_of(tenant, module).filter(|row| row.revision == *revision) {
            return Ok(newest);
        }
        match self.store.find_settings(tenant, module, *revision).await {
            Ok(Some(row)) => Ok(Arc::new(row)),
            Ok(None) => {
                let message = format!("revision {revision} of the settings of `{module}` is not there");
                Err(Failure::engine(code::MODULE_NOT_FOUND, message))
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, %module, "settings cannot be read");
                Err(Failure::sandbox(code::INTERNAL, "the settings of the module cannot be read now"))
            }
        }
    }
}

fn allowance(server: Limits, policy: Option<&PolicyRow>, settings: Option<&SettingsRow>, task: &TaskName) -> Allowance {
    let (mut egress, mut caps) = (EgressPolicy::default(), ModuleCaps::default());
    if let Some(PolicyRow { policy, .. }) = policy {
        egress = policy.egress();
        caps = policy.caps();
    }
    let mut told = Default::default();
    if let Some(SettingsRow { settings, .. }) = settings {
        caps = caps.least(settings.limits);
        if let Some(own) = &settings.egress {
            egress = egress.narrowed(own);
        }
        told = settings.environment.clone();
    }
    let recorded = settings.is_some_and(|row| row.settings.record.contains(task));
    Allowance { limits: capped(server, caps), grant: Arc::new(Grant { settings: told, egress }), recorded }
}

/// Returns the server's limits, tightened to these.
pub(super) fn capped(server: Limits, caps: ModuleCaps) -> Limits {
    let memory_bytes =
        caps.memory_bytes.map_or(server.memory_bytes, |most| usize::try_from(most).unwrap_or(usize::MAX));
    server.least(Limits { memory_bytes, cpu: caps.cpu_ms.map_or(server.cpu, Millis), ..server })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModuleSettings, Policy, Timestamp};

    #[test]
    fn the_least_of_server_tenant_and_module_holds() {
        let server = Limits { memory_bytes: 64, cpu: Millis(10), ..Limits::default() };
        let mut policy = Policy::default();
        policy.granted.limits.memory_bytes = Some(32);
        policy.granted.limits.cpu_ms = Some(1_000);
        policy.granted.egress = ["https://*.a.example", "https://b.example"].map(|text| text.parse().unwrap()).into();
        let tenant = TenantId::default_tenant();
        let policy = PolicyRow { tenant: tenant.clone(), revision: 1, policy, set_at: Timestamp(0) };
        let mut settings = ModuleSettings::default();
        settings.limits.cpu_ms = Some(5);
        settings.egress = Some(["https://x.a.example", "https://c.example"].map(|text| text.parse().unwrap()).into());
        settings.environment.insert("REGION".to_owned(), "eu".to_owned());
        let task = TaskName::new("m.do").unwrap();
        settings.record.insert(task.clone());
        let module = crate::model::ModuleName::new("m").unwrap();
        let settings = SettingsRow { tenant, module, revision: 1, settings, set_at: Timestamp(0) };
        for (policy, settings, memory, cpu, egress, told) in [
            (None, None, 64, 10, &[][..], 0),
            (Some(&policy), None, 32, 10, &["https://*.a.example:443", "https://b.example:443"], 0),
            (None, Some(&settings), 64, 5, &[], 1),
            (Some(&policy), Some(&settings), 32, 5, &["https://x.a.example:443"], 1),
        ] {
            let Allowance { limits, grant, recorded } = allowance(server, policy, settings, &task);
            assert_eq!(recorded, settings.is_some());
            assert_eq!((limits.memory_bytes, limits.cpu), (memory, Millis(cpu)));
            assert_eq!(grant.egress.allow.iter().map(ToString::to_string).collect::<Vec<_>>(), egress);
            assert_eq!(grant.settings.len(), told);
        }
    }
}
