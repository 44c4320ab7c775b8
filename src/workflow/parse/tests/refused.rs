//! Tables of what is refused, with place, code and a part of the sentence.

use super::*;

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
        (
            json!({"signals": {"approve": {"payload": {"required": 1}}}}),
            "/signals/approve/payload/required",
            Schema,
            "",
        ),
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
        (
            json!({"definition_hash": "sha256:0"}),
            "/definition_hash",
            HashMismatch,
            "the hash of this document is sha256:",
        ),
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
        (
            json!({"sleep": "1s", "queue": "q"}),
            "/queue",
            UnknownKey,
            "belongs to a step with `task`, not to one with `sleep`",
        ),
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
        (
            json!({"await": "approve", "timeout": "1s", "on_timeout": null}),
            "/on_timeout",
            InvalidValue,
            "must be a string",
        ),
        (
            json!({"await": "approve", "timeout": "1s", "on_timeout": "nul"}),
            "/on_timeout",
            InvalidValue,
            "`fail`, `null`",
        ),
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
        (
            json!({"input": {"sku": "${ steps.reserv.output }"}}),
            "/input/sku",
            UnknownStep,
            "unknown step \"reserv\"; did you mean \"reserve\"?",
        ),
    ] {
        let mut step = options.clone();
        step["task"] = "a.b".into();
        refused(&with_step(step), &format!("/steps/1{pointer}"), code, part);
        // The same options as defaults have the same problem, once, at their own place.
        if options.get("input").is_none() && !part.contains("worker") && code != MissingKey && code != UnknownStep {
            let document =
                with(json!({"defaults": options, "steps": [{"id": "a", "task": "a"}, {"id": "b", "task": "a"}]}));
            refused(&document, &format!("/defaults{pointer}"), code, part);
        }
    }
    refused(
        &with(json!({"defaults": {"timeouts": {"total": "${ steps.reserve.output }"}}})),
        "/defaults/timeouts/total",
        Expression,
        "steps cannot be read here",
    );
    refused(
        &with(json!({"defaults": {"node": "gpu"}, "steps": [{"id": "a", "task": "a", "target": "module"}]})),
        "/steps/0",
        InvalidValue,
        "node",
    );
    refused(&with(json!({"defaults": {"retires": {}}})), "/defaults/retires", UnknownKey, "\"retry\"");
}

#[test]
fn forms_of_later_parts_are_named() {
    for (step, pointers) in [
        (
            json!({"for_each": "${ input.l }", "as": "x", "max_parallel": 2, "tolerate_failures": 1, "steps": [], "yield": 1}),
            &["/for_each"][..],
        ),
        (json!({"switch": []}), &["/switch"]),
        (json!({"repeat": {}, "steps": [], "yield": 1}), &["/repeat"]),
        (
            json!({"workflow": "w", "version": "1", "input": {}, "on_parent_close": "cancel", "retry": {}, "timeouts": {}}),
            &["/workflow"],
        ),
        (json!({"sleep_until": "x"}), &["/sleep_until"]),
        (json!({"fail": {"code": "A"}}), &["/fail"]),
        (json!({"continue_as_new": {}}), &["/continue_as_new"]),
        (
            json!({"task": "a", "catch": [], "compensate": {}, "concurrency": {}}),
            &["/catch", "/compensate", "/concurrency"],
        ),
        (json!({"compute": 1, "catch": []}), &["/catch"]),
        (json!({"steps": []}), &["/steps"]),
    ] {
        let found = problems(&with_step(step.clone()));
        let places: Vec<_> = found.iter().map(|problem| problem.pointer.trim_start_matches("/steps/1")).collect();
        assert_eq!(places, pointers, "{step}: {found:#?}");
        assert!(
            found.iter().all(|p| p.code == Code::Unsupported && p.message.contains("is not supported yet")),
            "{found:#?}"
        );
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
    let ring: Vec<_> = (0..1000)
        .map(|at| json!({"id": format!("s{at}"), "compute": 1, "after": [format!("s{}", (at + 1) % 1000)]}))
        .collect();
    refused(&with(json!({"steps": ring})), "/steps/0", Code::Cycle, "s19 → … → s0");
}
