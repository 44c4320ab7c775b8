//! What must hold of every history, and what the library makes of it.

use std::collections::BTreeMap;

use sandkeep::{
    model::{
        Execution, ExecutionId, RunKey, TenantId, Timestamp,
        event::{Event, FORMAT, StoredEvent},
        fold,
    },
    workflow,
};
use serde_json::{Value, json};

/// The event types that resolve a unit for good.
const RESOLVING: [&str; 4] = ["StepSucceeded", "StepFailed", "StepCancelled", "StepSkipped"];

/// The events of a type, of one unit.
pub fn of_type<'a>(history: &'a [Value], kind: &str, unit: &str) -> Vec<&'a Value> {
    history.iter().filter(|event| event["type"] == kind && event["unit"] == unit).collect()
}

/// How many events of a type a history has.
pub fn count(history: &[Value], kind: &str) -> usize {
    history.iter().filter(|event| event["type"] == kind).count()
}

/// Checks a terminal execution: its history is dense and ordered, each unit was resolved once with attempts from 1 on, and
/// the fold of the history is the state that is shown.
pub fn audit(document: &Value, state: &Value, history: &[Value]) {
    let id = &state["id"];
    for (at, event) in history.iter().enumerate() {
        assert_eq!((&event["seq"], &event["run"]), (&json!(at + 1), &json!(1)), "{id}: {event}");
    }
    assert!(history.is_sorted_by_key(|event| event["at_ms"].as_i64().unwrap()), "{id}: time runs backwards");
    for step in document["steps"].as_array().unwrap() {
        let unit = step["id"].as_str().unwrap();
        let resolved: usize = RESOLVING.iter().map(|kind| of_type(history, kind, unit).len()).sum();
        let reached = state["units"][unit]["status"] != "PENDING";
        assert_eq!(resolved, usize::from(reached), "{id}: results of `{unit}` in {history:#?}");
        if step.get("task").is_none() {
            continue;
        }
        let attempts: Vec<u64> =
            of_type(history, "StepScheduled", unit).iter().map(|event| event["attempt"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = (1..).take(attempts.len()).collect();
        assert_eq!(attempts, expected, "{id}: attempts of `{unit}`");
    }
    compare(&folded(document, state, history), document, state);
}

fn stored(event: &Value) -> StoredEvent {
    let mut fields = event.as_object().unwrap().clone();
    let mut take = |name| fields.remove(name).unwrap();
    let (seq, at, kind) = (take("seq"), take("at_ms"), take("type"));
    take("run");
    StoredEvent {
        seq: seq.as_u64().unwrap(),
        at: Timestamp(at.as_i64().unwrap()),
        kind: kind.as_str().unwrap().to_owned(),
        format: FORMAT,
        fields: Value::Object(fields).to_string(),
    }
}

fn folded(document: &Value, state: &Value, history: &[Value]) -> Execution {
    let parsed = workflow::parse(document.to_string().as_bytes()).unwrap();
    let plan = &parsed.definition.plan;
    let id = ExecutionId::new(state["id"].as_str().unwrap()).unwrap();
    let mut execution = Execution::new(RunKey { tenant: TenantId::default_tenant(), execution: id, run: 1 }, plan);
    for event in history {
        let stored = stored(event);
        fold::apply(&mut execution, plan, &Event::read(&stored).unwrap(), stored.at);
    }
    execution
}

fn compare(execution: &Execution, document: &Value, state: &Value) {
    let parsed = workflow::parse(document.to_string().as_bytes()).unwrap();
    let plan = &parsed.definition.plan;
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(json!(execution.status.as_str()), state["status"], "{state}");
    assert_eq!(json!(execution.last_seq), state["last_seq"], "{state}");
    assert_eq!(
        execution.output.as_ref().map_or(Value::Null, |output| value(output.as_str())),
        state["output"],
        "{state}"
    );
    assert_eq!(json!(execution.finished_at.map(|at| at.0)), state["finished_at_ms"], "{state}");
    let mut shown: BTreeMap<&str, (Value, Value, Value)> = BTreeMap::new();
    let mut live = BTreeMap::new();
    for index in plan.indexes() {
        let name = plan.step(index).unit.as_str();
        let unit = execution.unit(index);
        let output = unit.output.as_ref().map_or(Value::Null, |output| value(output.as_str()));
        live.insert(name, (json!(unit.status.as_str()), json!(unit.attempt), output));
        let of = &state["units"][name];
        shown.insert(name, (of["status"].clone(), of["attempt"].clone(), of["output"].clone()));
    }
    assert_eq!(live, shown, "{}", state["id"]);
    assert!(execution.timers.is_empty() && execution.open == 0, "a terminal run waits for nothing");
}
