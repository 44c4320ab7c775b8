//! Documents that are accepted, and what they become.

use super::*;
use crate::{
    model::{StepIndex, plan::StepKind},
    workflow::definition::{ModuleRef, OnTimeout, TargetChoice},
};

/// The order example, as far as its forms run.
pub fn order() -> Value {
    json!({
        "ir_version": "sandkeep-ir/1",
        "name": "order",
        "version": "1.2.0",
        "description": "Take an order from cart to courier",
        "input": {"type": "object", "required": ["lines"], "properties": {"lines": {"type": "array"}, "currency": {"default": "EUR"}}},
        "output": {"type": "object"},
        "timeout": "7d",
        "defaults": {"retry": {"max_attempts": 5, "factor": 3}, "timeouts": {"attempt": "30s", "total": "${ input.patience }"}, "queue": "default"},
        "contracts": {"payments.charge": {"version": "1.2", "input": {}, "output": {"type": "object"}}},
        "signals": {"approve": {"payload": {"type": "object"}}, "stop": {}},
        "queries": {"progress": "${ steps.priced.status }"},
        "steps": [
            {"id": "validated", "task": "orders.validate", "input": {"lines": "${ input.lines }"}, "target": "module", "module": "orders@stable"},
            {"id": "priced", "task": "orders.price", "input": "${ steps.validated.output }", "module": "orders"},
            {"id": "approved", "await": "approve", "timeout": "1d", "on_timeout": "null", "when": "${ steps.priced.output.total > 10000 }"},
            {"id": "nap", "sleep": "${ steps.priced.output.wait }", "after": ["approved"]},
            {"id": "charge", "task": "payments.charge", "after": ["approved"], "description": "Take the money",
             "input": {"amount": "${ steps.priced.output.total }", "note": "order ${ execution.id }"},
             "node": "vault", "priority": 9, "queue": "payments",
             "retry": {"max_attempts": 0, "initial": "2m", "non_retryable": ["CARD_STOLEN"]},
             "timeouts": {"heartbeat": "10s", "queue": "1h", "total": "2d"}},
            {"id": "receipt", "compute": {"id": "${ steps.charge.output.receipt }", "at": "${ now_ms }"}}
        ],
        "result": {"receipt": "${ steps.receipt.output }"},
        "source_map": {"steps": [1, 2]}
    })
}

#[test]
fn a_whole_document_is_read() {
    let definition = definition(&order());
    assert_eq!((definition.name.as_str(), definition.version.as_str()), ("order", "1.2.0"));
    assert_eq!(definition.description.as_deref(), Some("Take an order from cart to courier"));
    assert_eq!(definition.timeout.as_ref().map(fixed), Some(Millis(604_800_000)));
    assert_eq!(
        definition.step_ids().map(|id| id.as_str()).collect::<Vec<_>>(),
        ["validated", "priced", "approved", "nap", "charge", "receipt"]
    );
    assert_eq!(
        definition.task_names().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["orders.price", "orders.validate", "payments.charge"]
    );
    let depends: Vec<Vec<u32>> =
        definition.plan.steps().iter().map(|step| step.depends_on.iter().map(|on| on.0).collect()).collect();
    assert_eq!(depends, [vec![], vec![0], vec![1], vec![1, 2], vec![1, 2], vec![4]]);
    assert!(
        matches!(&definition.plan.step(StepIndex(2)).kind, StepKind::Await(signal) if signal.as_str() == "approve")
    );
    assert!(definition.steps[2].when.is_some());
    assert!(matches!(&definition.steps[2].kind, Kind::Await(wait) if wait.on_timeout == OnTimeout::Null));
    assert!(matches!(&definition.steps[3].kind, Kind::Sleep(Span::Template(_))));
    assert_eq!(definition.steps[4].pointer, "/steps/4");
    assert_eq!(definition.signals.len(), 2);
    assert!(definition.signals.values().any(Option::is_some));
    let contract = definition.contract(&task(&definition, 4).task).expect("a contract");
    assert_eq!(contract.version.as_ref().map(|version| version.as_str()), Some("1.2"));
    assert!(definition.input.is_some() && definition.output.is_some() && definition.result.is_some());
    assert_eq!(definition.queries.len(), 1);
}

#[test]
fn defaults_lie_under_a_step_key_by_key() {
    let definition = definition(&order());
    let (price, charge) = (task(&definition, 1), task(&definition, 4));
    assert_eq!((price.retry.max_attempts, price.retry.factor, price.retry.initial), (5, 3.0, Millis(1_000)));
    assert_eq!((charge.retry.max_attempts, charge.retry.factor, charge.retry.initial), (0, 3.0, Millis(120_000)));
    assert_eq!((price.retry.max, charge.retry.max), (Millis(60_000), Millis(120_000)), "the default bends");
    assert_eq!((price.queue.as_str(), charge.queue.as_str()), ("default", "payments"));
    assert_eq!((fixed(&price.timeouts.attempt), fixed(&charge.timeouts.attempt)), (Millis(30_000), Millis(30_000)));
    assert!(matches!(price.timeouts.total, Some(Span::Template(_))));
    assert_eq!(charge.timeouts.total.as_ref().map(fixed), Some(Millis(172_800_000)));
    assert_eq!((price.priority, charge.priority), (5, 9));
    assert_eq!((price.target, task(&definition, 0).target), (TargetChoice::Auto, TargetChoice::Module));
    assert!(
        matches!(&price.module, Some(ModuleRef::Alias(name, alias)) if name.as_str() == "orders" && alias.as_str() == "live")
    );
    assert!(matches!(&task(&definition, 0).module, Some(ModuleRef::Alias(_, alias)) if alias.as_str() == "stable"));
    assert_eq!(charge.retry.non_retryable.len(), 1);
    assert_eq!(charge.node.as_ref().map(|node| node.as_str()), Some("vault"));
}

#[test]
fn the_smallest_task_has_the_published_defaults() {
    let definition = definition(&with(json!({})));
    let task = task(&definition, 0);
    assert_eq!(task.retry, crate::workflow::Retry::default());
    assert_eq!(fixed(&task.timeouts.attempt), Millis(300_000));
    assert!(task.timeouts.heartbeat.is_none() && task.timeouts.queue.is_none() && task.timeouts.total.is_none());
    assert_eq!((task.queue.as_str(), task.priority, task.target), ("default", 5, TargetChoice::Auto));
    assert_eq!(task.input.literal(), Some(&Value::Null));
    assert!(definition.result.is_none() && definition.timeout.is_none());
}

#[test]
fn a_digest_names_a_module() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let definition = definition(&with_step(json!({"task": "a", "module": format!("m@{digest}")})));
    assert!(matches!(&task(&definition, 1).module, Some(ModuleRef::Digest(_, found)) if found.as_str() == digest));
}

#[test]
fn results_and_queries_make_no_step_wait() {
    let document = with(json!({"result": "${ steps.reserve.output }", "queries": {"a": "${ steps.reserve.status }"}}));
    assert!(definition(&document).plan.steps()[0].dependants.is_empty());
}

#[test]
fn the_right_hash_is_accepted_and_the_text_is_kept() {
    let mut document = order();
    document["definition_hash"] = definition(&document).hash.as_str().into();
    let text = serde_json::to_string_pretty(&document).expect("it prints");
    let parsed = parse(text.as_bytes()).expect("it is accepted");
    assert_eq!(parsed.document.as_str(), document.to_string());
    document["steps"][0]["task"] = "orders.other".into();
    refused(&document, "/definition_hash", Code::HashMismatch, definition_hash_of(&document).as_str());
}

fn definition_hash_of(document: &Value) -> String {
    crate::workflow::canonical::definition_hash(document).to_string()
}

#[test]
fn the_graph_is_readable() {
    let definition = definition(&order());
    let text = graph(&definition);
    let (first, rest) = text.split_once('\n').expect("lines");
    assert_eq!(first, format!("order 1.2.0 {}", definition.hash));
    assert_eq!(
        rest,
        "  validated  task orders.validate by orders@stable\n\
         \x20 priced     task orders.price by orders@live                   after validated\n\
         \x20 approved   await approve at most 1d, then null (conditional)  after priced\n\
         \x20 nap        sleep as computed                                  after priced, approved\n\
         \x20 charge     task payments.charge on vault                      after priced, approved\n\
         \x20 receipt    compute                                            after charge\n"
    );
}
