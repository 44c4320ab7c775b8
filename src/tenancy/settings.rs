//! What a request says of the settings of a module.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Fields, Problem, Problems};
use crate::model::{
    TaskName, nearest,
    policy::{ModuleCaps, ModuleSettings, Policy},
};

/// The most variables of an environment.
const VARIABLES_MAX: usize = 256;
/// The longest name of a variable, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The most bytes of an environment, names and values together.
const ENVIRONMENT_BYTES_MAX: usize = 64 * 1024;

/// Reads the settings that a request sets; what it does not say is set to nothing.
pub fn read_settings(request: &Value) -> Result<ModuleSettings, Vec<Problem>> {
    let mut problems = Problems::default();
    let known = ["environment", "limits", "egress", "record", "secrets"];
    let top = Fields::of(request, "", &known, &mut problems);
    if let Some((_, at)) = top.get("secrets") {
        problems.add(at, "secrets are not supported yet");
    }
    let limits = top.object("limits", &["memory_bytes", "cpu_ms"], &mut problems);
    let limits = limits.map_or_else(ModuleCaps::default, |limits| ModuleCaps {
        memory_bytes: limits.number("memory_bytes", 1, &mut problems),
        cpu_ms: limits.number("cpu_ms", 1, &mut problems),
    });
    let settings = ModuleSettings {
        environment: environment(&top, &mut problems),
        limits,
        egress: top.list("egress", &mut problems),
        record: top.list("record", &mut problems).unwrap_or_default().into_iter().collect(),
    };
    problems.unless_any(settings)
}

/// Returns where settings ask for more than the policy gives, or than the server does: it would never hold.
pub fn beyond(policy: &Policy, settings: &ModuleSettings, memory_bytes: u64, cpu_ms: u64) -> Vec<Problem> {
    let mut found = Problems::default();
    let (allowed, caps) = (policy.egress(), policy.caps());
    for (index, entry) in settings.egress.iter().flatten().enumerate() {
        if !allowed.allow.iter().any(|allowed| allowed.covers(entry)) {
            found.add(format!("/egress/{index}"), format!("`{entry}` is not allowed by the policy of the tenant"));
        }
    }
    for (name, asked, most) in [
        ("memory_bytes", settings.limits.memory_bytes, caps.memory_bytes.unwrap_or(u64::MAX).min(memory_bytes)),
        ("cpu_ms", settings.limits.cpu_ms, caps.cpu_ms.unwrap_or(u64::MAX).min(cpu_ms)),
    ] {
        if let Some(asked) = asked.filter(|asked| *asked > most) {
            found.add(format!("/limits/{name}"), format!("{asked} is more than the {most} that the tenant may use"));
        }
    }
    found.unless_any(()).err().unwrap_or_default()
}

/// Returns which tasks are to be recorded that no version of the module describes.
pub fn unknown_tasks(settings: &ModuleSettings, known: &BTreeSet<TaskName>) -> Vec<Problem> {
    let mut found = Problems::default();
    let names: Vec<&str> = known.iter().map(TaskName::as_str).collect();
    for task in settings.record.difference(known) {
        let meant =
            nearest(task.as_str(), &names).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        found.add("/record", format!("no version of the module describes the task `{task}`{meant}"));
    }
    found.unless_any(()).err().unwrap_or_default()
}

fn environment(top: &Fields<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut read = BTreeMap::new();
    let Some((value, at)) = top.get("environment") else { return read };
    let members = value.as_object();
    let names: Vec<&str> = members.into_iter().flat_map(|members| members.keys().map(String::as_str)).collect();
    // Every name is known: they are the owner's.
    let variables = Fields::of(value, &at, &names, problems);
    let mut bytes = 0;
    for (name, value, place) in variables.members() {
        match value.as_str().filter(|value| !value.contains('\0')) {
            _ if !is_name(name) => {
                problems.add(place, format!("a name is 1 to {NAME_BYTES_MAX} letters, digits and `_`, no digit first"));
            }
            None => problems.add(place, "it must be a text without NUL"),
            Some(value) => {
                bytes += name.len() + value.len();
                read.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    if names.len() > VARIABLES_MAX || bytes > ENVIRONMENT_BYTES_MAX {
        let message = format!("it may have at most {VARIABLES_MAX} variables and {ENVIRONMENT_BYTES_MAX} bytes");
        problems.add(at, message);
    }
    read
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_or_each_wrong_field_is_named() {
        let good = json!({
            "environment": {"REGION": "eu", "_X1": ""}, "limits": {"cpu_ms": 5}, "egress": ["https://a"],
            "record": ["orders.price", "orders.price"],
        });
        let settings = read_settings(&good).unwrap();
        assert_eq!((settings.environment.len(), settings.limits.cpu_ms, settings.record.len()), (2, Some(5), 1));
        assert_eq!(read_settings(&json!({})).unwrap(), ModuleSettings::default());
        let many: serde_json::Map<_, _> = (0..300).map(|at| (format!("V{at}"), json!(""))).collect();
        for (request, wrong) in [
            (
                json!({"secrets": ["key"], "record": ["orders.price", "no/task", 1]}),
                &["/secrets", "/record/1", "/record/2"][..],
            ),
            (json!({"environment": []}), &["/environment"]),
            (
                json!({"environment": {"1A": "", "A=B": "", "C": 1, "D": "\0"}}),
                &["/environment/1A", "/environment/A=B", "/environment/C", "/environment/D"],
            ),
            (json!({"environment": many}), &["/environment"]),
            (json!({"environment": {"A": "x".repeat(70_000)}}), &["/environment"]),
            (json!({"limits": {"cpu": 1}, "egress": ["a"]}), &["/limits/cpu", "/egress/0"]),
        ] {
            let problems = read_settings(&request).unwrap_err();
            let places: Vec<_> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
            assert_eq!(places, wrong);
        }
    }

    #[test]
    fn only_tasks_that_are_there_are_recorded() {
        let known = ["orders.price", "orders.validate"].map(|name| TaskName::new(name).unwrap()).into();
        let settings = read_settings(&json!({"record": ["orders.price", "order.price"]})).unwrap();
        let problems = unknown_tasks(&settings, &known);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].pointer, "/record");
        assert!(problems[0].message.contains("`order.price`; did you mean `orders.price`?"), "{}", problems[0].message);
    }

    #[test]
    fn a_module_asks_for_no_more_than_its_tenant_may_use() {
        let mut policy = Policy::default();
        policy.granted.egress = vec!["https://*.a.example".parse().unwrap()];
        policy.granted.limits.memory_bytes = Some(32);
        for (request, wrong) in [
            (json!({"egress": ["https://x.a.example"], "limits": {"memory_bytes": 32, "cpu_ms": 10}}), &[][..]),
            (json!({"egress": ["https://x.a.example", "https://b.example"]}), &["/egress/1"]),
            (json!({"limits": {"memory_bytes": 33, "cpu_ms": 11}}), &["/limits/memory_bytes", "/limits/cpu_ms"]),
        ] {
            let problems = beyond(&policy, &read_settings(&request).unwrap(), 64, 10);
            let places: Vec<_> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
            assert_eq!(places, wrong, "{request}");
        }
    }
}
