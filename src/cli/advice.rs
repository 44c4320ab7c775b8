//! What would help a unit that is not resolved, from its state, the document, and the workers that are there.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    app::view::WorkerView,
    model::{ContractVersion, Timestamp},
};

use super::units::Unit;

/// What advice needs of a step.
#[derive(Debug, Default)]
pub(super) struct Step {
    task: Option<String>,
    contract: Option<ContractVersion>,
    queue: String,
    node: Option<String>,
    signal: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    contracts: BTreeMap<String, Contract>,
    steps: Vec<StepText>,
}

#[derive(Default, Deserialize)]
struct Defaults {
    queue: Option<String>,
    node: Option<String>,
}

#[derive(Deserialize)]
struct Contract {
    version: Option<String>,
}

#[derive(Deserialize)]
struct StepText {
    id: String,
    task: Option<String>,
    queue: Option<String>,
    node: Option<String>,
    r#await: Option<String>,
}

/// Reads the steps of a registered document. One that is not understood has none, and there is less to say.
pub(super) fn steps(document: &str) -> BTreeMap<String, Step> {
    let Ok(Document { defaults, contracts, steps }) = serde_json::from_str(document) else { return BTreeMap::new() };
    let queue = |step: &StepText| step.queue.clone().or_else(|| defaults.queue.clone());
    let contract =
        |task: &String| contracts.get(task)?.version.as_deref().and_then(|text| ContractVersion::new(text).ok());
    let read = |step: StepText| {
        let known = Step {
            contract: step.task.as_ref().and_then(contract),
            queue: queue(&step).unwrap_or_else(|| "default".to_owned()),
            node: step.node.or_else(|| defaults.node.clone()),
            task: step.task,
            signal: step.r#await,
        };
        (step.id, known)
    };
    steps.into_iter().map(read).collect()
}

/// Returns what would help one unit, where anything can be said.
pub(super) fn advise(
    execution: &str,
    unit: &Unit,
    step: &Step,
    workers: Option<&[WorkerView]>,
    now: Timestamp,
) -> Option<String> {
    match unit.status.as_str() {
        "RETRYING" => {
            let at =
                unit.wake_at_ms.map(|at| format!(" at {} ({})", Timestamp(at), until(now, at))).unwrap_or_default();
            Some(format!("its next attempt is due{at}"))
        }
        "WAITING" => Some(match (&step.signal, unit.wake_at_ms) {
            (Some(signal), _) => format!("send it the signal: sandkeep signal {execution} {signal} --input JSON"),
            (None, Some(at)) => format!("its timer is due at {} ({})", Timestamp(at), until(now, at)),
            (None, None) => return None,
        }),
        "RUNNING" => {
            let since = unit.dispatched_at_ms.map(|at| format!(" since {}", Timestamp(at))).unwrap_or_default();
            let end = unit.deadline_ms.map(|at| format!("; its time ends at {} ({})", Timestamp(at), until(now, at)));
            Some(format!("{} has it{since}{}", unit.server(), end.unwrap_or_default()))
        }
        "SCHEDULED" if unit.target.as_deref() == Some("worker") => for_worker(step, workers?),
        "SCHEDULED" => Some("it waits for a free place in the sandbox".to_owned()),
        _ => None,
    }
}

/// Says why no worker has taken a unit, from the widest reason to the narrowest.
fn for_worker(step: &Step, workers: &[WorkerView]) -> Option<String> {
    let (task, queue) = (step.task.as_ref()?, &step.queue);
    let version = step.contract.as_ref().map(|version| format!(" version {version}")).unwrap_or_default();
    let doing: Vec<_> = workers.iter().filter(|worker| worker.tasks.iter().any(|offer| offers(offer, task))).collect();
    if doing.is_empty() {
        return Some(format!("no worker does `{task}`: start one that takes from the queue `{queue}`"));
    }
    let fitting: Vec<_> =
        doing.iter().filter(|worker| worker.tasks.iter().any(|offer| serves(offer, task, step))).collect();
    if fitting.is_empty() {
        return Some(format!("workers do `{task}`, but none in a version that serves{version}: start a newer one"));
    }
    let queued: Vec<_> = fitting.iter().filter(|worker| worker.queues.contains(queue)).collect();
    if queued.is_empty() {
        return Some(format!("workers do `{task}`, but none takes from the queue `{queue}`: start one that does"));
    }
    let placed: Vec<_> = queued.iter().filter(|worker| step.node.is_none() || worker.node == step.node).collect();
    let Some(node) = step.node.as_ref().filter(|_| placed.is_empty()) else {
        let busy = placed.iter().all(|worker| worker.capacity > 0 && worker.holds.len() >= worker.capacity as usize);
        let asking = placed.iter().any(|worker| worker.waiting_polls > 0);
        return Some(match (busy, asking) {
            (true, _) => format!("all {} workers that do `{task}` are busy: start more", placed.len()),
            (false, true) => format!("a worker waits for `{task}`: look again"),
            (false, false) => format!("workers that do `{task}` do not ask for work at the moment: look at their logs"),
        });
    };
    Some(format!("workers do `{task}`, but none announced the node `{node}`: start one that does"))
}

/// Returns whether `TASK@VERSION` offers a task.
fn offers(offer: &str, task: &str) -> bool {
    offer.split_once('@').map_or(offer, |(name, _)| name) == task
}

/// Returns whether it offers it in a version that the step asks for.
fn serves(offer: &str, task: &str, step: &Step) -> bool {
    let Some(asked) = &step.contract else { return offers(offer, task) };
    let version = offer.split_once('@').and_then(|(_, version)| ContractVersion::new(version).ok());
    offers(offer, task) && version.is_some_and(|version| version.serves(asked))
}

fn until(now: Timestamp, at: i64) -> String {
    match Timestamp(at).since(now).0 {
        0 => "now".to_owned(),
        // Whole seconds are enough for people.
        ms => format!("in {}", crate::model::Millis(ms.div_ceil(1_000) * 1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(json: serde_json::Value) -> Unit {
        let mut whole = serde_json::json!({ "attempt": 1 });
        whole.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn worker(tasks: &[&str], queue: &str, node: Option<&str>, holds: usize, waiting_polls: u32) -> WorkerView {
        WorkerView {
            worker_id: "w".to_owned(),
            worker_session_id: "s".to_owned(),
            runtime: "python".to_owned(),
            sdk: None,
            identity: None,
            queues: vec![queue.to_owned()],
            node: node.map(str::to_owned),
            capacity: 1,
            tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
            holds: vec!["e/u".to_owned(); holds],
            waiting_polls,
            registered_at_ms: 0,
            last_seen_at_ms: 0,
        }
    }

    const DOCUMENT: &str = r#"{
        "defaults": { "queue": "slow" },
        "contracts": { "payments.charge": { "version": "1.2" } },
        "steps": [
            { "id": "charge", "task": "payments.charge", "node": "berlin" },
            { "id": "mail", "task": "mail.send", "queue": "fast" },
            { "id": "approved", "await": "approve" },
            { "id": "nap", "sleep": "1h" }
        ]
    }"#;

    #[track_caller]
    fn check(step: &str, state: serde_json::Value, workers: &[WorkerView], advice: &str) {
        let found = advise("e-1", &unit(state), &steps(DOCUMENT)[step], Some(workers), Timestamp(1_000));
        assert_eq!(found.as_deref(), Some(advice));
    }

    #[test]
    fn what_keeps_a_unit_from_workers_is_told() {
        let state = || serde_json::json!({ "status": "SCHEDULED", "target": "worker" });
        let of = |tasks: &[&str], queue, node, holds, polls| vec![worker(tasks, queue, node, holds, polls)];
        let charge = ["payments.charge@1.4.0"];
        for (workers, advice) in [
            (vec![], "no worker does `payments.charge`: start one that takes from the queue `slow`"),
            (
                of(&["payments.chargeback@1.4.0"], "slow", None, 0, 1),
                "no worker does `payments.charge`: start one that takes from the queue `slow`",
            ),
            (
                of(&["payments.charge@1.1.0"], "slow", None, 0, 1),
                "workers do `payments.charge`, but none in a version that serves version 1.2: start a newer one",
            ),
            (
                of(&charge, "default", None, 0, 1),
                "workers do `payments.charge`, but none takes from the queue `slow`: start one that does",
            ),
            (
                of(&charge, "slow", Some("paris"), 0, 1),
                "workers do `payments.charge`, but none announced the node `berlin`: start one that does",
            ),
            (of(&charge, "slow", Some("berlin"), 1, 0), "all 1 workers that do `payments.charge` are busy: start more"),
            (of(&charge, "slow", Some("berlin"), 0, 1), "a worker waits for `payments.charge`: look again"),
            (
                of(&charge, "slow", Some("berlin"), 0, 0),
                "workers that do `payments.charge` do not ask for work at the moment: look at their logs",
            ),
        ] {
            check("charge", state(), &workers, advice);
        }
        check(
            "mail",
            state(),
            &of(&["mail.send@1.0.0"], "fast", None, 0, 1),
            "a worker waits for `mail.send`: look again",
        );
    }

    #[test]
    fn what_else_a_unit_waits_for_is_told() {
        let json = |text: &str| serde_json::from_str(text).unwrap();
        for (step, state, advice) in [
            ("mail", r#"{"status":"SCHEDULED","target":"module"}"#, "it waits for a free place in the sandbox"),
            (
                "mail",
                r#"{"status":"RETRYING","wake_at_ms":13000}"#,
                "its next attempt is due at 1970-01-01T00:00:13.000Z (in 12s)",
            ),
            ("nap", r#"{"status":"WAITING","wake_at_ms":500}"#, "its timer is due at 1970-01-01T00:00:00.500Z (now)"),
            ("approved", r#"{"status":"WAITING"}"#, "send it the signal: sandkeep signal e-1 approve --input JSON"),
            (
                "mail",
                r#"{"status":"RUNNING","worker_id":"w-1","dispatched_at_ms":0,"deadline_ms":61000}"#,
                "worker w-1 has it since 1970-01-01T00:00:00.000Z; its time ends at 1970-01-01T00:01:01.000Z (in 1m)",
            ),
        ] {
            check(step, json(state), &[], advice);
        }
        let pending = unit(serde_json::json!({ "status": "PENDING" }));
        assert_eq!(advise("e", &pending, &Step::default(), None, Timestamp(0)), None);
        assert!(steps("{}").is_empty());
    }
}
