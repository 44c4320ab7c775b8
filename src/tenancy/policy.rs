//! What a request says of a policy.

use ipnet::IpNet;
use serde_json::Value;

use super::fields::{Fields, Problem, Problems};
use crate::model::policy::{Granted, MODULE_BYTES_MAX, MODULES_MAX, Own, Quotas, WorkLimits};

/// The halves of a policy that a request sets; the other stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halves {
    /// What the operator grants.
    pub granted: Option<Granted>,
    /// What the owner allows itself of it.
    pub own: Option<Own>,
}

/// Reads what a request sets.
pub fn read_policy(request: &Value) -> Result<Halves, Vec<Problem>> {
    let mut problems = Problems::default();
    let top = Fields::of(request, "", &["granted", "own"], &mut problems);
    let known = ["egress", "private", "limits", "quotas", "shadow_builtins"];
    let granted = top.object("granted", &known, &mut problems).map(|half| Granted {
        egress: half.list("egress", &mut problems).unwrap_or_default(),
        private: half.list::<IpNet>("private", &mut problems).unwrap_or_default(),
        limits: limits(&half, &["memory_bytes", "cpu_ms", "instances", "weight"], &mut problems),
        quotas: quotas(&half, &mut problems),
        shadow_builtins: half.flag("shadow_builtins", &mut problems),
    });
    let own = top.object("own", &["egress", "limits", "quotas"], &mut problems).map(|half| Own {
        egress: half.list("egress", &mut problems),
        limits: limits(&half, &["memory_bytes", "cpu_ms", "instances"], &mut problems),
        quotas: quotas(&half, &mut problems),
    });
    problems.unless_any(Halves { granted, own })
}

fn limits(half: &Fields<'_>, known: &[&str], problems: &mut Problems) -> WorkLimits {
    let Some(limits) = half.object("limits", known, problems) else { return WorkLimits::default() };
    let weight = if known.contains(&"weight") { limits.number("weight", 1, problems) } else { None };
    if weight.is_some_and(|weight| weight > 1_000) {
        problems.add("/granted/limits/weight", "it must be at most 1000");
    }
    WorkLimits {
        memory_bytes: limits.number("memory_bytes", 1, problems),
        cpu_ms: limits.number("cpu_ms", 1, problems),
        instances: limits.number("instances", 1, problems),
        weight,
    }
}

fn quotas(half: &Fields<'_>, problems: &mut Problems) -> Quotas {
    let Some(quotas) = half.object("quotas", &["modules", "module_bytes"], problems) else { return Quotas::default() };
    Quotas { modules: quotas.number("modules", 0, problems), module_bytes: quotas.number("module_bytes", 0, problems) }
}

/// Returns where the owner's half goes beyond what is granted. `usual` is what the server gives where the grant says
/// nothing.
pub fn wider(granted: &Granted, own: &Own, usual: &WorkLimits) -> Vec<Problem> {
    let mut found = Problems::default();
    for (index, entry) in own.egress.iter().flatten().enumerate() {
        if !granted.egress.iter().any(|granted| granted.covers(entry)) {
            found.add(format!("/own/egress/{index}"), format!("`{entry}` is not granted"));
        }
    }
    let or = |granted: Option<u64>, usual: Option<u64>| granted.or(usual);
    let (limits, quotas) = (&granted.limits, &granted.quotas);
    for (place, own, granted) in [
        ("limits/memory_bytes", own.limits.memory_bytes, or(limits.memory_bytes, usual.memory_bytes)),
        ("limits/cpu_ms", own.limits.cpu_ms, or(limits.cpu_ms, usual.cpu_ms)),
        ("limits/instances", own.limits.instances, or(limits.instances, usual.instances)),
        ("quotas/modules", own.quotas.modules, or(quotas.modules, Some(MODULES_MAX))),
        ("quotas/module_bytes", own.quotas.module_bytes, or(quotas.module_bytes, Some(MODULE_BYTES_MAX))),
    ] {
        if let (Some(own), Some(granted)) = (own, granted)
            && own > granted
        {
            found.add(format!("/own/{place}"), format!("{own} is more than the granted {granted}"));
        }
    }
    found.unless_any(()).err().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(problems: &[Problem]) -> Vec<&str> {
        problems.iter().map(|problem| problem.pointer.as_str()).collect()
    }

    #[test]
    fn each_wrong_field_is_named() {
        for (request, wrong) in [
            (json!([]), &[""][..]),
            (json!({"grant": {}}), &["/grant"]),
            (json!({"granted": {"egress": "x"}}), &["/granted/egress"]),
            (json!({"granted": {"egress": ["https://a", "nope", 7]}}), &["/granted/egress/1", "/granted/egress/2"]),
            (json!({"granted": {"private": ["10.0.0.0/33"]}}), &["/granted/private/0"]),
            (
                json!({"granted": {"limits": {"memory_bytes": -1, "cpu_ms": 1.5, "instances": 0}}}),
                &["/granted/limits/memory_bytes", "/granted/limits/cpu_ms", "/granted/limits/instances"],
            ),
            (json!({"granted": {"limits": {"weight": 100_000}}}), &["/granted/limits/weight"]),
            (json!({"own": {"limits": {"weight": 2}}}), &["/own/limits/weight"]),
            (json!({"own": {"shadow_builtins": true}}), &["/own/shadow_builtins"]),
            (
                json!({"granted": {"shadow_builtins": 1, "quotas": {"a/b": 1}}}),
                &["/granted/quotas/a~1b", "/granted/shadow_builtins"],
            ),
        ] {
            assert_eq!(places(&read_policy(&request).unwrap_err()), wrong, "{request}");
        }
        assert_eq!(read_policy(&json!({})).unwrap(), Halves::default());
    }

    #[test]
    fn an_owner_only_narrows() {
        let usual = WorkLimits { memory_bytes: Some(64), cpu_ms: Some(10), instances: Some(4), weight: None };
        let granted = json!({"granted": {"egress": ["https://*.a.example"], "limits": {"memory_bytes": 32}}});
        let granted = read_policy(&granted).unwrap().granted.unwrap();
        for (own, wrong) in [
            (json!({}), &[][..]),
            (json!({"egress": [], "limits": {"memory_bytes": 32, "cpu_ms": 10, "instances": 4}}), &[]),
            (json!({"egress": ["https://x.a.example", "https://b.example"]}), &["/own/egress/1"]),
            (
                json!({"limits": {"memory_bytes": 33, "cpu_ms": 11, "instances": 5}}),
                &["/own/limits/memory_bytes", "/own/limits/cpu_ms", "/own/limits/instances"],
            ),
            (json!({"quotas": {"modules": 1_001}}), &["/own/quotas/modules"]),
        ] {
            let half = read_policy(&json!({ "own": own })).unwrap().own.unwrap();
            assert_eq!(places(&wider(&granted, &half, &usual)), wrong, "{own}");
        }
    }
}
