//! Operations on the policies of tenants.

use serde_json::Value;

use super::{
    App, Error, ErrorCode,
    allowance::capped,
    owners::unknown,
    view::{EffectiveView, PolicyView},
};
use crate::{
    model::{Policy, TenantId, policy::WorkLimits, row::PolicyRow},
    store::Batch,
    tenancy::{Problem, read_policy, wider},
};

impl App {
    /// Returns the policy of a tenant, and what holds of it.
    pub fn find_policy(&self, name: &str) -> Result<PolicyView, Error> {
        let tenant = TenantId::new(name)?;
        let known = self.inner.directory.find(&tenant).ok_or_else(unknown)?;
        let (revision, policy) = match known.policy.as_deref() {
            Some(row) => (row.revision, row.policy.clone()),
            None => (0, Policy::default()),
        };
        Ok(self.policy_view(&tenant, revision, policy))
    }

    /// Sets the halves of a policy that the request has. It holds for every attempt that begins from then on.
    pub async fn set_policy(&self, name: &str, request: &Value) -> Result<PolicyView, Error> {
        let app = &self.inner;
        let tenant = TenantId::new(name)?;
        let halves = read_policy(request).map_err(|problems| wrong("policy", &problems))?;
        let _guard = app.registering.lock().await;
        let known = app.directory.find(&tenant).ok_or_else(unknown)?;
        let before = known.policy.as_deref();
        let mut policy = before.map(|row| row.policy.clone()).unwrap_or_default();
        if let Some(granted) = halves.granted {
            policy.granted = granted;
        }
        if let Some(own) = halves.own {
            let problems = wider(&policy.granted, &own, &self.usual_limits());
            if !problems.is_empty() {
                return Err(wrong("policy", &problems));
            }
            policy.own = own;
        }
        let revision = before.map_or(0, |row| row.revision);
        if before.map_or_else(|| policy == Policy::default(), |row| row.policy == policy) {
            return Ok(self.policy_view(&tenant, revision, policy));
        }
        let row = PolicyRow { tenant: tenant.clone(), revision: revision + 1, policy, set_at: app.clock.now() };
        app.writer.write(Batch { policies: vec![row.clone()], ..Batch::default() }).await?;
        app.directory.set_policy(row.clone());
        app.dispatch.set_share(&tenant, row.policy.share(app.sandbox.slots()));
        app.refresh_facts(&tenant).await?;
        app.pump();
        tracing::info!(%tenant, revision = row.revision, "a policy was set");
        Ok(self.policy_view(&tenant, row.revision, row.policy))
    }

    /// What the server gives where a grant says nothing.
    fn usual_limits(&self) -> WorkLimits {
        let limits = self.inner.sandbox.limits();
        WorkLimits {
            memory_bytes: Some(limits.memory_bytes as u64),
            cpu_ms: Some(limits.cpu.0),
            instances: Some(Policy::default().share(self.inner.sandbox.slots()).instances as u64),
            weight: Some(1),
        }
    }

    fn policy_view(&self, tenant: &TenantId, revision: u64, policy: Policy) -> PolicyView {
        let limits = capped(self.inner.sandbox.limits(), policy.caps());
        let share = policy.share(self.inner.sandbox.slots());
        let egress = policy.egress();
        PolicyView {
            tenant: tenant.to_string(),
            revision,
            effective: EffectiveView {
                egress: egress.allow.iter().map(ToString::to_string).collect(),
                private: egress.private.iter().map(ToString::to_string).collect(),
                memory_bytes: limits.memory_bytes as u64,
                cpu_ms: limits.cpu.0,
                instances: share.instances as u64,
                weight: share.weight,
                modules: policy.modules(),
                module_bytes: policy.module_bytes(),
                shadow_builtins: policy.granted.shadow_builtins,
            },
            granted: policy.granted,
            own: policy.own,
        }
    }
}

/// The answer to a request some of whose fields are wrong: it names each.
pub(super) fn wrong(what: &str, problems: &[Problem]) -> Error {
    let first = problems.first().map(|problem| match &*problem.pointer {
        "" => problem.message.clone(),
        pointer => format!("`{pointer}`: {}", problem.message),
    });
    let message = match problems.len() {
        1 => format!("the {what} is wrong: {}", first.unwrap_or_default()),
        count => format!("the {what} has {count} problems; the first: {}", first.unwrap_or_default()),
    };
    Error::new(ErrorCode::InvalidRequest, message).with_details(&serde_json::json!({ "problems": problems }))
}
