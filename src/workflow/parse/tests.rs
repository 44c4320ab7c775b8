//! Documents that are refused, each problem with its place, and documents that are not.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    model::{
        Millis, StepIndex,
        code::{self, Retried},
        plan::StepKind,
    },
    workflow::{
        definition::{Kind, ModuleRef, OnTimeout, Span, Task, TargetChoice},
        graph, problem,
    },
};

/// A small document with `fields` over it.
fn with(fields: Value) -> Value {
    let mut document = json!({
        "ir_version": "sandkeep-ir/1",
        "name": "order",
        "version": "1.0.0",
        "signals": {"approve": {}},
        "steps": [{"id": "reserve", "task": "stock.reserve"}]
    });
    for (key, value) in fields.as_object().expect("fields are an object") {
        document[key] = value.clone();
    }
    document
}

/// A small document whose second step is `step`.
fn with_step(step: Value) -> Value {
    let mut full = json!({"id": "second"});
    for (key, value) in step.as_object().expect("a step is an object") {
        full[key] = value.clone();
    }
    with(json!({"steps": [{"id": "reserve", "task": "stock.reserve"}, full]}))
}

fn problems(document: &Value) -> Vec<Problem> {
    match parse(document.to_string().as_bytes()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

fn definition(document: &Value) -> Definition {
    match parse(document.to_string().as_bytes()) {
        Ok(parsed) => parsed.definition,
        Err(problems) => panic!("{document:#} is refused: {problems:#?}"),
    }
}

/// Expects exactly one problem.
fn refused(document: &Value, pointer: &str, code: Code, part: &str) {
    let found = problems(document);
    assert_eq!(found.len(), 1, "{document}: {found:#?}");
    let problem = &found[0];
    assert_eq!((problem.pointer.as_str(), problem.code), (pointer, code), "{document}: {problem:?}");
    assert!(problem.message.contains(part), "{part:?} is not in {problem:?}");
}

fn task(definition: &Definition, at: usize) -> &Task {
    match &definition.steps[at].kind {
        Kind::Task(task) => task,
        other => panic!("not a task: {other:?}"),
    }
}

fn fixed(span: &Span) -> Millis {
    match span {
        Span::Fixed(span) => *span,
        Span::Template(_) => panic!("it is a template"),
    }
}

#[test]
fn the_top_is_checked() {
    use Code::*;
    for (fields, pointer, code, part) in [
        (json!({"ir_version": "sandkeep-ir/2"}), "/ir_version", UnsupportedVersion, "sandkeep-ir/1"),
        (json!({"ir_version": 1}), "/ir_version", UnsupportedVersion, "sandkeep-ir/1"),
        (json!({"name": "Order"}), "/name", InvalidValue, "workflow name"),
        (json!({"name": 5}), "/name", InvalidValue, "must be a string, not a number"),
        (json!({"version": ""}), "/version", InvalidValue, "workflow version"),
        (json!({"description": []}), "/description", InvalidValue, "not a list"),
        (json!({"stpes": []}), "/stpes", UnknownKey, "did you mean \"steps\"?"),
        (json!({"a/b~": 1}), "/a~1b~0", UnknownKey, "unknown key"),
        (json!({"input": {"type": "objekt"}}), "/input/type", Schema, "a type is one of"),
        (json!({"output": {"$ref": "https://example.com/"}}), "/output/$ref", Schema, "nothing outside"),
        (json!({"output": {"pattern": "(?!a)"}}), "/output/pattern", Schema, "look-around"),
        (json!({"timeout": "7 days"}), "/timeout", Duration, "`7d`"),
        (json!({"timeout": 7}), "/timeout", Duration, "`7d`"),
        (json!({"timeout": "4000d"}), "/timeout", Duration, "10 years"),
        (json!({"timeout": "0s"}), "/timeout", Duration, "longer than nothing"),
        (json!({"timeout": "${ steps.reserve.output }"}), "/timeout", Expression, "steps cannot be read here"),
        (json!({"contracts": {"Bad": {}}}), "/contracts/Bad", InvalidValue, "task name"),
        (json!({"contracts": {"a.b": {"version": "v1"}}}), "/contracts/a.b/version", InvalidValue, "contract version"),
        (json!({"contracts": {"a.b": {"inptu": {}}}}), "/contracts/a.b/inptu", UnknownKey, "\"input\""),
        (json!({"contracts": {"a.b": {"input": {"minimum": "x"}}}}), "/contracts/a.b/input/minimum", Schema, ""),
        (json!({"signals": {"approve": {"payload": {"required": 1}}}}), "/signals/approve/payload/required", Schema, ""),
        (json!({"signals": {"Approve": {}}}), "/signals/Approve", InvalidValue, "signal name"),
        (json!({"signals": {"approve": {"schema": {}}}}), "/signals/approve/schema", UnknownKey, "unknown key"),
        (json!({"signals": []}), "/signals", InvalidValue, "must be an object"),
        (json!({"queries": {"p": "${ steps.reserv.status }"}}), "/queries/p", UnknownStep, "\"reserve\""),
        (json!({"result": {"a": ["${ inptu.x }"]}}), "/result/a/0", Expression, "did you mean \"input\"?"),
        (json!({"result": "${ reserve.output }"}), "/result", Expression, "\"steps.reserve\""),
        (json!({"on": {"failure": []}}), "/on/failure", Unsupported, "`failure` is not supported yet"),
        (json!({"on": {"failed": []}}), "/on/failed", UnknownKey, "\"failure\""),
        (json!({"steps": {"sequential": true, "steps": []}}), "/steps/sequential", Unsupported, "`sequential`"),
        (json!({"steps": {}}), "/steps", InvalidValue, "must be a list"),
        (json!({"steps": [5]}), "/steps/0", InvalidValue, "must be an object"),
        (json!({"definition_hash": "sha256:0"}), "/definition_hash", HashMismatch, "the hash of this document is sha256:"),
    ] {
        refused(&with(fields), pointer, code, part);
    }
    for key in ["ir_version", "name", "version", "steps"] {
        let mut document = with(json!({}));
        document.as_object_mut().expect("an object").remove(key);
        refused(&document, "", MissingKey, &format!("`{key}` is missing"));
    }
    refused(&json!([]), "", InvalidValue, "must be an object, not a list");
}

#[test]
fn steps_are_checked() {
    use Code::*;
    let at = |key: &str| format!("/steps/1{key}");
    for (step, pointer, code, part) in [
        (json!({"id": "Bad", "sleep": "1s"}), "/id", InvalidValue, "step id"),
        (json!({"id": "true", "sleep": "1s"}), "/id", InvalidValue, "word of the expression language"),
        (json!({"id": "reserve", "sleep": "1s"}), "/id", DuplicateId, "step 0 has it too"),
        (json!({}), "", MissingKey, "`task`, `compute`, `sleep`, `await`"),
        (json!({"slep": "1s"}), "", MissingKey, "a step needs one of"),
        (json!({"sleep": "1s", "compute": 1}), "", InvalidValue, "both `compute` and `sleep`"),
        (json!({"task": "A"}), "/task", InvalidValue, "task name"),
        (json!({"task": "a", "inptu": 1}), "/inptu", UnknownKey, "did you mean \"input\"?"),
        (json!({"task": "a", "timeout": "1s"}), "/timeout", UnknownKey, "belongs to a step with `await`"),
        (json!({"sleep": "1s", "queue": "q"}), "/queue", UnknownKey, "belongs to a step with `task`, not to one with `sleep`"),
        (json!({"sleep": "1 s"}), "/sleep", Duration, "reads like"),
        (json!({"sleep": 5}), "/sleep", Duration, "string like"),
        (json!({"sleep": "${ nope }"}), "/sleep", Expression, "unknown name \"nope\""),
        (json!({"compute": "${ 1 + }"}), "/compute", Expression, ""),
        (json!({"compute": "${ 1 "}), "/compute", Expression, ""),
        (json!({"compute": {"a": "${ nofunc(1) }"}}), "/compute/a", Expression, "nofunc"),
        (json!({"compute": "${ steps.second.output }"}), "/compute", Cycle, "cannot wait for itself"),
        (json!({"compute": 1, "when": true}), "/when", InvalidValue, "must be a string"),
        (json!({"compute": 1, "when": "true"}), "/when", Expression, "exactly one"),
        (json!({"compute": 1, "when": "${true} "}), "/when", Expression, "exactly one"),
        (json!({"compute": 1, "when": "${true} && ${true}"}), "/when", Expression, "exactly one"),
        (json!({"compute": 1, "description": 1}), "/description", InvalidValue, "must be a string"),
        (json!({"compute": 1, "after": "reserve"}), "/after", InvalidValue, "must be a list"),
        (json!({"compute": 1, "after": ["reserve", 1]}), "/after/1", InvalidValue, "must be a string"),
        (json!({"compute": 1, "after": ["reserv"]}), "/after/0", UnknownStep, "did you mean \"reserve\"?"),
        (json!({"compute": 1, "after": ["second"]}), "/after/0", Cycle, "cannot wait for itself"),
        (json!({"await": "aprove"}), "/await", UnknownSignal, "did you mean \"approve\"?"),
        (json!({"await": "approve", "on_timeout": "null"}), "/on_timeout", InvalidValue, "needs a `timeout`"),
        (json!({"await": "approve", "timeout": "1s", "on_timeout": null}), "/on_timeout", InvalidValue, "must be a string"),
        (json!({"await": "approve", "timeout": "1s", "on_timeout": "nul"}), "/on_timeout", InvalidValue, "`fail`, `null`"),
        (json!({"await": "approve", "timeout": "x"}), "/timeout", Duration, ""),
    ] {
        let found = problems(&with_step(step.clone()));
        let wanted = |problem: &Problem| {
            problem.pointer == at(pointer) && problem.code == code && problem.message.contains(part)
        };
        assert!(found.iter().any(wanted), "{step}: {found:#?}");
        assert!(found.len() == 1 || step.get("slep").is_some(), "{step}: {found:#?}");
    }
}

#[test]
fn task_options_are_checked() {
    use Code::*;
    for (options, pointer, code, part) in [
        (json!({"queue": "Q"}), "/queue", InvalidValue, "queue"),
        (json!({"target": "modul"}), "/target", InvalidValue, "`auto`, `module`, `worker`"),
        (json!({"target": "module", "node": "gpu"}), "/node", InvalidValue, "asks for a worker"),
        (json!({"module": "m", "node": "gpu"}), "/node", InvalidValue, "asks for a worker"),
        (json!({"target": "worker", "module": "m"}), "/module", InvalidValue, "target: worker"),
        (json!({"module": "../m"}), "/module", InvalidValue, "NAME@ALIAS"),
        (json!({"module": "m@"}), "/module", InvalidValue, "alias"),
        (json!({"module": "m@sha256:00"}), "/module", InvalidValue, "digest"),
        (json!({"priority": 10}), "/priority", InvalidValue, "from 0 to 9"),
        (json!({"priority": 1.5}), "/priority", InvalidValue, "from 0 to 9"),
        (json!({"retry": 3}), "/retry", InvalidValue, "must be an object"),
        (json!({"retry": {"attempts": 3}}), "/retry/attempts", UnknownKey, "unknown key"),
        (json!({"retry": {"max_attempt": 3}}), "/retry/max_attempt", UnknownKey, "\"max_attempts\""),
        (json!({"retry": {"max_attempts": -1}}), "/retry/max_attempts", InvalidValue, "from 0 to 4294967295"),
        (json!({"retry": {"max_attempts": 0}}), "/retry", MissingKey, "`timeouts.total` is required"),
        (json!({"retry": {"initial": "0s"}}), "/retry/initial", Duration, "longer than nothing"),
        (json!({"retry": {"initial": "${ input.x }"}}), "/retry/initial", Duration, "reads like"),
        (json!({"retry": {"factor": 0}}), "/retry/factor", InvalidValue, "at least 1"),
        (json!({"retry": {"factor": 0.99}}), "/retry/factor", InvalidValue, "at least 1"),
        (json!({"retry": {"factor": "NaN"}}), "/retry/factor", InvalidValue, "at least 1"),
        (json!({"retry": {"max": "1ms"}}), "/retry/max", Duration, "shorter than the first, which is 1s"),
        (json!({"retry": {"jitter": 1.1}}), "/retry/jitter", InvalidValue, "from 0 to 1"),
        (json!({"retry": {"jitter": -0.1}}), "/retry/jitter", InvalidValue, "from 0 to 1"),
        (json!({"retry": {"retryable": "TRAP"}}), "/retry/retryable", InvalidValue, "must be a list"),
        (json!({"retry": {"retryable": ["A", "a b"]}}), "/retry/retryable/1", InvalidValue, "error code"),
        (json!({"retry": {"non_retryable": vec!["A"; 101]}}), "/retry/non_retryable", Limit, "at most 100"),
        (json!({"retry": {"max_redeliveries": "5"}}), "/retry/max_redeliveries", InvalidValue, "whole number"),
        (json!({"timeouts": {"attempts": "1s"}}), "/timeouts/attempts", UnknownKey, "\"attempt\""),
        (json!({"timeouts": {"attempt": "0s"}}), "/timeouts/attempt", Duration, "longer than nothing"),
        (json!({"timeouts": {"total": "1y"}}), "/timeouts/total", Duration, ""),
        (json!({"timeouts": {"queue": "${ steps.nope.output }"}}), "/timeouts/queue", UnknownStep, "nope"),
        (json!({"input": {"sku": "${ steps.reserv.output }"}}), "/input/sku", UnknownStep, "unknown step \"reserv\"; did you mean \"reserve\"?"),
    ] {
        let mut step = options.clone();
        step["task"] = "a.b".into();
        refused(&with_step(step), &format!("/steps/1{pointer}"), code, part);
        // The same options as defaults have the same problem, once, at their own place.
        if options.get("input").is_none() && !part.contains("worker") && code != MissingKey && code != UnknownStep {
            let document = with(json!({"defaults": options, "steps": [{"id": "a", "task": "a"}, {"id": "b", "task": "a"}]}));
            refused(&document, &format!("/defaults{pointer}"), code, part);
        }
    }
    refused(
        &with(json!({"defaults": {"timeouts": {"total": "${ steps.reserve.output }"}}})),
        "/defaults/timeouts/total",
        Expression,
        "steps cannot be read here",
    );
    refused(&with(json!({"defaults": {"node": "gpu"}, "steps": [{"id": "a", "task": "a", "target": "module"}]})), "/steps/0", InvalidValue, "node");
    refused(&with(json!({"defaults": {"retires": {}}})), "/defaults/retires", UnknownKey, "\"retry\"");
}

#[test]
fn forms_of_later_parts_are_named() {
    for (step, pointers) in [
        (json!({"for_each": "${ input.l }", "as": "x", "max_parallel": 2, "tolerate_failures": 1, "steps": [], "yield": 1}), &["/for_each"][..]),
        (json!({"switch": []}), &["/switch"]),
        (json!({"repeat": {}, "steps": [], "yield": 1}), &["/repeat"]),
        (json!({"workflow": "w", "version": "1", "input": {}, "on_parent_close": "cancel", "retry": {}, "timeouts": {}}), &["/workflow"]),
        (json!({"sleep_until": "x"}), &["/sleep_until"]),
        (json!({"fail": {"code": "A"}}), &["/fail"]),
        (json!({"continue_as_new": {}}), &["/continue_as_new"]),
        (json!({"task": "a", "catch": [], "compensate": {}, "concurrency": {}}), &["/catch", "/compensate", "/concurrency"]),
        (json!({"compute": 1, "catch": []}), &["/catch"]),
        (json!({"steps": []}), &["/steps"]),
    ] {
        let found = problems(&with_step(step.clone()));
        let places: Vec<_> = found.iter().map(|problem| problem.pointer.trim_start_matches("/steps/1")).collect();
        assert_eq!(places, pointers, "{step}: {found:#?}");
        assert!(found.iter().all(|p| p.code == Code::Unsupported && p.message.contains("is not supported yet")), "{found:#?}");
    }
    let document = with(json!({"defaults": {"concurrency": {}}, "on": {"signal": {}, "cancel": []}}));
    let places: Vec<_> = problems(&document).into_iter().map(|problem| (problem.pointer, problem.code)).collect();
    let later = |pointer: &str| (pointer.to_owned(), Code::Unsupported);
    assert_eq!(places, [later("/defaults/concurrency"), later("/on/cancel"), later("/on/signal")]);
}

#[test]
fn every_problem_is_in_one_answer() {
    let document = json!({
        "ir_version": "sandkeep-ir/9",
        "name": "ORDER",
        "timeout": "soon",
        "input": {"type": "objekt", "properties": {"a": {"pattern": 1}}},
        "steps": [
            {"id": "a", "task": "t", "input": {"x": "${ steps.bb.output + nope }", "y": "${ 1 + }"}, "retry": {"factor": 0, "jitter": 2}},
            {"id": "b", "sleep": "x", "after": ["zzz"]},
            {"id": "b", "for_each": "${ input }"},
            {"id": "c", "compute": "${ steps.d.output }"},
            {"id": "d", "compute": "${ steps.c.output }"}
        ],
        "reslut": 1
    });
    let found: Vec<_> = problems(&document).into_iter().map(|p| format!("{} {}", p.pointer, p.code)).collect();
    assert_eq!(
        found,
        [
            " MISSING_KEY",
            "/input/properties/a/pattern SCHEMA",
            "/input/type SCHEMA",
            "/ir_version UNSUPPORTED_VERSION",
            "/name INVALID_VALUE",
            "/reslut UNKNOWN_KEY",
            "/steps/0/input/y EXPRESSION",
            "/steps/0/retry/factor INVALID_VALUE",
            "/steps/0/retry/jitter INVALID_VALUE",
            "/steps/1/after/0 UNKNOWN_STEP",
            "/steps/1/sleep DURATION",
            "/steps/2/for_each UNSUPPORTED",
            "/steps/2/id DUPLICATE_ID",
            "/steps/3 CYCLE",
            "/timeout DURATION",
        ]
    );
}

#[test]
fn cycles_are_printed() {
    let steps = json!([
        {"id": "x", "compute": "${ steps.c.output }"},
        {"id": "a", "compute": 1, "after": ["b"]},
        {"id": "b", "task": "t", "input": ["${ steps.c.status }"]},
        {"id": "c", "compute": 1, "when": "${ steps.a.output == 1 }"},
        {"id": "d", "sleep": "${ steps.e.output }"},
        {"id": "e", "compute": 1, "after": ["d"]},
    ]);
    let found = problems(&with(json!({"steps": steps})));
    let found: Vec<_> = found.iter().map(|p| (p.pointer.as_str(), p.code, p.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("/steps/1", Code::Cycle, "these steps wait for each other: a → b → c → a"),
            ("/steps/4", Code::Cycle, "these steps wait for each other: d → e → d"),
        ]
    );
    let ring: Vec<_> = (0..1000).map(|at| json!({"id": format!("s{at}"), "compute": 1, "after": [format!("s{}", (at + 1) % 1000)]})).collect();
    refused(&with(json!({"steps": ring})), "/steps/0", Code::Cycle, "s19 → … → s0");
}

/// The order example, as far as its forms run.
fn order() -> Value {
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
    assert_eq!(definition.step_ids().map(|id| id.as_str()).collect::<Vec<_>>(), ["validated", "priced", "approved", "nap", "charge", "receipt"]);
    assert_eq!(definition.task_names().map(|name| name.as_str()).collect::<Vec<_>>(), ["orders.price", "orders.validate", "payments.charge"]);
    let depends: Vec<Vec<u32>> = definition.plan.steps().iter().map(|step| step.depends_on.iter().map(|on| on.0).collect()).collect();
    assert_eq!(depends, [vec![], vec![0], vec![1], vec![1, 2], vec![1, 2], vec![4]]);
    assert!(matches!(&definition.plan.step(StepIndex(2)).kind, StepKind::Await(signal) if signal.as_str() == "approve"));
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
    assert!(matches!(&price.module, Some(ModuleRef::Alias(name, alias)) if name.as_str() == "orders" && alias.as_str() == "live"));
    assert!(matches!(&task(&definition, 0).module, Some(ModuleRef::Alias(_, alias)) if alias.as_str() == "stable"));
    assert_eq!(charge.retry.non_retryable.len(), 1);
    assert_eq!(charge.node.as_ref().map(|node| node.as_str()), Some("vault"));
}

#[test]
fn the_smallest_task_has_the_published_defaults() {
    let definition = definition(&with(json!({})));
    let task = task(&definition, 0);
    assert_eq!(task.retry, super::super::definition::Retry::default());
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

#[test]
fn hostile_texts_have_one_problem() {
    let deep = format!("{{\"ir_version\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, code, part) in [
        ("{", Code::InvalidJson, "EOF"),
        ("", Code::InvalidJson, ""),
        (r#"{"name":"a","name":"b"}"#, Code::InvalidJson, "`name` occurs twice"),
        (r#"{"steps":[{"id":"a","id":"b"}]}"#, Code::InvalidJson, "`id` occurs twice"),
        (r#"{"name":"\ud800"}"#, Code::InvalidJson, ""),
        (deep.as_str(), Code::Limit, "128 levels"),
        (&" ".repeat(1024 * 1024 + 1), Code::Limit, "1048577 bytes"),
    ] {
        let found = parse(text.as_bytes()).expect_err("it is refused");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].pointer.as_str(), found[0].code), ("", code));
        assert!(found[0].message.contains(part), "{found:?}");
    }
}

#[test]
fn hostile_expressions_are_problems() {
    let nested = format!("${{ {}1{} }}", "(".repeat(5_000), ")".repeat(5_000));
    refused(&with(json!({"result": nested})), "/result", Code::Expression, "");
    let found = problems(&with_step(json!({"compute": 1, "when": nested})));
    assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/steps/1/when"));
}

#[test]
fn the_number_of_steps_is_limited() {
    let steps = |count: usize| -> Value { (0..count).map(|at| json!({"id": format!("s{at}"), "compute": at})).collect() };
    assert_eq!(definition(&with(json!({"steps": steps(1_000)}))).steps.len(), 1_000);
    refused(&with(json!({"steps": steps(1_001)})), "/steps", Code::Limit, "1001 steps; at most 1000");
    let few = Limits { steps: 2, ..Limits::default() };
    assert!(parse_within(with(json!({"steps": steps(3)})).to_string().as_bytes(), &few).is_err());
    assert!(definition(&with(json!({"steps": []}))).steps.is_empty());
}

#[test]
fn a_document_of_nothing_but_problems_is_answered() {
    let mut text = String::from(r#"{"steps":["#);
    for at in 0..900 {
        write!(text, r#"{{"id":"s{at}","task":"t","after":["zz{at}"],"input":["${{steps.qq{at}.output}}"],"x{at}":1}},"#).expect("it is written");
    }
    text.push_str("1]}");
    let found = parse(text.as_bytes()).expect_err("it is refused");
    assert_eq!(found.len(), problem::PROBLEMS_MAX + 1);
}

#[test]
fn the_schemas_of_a_document_share_one_allowance() {
    let big = json!({"enum": (0..30_000).collect::<Vec<_>>()});
    assert!(problems(&with(json!({"input": big}))).is_empty());
    refused(&with(json!({"input": big, "output": big})), "/output", Code::Limit, "together");
}

proptest! {
    #[test]
    fn any_step_is_answered(
        keys in prop::collection::btree_map(
            prop::sample::select(vec!["id", "task", "compute", "sleep", "await", "after", "when", "input", "retry", "timeouts",
                "timeout", "on_timeout", "module", "node", "target", "priority", "for_each", "x"]),
            prop::sample::select(vec![json!(null), json!("a"), json!("1s"), json!("${ input.a }"), json!("${ steps.a.output }"),
                json!(["a", "reserve"]), json!({"max": "1s"}), json!({"total": "${ steps.reserve.output }"}), json!(5), json!("${ ("), json!("approve")]),
            0..6,
        )
    ) {
        let step: Value = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<serde_json::Map<_, _>>().into();
        let document = with(json!({"steps": [{"id": "reserve", "task": "t"}, step]}));
        match parse(document.to_string().as_bytes()) {
            Ok(parsed) => prop_assert_eq!(parsed.definition.steps.len(), 2),
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    let (parent, _) = problem.pointer.rsplit_once('/').unwrap_or(("", ""));
                    prop_assert!(document.pointer(parent).is_some(), "{:?} points at nothing", problem);
                }
            }
        }
    }

    #[test]
    fn the_hash_survives_reading_and_printing(spaces in "[ \n\t]{0,3}", text in "\\PC{0,12}") {
        let mut document = order();
        let hash = definition(&document).hash;
        document["description"] = text.clone().into();
        document["steps"][0]["description"] = text.into();
        let printed = serde_json::to_string_pretty(&document).expect("it prints").replace("\n  ", &format!("\n{spaces}"));
        prop_assert_eq!(parse(printed.as_bytes()).expect("accepted").definition.hash, hash);
    }
}

/// The page that users read.
const PAGE: &str = include_str!("../../../docs/workflow.md");

#[test]
fn the_examples_of_the_page_are_accepted() {
    let examples: Vec<_> =
        PAGE.split("```json workflow\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert!(examples.len() >= 5, "the page has its examples");
    for example in examples {
        if let Err(problems) = parse(example.as_bytes()) {
            panic!("{example}\nis refused: {problems:#?}");
        }
    }
}

#[test]
fn the_page_prints_a_graph_as_the_server_does() {
    let example = PAGE.split("```json workflow\n").find(|text| text.contains("\"name\": \"diamond\"")).expect("the example");
    let parsed = parse(example.split("\n```").next().expect("its text").as_bytes()).expect("it is accepted");
    let printed = graph(&parsed.definition);
    let (_, steps) = printed.split_once('\n').expect("lines");
    assert!(PAGE.contains(steps), "{printed}");
}

#[test]
fn the_page_lists_every_code() {
    for code in Code::ALL {
        assert!(PAGE.contains(&format!("| `{code}` |")), "{code} is missing");
    }
    // Codes of child executions come with them.
    for (code, retried) in code::TABLE.iter().filter(|(code, _)| !code.starts_with("CHILD_")) {
        let word = match retried {
            Retried::Yes => "yes",
            Retried::Once => "once",
            Retried::No => "no",
        };
        let row = |line: &str| line.starts_with(&format!("| `{code}` |")) && line.ends_with(&format!("| {word} |"));
        assert!(PAGE.lines().any(row), "{code}: {word}");
    }
}
