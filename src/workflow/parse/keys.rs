//! The keys of the language: what is read, and what is known but does not run yet.

use super::{
    super::problem::{Code, Problems},
    fields::{Fields, not_yet},
    hint,
};

/// Keys of the document.
pub const DOCUMENT: &[&str] = &[
    "ir_version",
    "name",
    "version",
    "description",
    "input",
    "output",
    "timeout",
    "defaults",
    "contracts",
    "signals",
    "queries",
    "steps",
    "result",
    "source_map",
    "definition_hash",
    "on",
];

/// Keys of `on`, none of which runs yet.
pub const HANDLERS: &[&str] = &["failure", "cancel", "signal"];

/// Keys of a contract.
pub const CONTRACT: &[&str] = &["version", "input", "output"];

/// Keys of a signal.
pub const SIGNAL: &[&str] = &["payload"];

/// Keys of `retry`.
pub const RETRY: &[&str] =
    &["max_attempts", "initial", "factor", "max", "jitter", "retryable", "non_retryable", "max_redeliveries"];

/// Keys of `timeouts`.
pub const TIMEOUTS: &[&str] = &["attempt", "heartbeat", "queue", "total"];

/// What a task step has besides task and input, and `defaults` may hold.
pub const TASK_OPTIONS: &[&str] = &["queue", "target", "module", "node", "priority", "retry", "timeouts"];

/// What a task step will have.
pub const TASK_OPTIONS_LATER: &[&str] = &["concurrency", "compensate"];

const COMMON: &[&str] = &["id", "after", "when", "description"];

const COMMON_LATER: &[&str] = &["catch"];

/// The kinds of steps that run, each named by its key, with the keys that belong to it.
const KINDS: &[(&str, &[&str])] = &[
    ("task", &["input", "queue", "target", "module", "node", "priority", "retry", "timeouts"]),
    ("compute", &[]),
    ("sleep", &[]),
    ("await", &["timeout", "on_timeout"]),
];

/// The kinds of steps that do not run yet, with the keys that belong to them.
const KINDS_LATER: &[(&str, &[&str])] = &[
    ("workflow", &["input", "version", "on_parent_close", "retry", "timeouts", "compensate"]),
    ("sleep_until", &[]),
    ("for_each", &["as", "max_parallel", "tolerate_failures", "steps", "yield"]),
    ("switch", &[]),
    ("repeat", &["steps", "yield"]),
    ("fail", &[]),
    ("continue_as_new", &[]),
];

/// Checks the keys of a step and returns its kind, when it is exactly one and runs.
pub fn check_step(fields: &Fields<'_>, problems: &mut Problems) -> Option<&'static str> {
    let there = |kinds: &'static [(&'static str, &'static [&'static str])]| -> Vec<_> {
        kinds.iter().filter(|(kind, _)| fields.has(kind)).collect()
    };
    let (now, later) = (there(KINDS), there(KINDS_LATER));
    for (kind, _) in &later {
        problems.push(&fields.at.key(kind), Code::Unsupported, not_yet(kind));
    }
    let kinds: Vec<_> = now.iter().chain(&later).map(|(kind, _)| *kind).collect();
    let kind = match kinds.as_slice() {
        [kind] => Some(*kind),
        [] if fields.has("steps") => {
            problems.push(&fields.at.key("steps"), Code::Unsupported, not_yet("steps within a step"));
            return None;
        }
        [] => {
            let message = "a step needs one of `task`, `compute`, `sleep`, `await`";
            problems.push(&fields.at, Code::MissingKey, message);
            None
        }
        [one, other, ..] => {
            let message = format!("a step does one thing, and this one has both `{one}` and `{other}`");
            problems.push(&fields.at, Code::InvalidValue, message);
            None
        }
    };
    let own: Vec<&str> =
        now.iter().chain(&later).flat_map(|(kind, keys)| [kind].into_iter().chain(keys.iter())).copied().collect();
    check_keys(fields, kind, &own, problems);
    kind.filter(|_| later.is_empty())
}

/// Checks the keys of a step that has the keys `own` by its kind.
fn check_keys(fields: &Fields<'_>, kind: Option<&str>, own: &[&str], problems: &mut Problems) {
    for (key, part) in fields.all() {
        if own.contains(&key) || COMMON.contains(&key) {
            continue;
        }
        if COMMON_LATER.contains(&key) || TASK_OPTIONS_LATER.contains(&key) {
            problems.push(&part.at, Code::Unsupported, not_yet(key));
            continue;
        }
        let known = COMMON.iter().chain(own).copied();
        let message = match (kind, KINDS.iter().find(|(_, keys)| keys.contains(&key))) {
            (Some(kind), Some((home, _))) => {
                format!("`{key}` belongs to a step with `{home}`, not to one with `{kind}`")
            }
            (None, Some(_)) => continue,
            (Some(_), None) => hint::unknown("key", key, known),
            (None, None) => hint::unknown("key", key, known.chain(KINDS.iter().map(|(kind, _)| *kind))),
        };
        problems.push(&part.at, Code::UnknownKey, message);
    }
}
