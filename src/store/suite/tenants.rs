//! Tenants, policies, settings of modules.

use super::*;
use crate::{
    model::{
        ModuleSettings, Policy, Timestamp,
        row::{PolicyRow, SettingsRow, TenantRow},
    },
    store::{Batch, System},
};

fn row(name: &str, display_name: Option<&str>, created_at: i64) -> TenantRow {
    TenantRow { tenant: id(name), display_name: display_name.map(str::to_owned), created_at: Timestamp(created_at) }
}

fn tenants(rows: impl Into<Vec<TenantRow>>) -> Batch {
    Batch { tenants: rows.into(), ..Batch::default() }
}

pub(super) async fn a_tenant_is_made_once_and_listed(store: &dyn System) {
    let made = [row("a", Some("A \u{e9}"), 5), row("b", None, 5), row("c", None, 9)];
    store.commit(tenants(made.clone())).await.unwrap();
    store.commit(tenants([row("a", Some("other"), 99)])).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_tenants(after.take(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.created_at, last.tenant.clone()));
        seen.extend(page);
    }
    let [a, b, c] = made;
    assert_eq!(seen, [c, b, a, row("default", None, 0)], "the default tenant is always there");
}

fn policy(name: &str, revision: u64, memory_bytes: u64) -> PolicyRow {
    let mut policy = Policy::default();
    policy.granted.limits.memory_bytes = Some(memory_bytes);
    policy.granted.egress = vec!["https://a.example".parse().unwrap()];
    PolicyRow { tenant: id(name), revision, policy, set_at: Timestamp(7) }
}

pub(super) async fn a_policy_replaces_the_one_before(store: &dyn System) {
    assert_eq!(store.policies().await.unwrap(), []);
    let (first, second, other) = (policy("default", 1, 10), policy("default", 2, u64::MAX), policy("other", 1, 3));
    store.commit(Batch { policies: vec![first, other.clone()], ..Batch::default() }).await.unwrap();
    store.commit(Batch { policies: vec![second.clone()], ..Batch::default() }).await.unwrap();
    assert_eq!(store.policies().await.unwrap(), [second, other]);
}

fn settings(owner: &str, module: &str, revision: u64) -> SettingsRow {
    let mut settings = ModuleSettings::default();
    settings.environment.insert("KEY".into(), format!("{revision} \u{e9}"));
    SettingsRow { tenant: id(owner), module: id(module), revision, settings, set_at: Timestamp(7) }
}

pub(super) async fn every_revision_of_settings_is_kept_and_the_newest_counts(store: &dyn System) {
    for row in [settings("default", "b", 1), settings("default", "a", 1), settings("default", "a", 2)] {
        store.commit(Batch { settings: vec![row], ..Batch::default() }).await.unwrap();
    }
    let other = settings("other", "a", 1);
    store.commit(Batch { settings: vec![other.clone()], ..Batch::default() }).await.unwrap();
    let newest = [settings("default", "a", 2), settings("default", "b", 1), other];
    assert_eq!(store.settings().await.unwrap(), newest);
    for (owner, module, revision, there) in
        [("default", "a", 1, true), ("default", "a", 2, true), ("default", "a", 3, false), ("other", "b", 1, false)]
    {
        let found = store.find_settings(&id(owner), &id(module), revision).await.unwrap();
        assert_eq!(found, there.then(|| settings(owner, module, revision)), "{owner} {module} {revision}");
    }
}
