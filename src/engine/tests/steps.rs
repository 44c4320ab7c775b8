//! Steps: order, expressions, timers, signals, retries, time-outs, module resolution.

use super::*;
use crate::model::{
    Alias, Digest, ModuleName, Status,
    execution::Target,
    facts::{Builtin, TaskSpec},
    id::{ContractVersion, TaskName},
};

fn task(id: &str) -> Value {
    json!({ "id": id, "task": "t.work" })
}

#[test]
fn steps_start_when_what_they_name_is_resolved() {
    let mut bench = Bench::new(&json!({
        "ir_version": "sandkeep-ir/1", "name": "w", "version": "1",
        "steps": [
            { "id": "c", "task": "t.work", "input": { "x": "${ steps.a.output.done }" } },
            { "id": "a", "task": "t.work" },
            { "id": "b", "task": "t.work", "after": ["a"] },
            { "id": "sum", "compute": { "n": "${ 1 + 1 }" }, "after": ["b", "c"] }
        ],
        "result": { "sum": "${ steps.sum.output.n }" }
    }));
    bench.start("{}").unwrap();
    assert_eq!(bench.story(), ["WorkflowCreated", "WorkflowStarted", "StepScheduled a"]);
    bench.succeed("a");
    assert_eq!(bench.tail(3), ["StepSucceeded a", "StepScheduled c", "StepScheduled b"]);
    assert_eq!(bench.unit("c").more().unwrap().input.as_ref().unwrap().as_str(), r#"{"x":true}"#);
    bench.succeed("c");
    bench.succeed("b");
    assert_eq!(bench.tail(3), ["StepSucceeded b", "StepSucceeded sum", "WorkflowCompleted"]);
    assert_eq!(bench.output(), json!({ "sum": 2 }));
    bench.check_fold();
}

#[test]
fn a_step_whose_when_fails_to_hold_is_skipped() {
    let bench = Bench::started(json!([
        { "id": "a", "when": "${ 1 > 2 }", "task": "t.work" },
        { "id": "b", "compute": "${ steps.a.status }" }
    ]));
    assert_eq!(bench.tail(3), ["StepSkipped a", "StepSucceeded b", "WorkflowCompleted"]);
    assert_eq!(bench.unit("b").output.as_ref().unwrap().as_str(), r#""SKIPPED""#);
}

#[test]
fn a_failing_expression_fails_its_step_with_the_pointer() {
    let bench = Bench::started(json!([{ "id": "a", "task": "t.work", "input": { "x": "${ input.missing }" } }]));
    assert_eq!(bench.tail(2), ["StepFailed a", "WorkflowFailed a"]);
    let error = bench.error();
    assert_eq!(error.code, "EXPRESSION_ERROR");
    assert_eq!(error.details.unwrap().to_value()["pointer"], "/steps/0/input/x");
}

#[test]
fn a_start_is_recognised_by_its_request() {
    let mut bench = Bench::started(json!([task("a")]));
    assert_eq!(bench.start("{}"), Ok(Answer::Started { created: false }));
    assert_eq!(bench.start("[]"), Err(Refusal::Conflict));
    assert_eq!(bench.history.len(), 3);
}

#[test]
fn a_delayed_start_waits_for_its_timer() {
    let mut bench = Bench::new(&document(json!([task("a")])));
    let start = Start {
        workflow: bench.definition.name.clone(),
        version: bench.definition.version.clone(),
        definition_hash: bench.definition.hash.clone(),
        input: Payload::trusted("{}"),
        labels: Default::default(),
        request_hash: String::new(),
        start_at: Some(Timestamp(5_000)),
    };
    bench.ask(Command::Start(start)).unwrap();
    assert_eq!(bench.timer("start"), Err(Refusal::NotDue(Timestamp(5_000))));
    bench.advance(4_000);
    bench.timer("start").unwrap();
    assert_eq!(bench.tail(3), ["TimerFired", "WorkflowStarted", "StepScheduled a"]);
    bench.check_fold();
}

#[test]
fn due_timer_resolves_the_sleeping_step() {
    let mut bench = Bench::started(json!([{ "id": "nap", "sleep": "1m" }]));
    assert_eq!(bench.timer("sleep:nap"), Err(Refusal::NotDue(Timestamp(61_000))));
    bench.advance(60_000);
    bench.timer("sleep:nap").unwrap();
    assert_eq!(bench.tail(3), ["TimerFired nap", "StepSucceeded nap", "WorkflowCompleted"]);
    assert_eq!(bench.timer("sleep:nap"), Err(Refusal::Over), "a timer fires once");
}

#[test]
fn a_signal_before_the_wait_counts() {
    // C008: with the start, while an earlier task runs, and after the wait began.
    for when in ["early", "late"] {
        let mut bench = Bench::started(json!([
            task("a"),
            { "id": "ok", "await": "go", "timeout": "10s", "after": ["a"] },
            { "id": "ok2", "await": "go", "after": ["ok"] }
        ]));
        if when == "early" {
            bench.signal("go", "1").unwrap();
            bench.signal("go", "2").unwrap();
            bench.succeed("a");
        } else {
            bench.succeed("a");
            bench.signal("go", "1").unwrap();
            bench.signal("go", "2").unwrap();
        }
        assert_eq!(bench.execution.status, Status::Completed, "C008 {when}");
        assert_eq!(bench.unit("ok").output.as_ref().unwrap().as_str(), "1");
        assert_eq!(bench.unit("ok2").output.as_ref().unwrap().as_str(), "2");
        assert!(bench.execution.timers.is_empty());
        bench.check_fold();
    }
}

#[test]
fn an_await_that_times_out_fails_or_is_null() {
    for (on_timeout, status) in [("fail", Status::Failed), ("null", Status::Completed)] {
        let mut bench =
            Bench::started(json!([{ "id": "ok", "await": "go", "timeout": "1s", "on_timeout": on_timeout }]));
        bench.advance(1_000);
        bench.timer("await:ok").unwrap();
        assert_eq!(bench.execution.status, status);
        assert_eq!(bench.signal("go", "1"), Err(Refusal::Closed(status.as_str())), "C009");
    }
}

#[test]
fn an_undeclared_signal_is_refused() {
    let mut bench = Bench::started(json!([task("a")]));
    assert!(matches!(bench.signal("other", "1"), Err(Refusal::UnknownSignal(_))));
}

#[test]
fn retries_follow_their_policy_and_keep_their_input() {
    let mut bench = Bench::started(json!([{
        "id": "a", "task": "t.work", "input": { "n": 1 },
        "retry": { "max_attempts": 3, "initial": "10s", "factor": 2, "jitter": 0 }
    }]));
    bench.fail("a", "BUSY", true);
    assert_eq!(bench.tail(2), ["StepAttemptFailed a", "RetryScheduled a"]);
    assert_eq!(bench.unit("a").more().unwrap().wake_at, Some(Timestamp(11_000)));
    bench.advance(10_000);
    bench.timer("retry:2:a").unwrap();
    assert_eq!(bench.unit("a").attempt, 2);
    bench.fail("a", "BUSY", true);
    assert_eq!(bench.unit("a").more().unwrap().wake_at, Some(Timestamp(31_000)));
    assert_eq!(bench.timer("retry:2:a"), Err(Refusal::Over), "C013: a timer of an earlier attempt fires into nothing");
    bench.advance(20_000);
    bench.timer("retry:3:a").unwrap();
    bench.fail("a", "BUSY", true);
    assert_eq!(bench.tail(3), ["StepAttemptFailed a", "StepFailed a", "WorkflowFailed a"], "C007");
    let inputs = bench.effects.iter().filter_map(|effect| match effect {
        Effect::Ready(row, input) => Some((row.attempt, input.as_str().to_owned())),
        _ => None,
    });
    assert_eq!(inputs.collect::<Vec<_>>(), [1, 2, 3].map(|attempt| (attempt, r#"{"n":1}"#.to_owned())));
    bench.check_fold();
}

#[test]
fn a_tasks_own_delay_replaces_the_computed_one() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work", "timeouts": { "total": "1m" } }]));
    let mut failure = Failure::task(Code::new("BUSY").unwrap(), "", true);
    failure.retry_after_ms = Some(3_600_000);
    bench.report("a", 1, 1, Err(failure));
    assert_eq!(bench.unit("a").more().unwrap().wake_at, Some(Timestamp(61_000)), "never past `timeouts.total`");
}

#[test]
fn a_final_error_is_not_retried() {
    let mut bench = Bench::started(json!([task("a")]));
    bench.fail("a", "OUT_OF_STOCK", false);
    assert_eq!(bench.tail(3), ["StepAttemptFailed a", "StepFailed a", "WorkflowFailed a"]);
}

#[test]
fn total_time_is_over_all_attempts() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work", "timeouts": { "total": "5s" } }]));
    bench.fail("a", "BUSY", true);
    bench.advance(5_000);
    bench.timer("total:a").unwrap();
    assert_eq!(bench.error().code, "TOTAL_TIMEOUT");
    assert_eq!(bench.execution.status, Status::Failed);
    bench.check_fold();
}

#[test]
fn a_long_turn_is_cut_and_goes_on() {
    let steps: Vec<Value> = (0..900).map(|n| json!({ "id": format!("s{n}"), "compute": n })).collect();
    let bench = Bench::started(Value::Array(steps));
    assert_eq!(bench.execution.status, Status::Completed);
    assert!(bench.effects.contains(&Effect::Continue));
    bench.check_fold();
}

#[test]
fn a_large_value_is_refused_where_it_is_made() {
    let steps = json!([{ "id": "a", "task": "t.work", "input": "${ input }" }]);
    let mut bench = Bench::new(&document(steps));
    bench.facts.limits.payload_bytes = 100;
    bench.start(&format!("\"{}\"", "x".repeat(200))).unwrap();
    assert_eq!(bench.error().code, "PAYLOAD_TOO_LARGE", "C038: there is no row");
    assert!(!bench.effects.iter().any(|effect| matches!(effect, Effect::Ready(..))));
}

#[test]
fn a_run_cannot_outgrow_its_limits() {
    let mut bench = Bench::new(&document(json!([task("a"), { "id": "b", "task": "t.work", "after": ["a"] }])));
    bench.facts.limits.state_bytes = 10;
    bench.start("{}").unwrap();
    bench.succeed("a");
    assert_eq!(bench.error().code, "LIMIT_EXCEEDED");
    assert_eq!(bench.execution.status, Status::Failed);
}

#[test]
fn now_is_recorded_and_never_runs_back() {
    let mut bench = Bench::started(json!([
        { "id": "t0", "compute": "${ now_ms }" },
        { "id": "nap", "sleep": "1h", "after": ["t0"] },
        { "id": "d", "compute": "${ now_ms - steps.t0.output }", "after": ["nap"] }
    ]));
    bench.advance(3_600_000);
    bench.timer("sleep:nap").unwrap();
    assert_eq!(bench.unit("d").output.as_ref().unwrap().as_str(), "3600000", "C032");
    bench.now = Timestamp(0);
    assert_eq!(bench.cancel(), Err(Refusal::Closed("COMPLETED")));
    bench.check_fold();
}

fn spec(name: &str, version: &str) -> TaskSpec {
    TaskSpec {
        name: TaskName::new(name).unwrap(),
        version: ContractVersion::new(version).unwrap(),
        description: None,
        input_schema: None,
        output_schema: None,
    }
}

/// A tenant with a built-in `core.echo` and a module `m` whose digests 1 and 2 describe `t.work` 1.0 and 1.2.
pub(super) fn facts() -> Facts {
    let digest = |n: u8| Digest::of(&[n]);
    let module = ModuleName::new("m").unwrap();
    let mut facts = Facts {
        builtin: Some(Builtin { digest: digest(0), tasks: vec![spec("core.echo", "1.0")].into() }),
        ..Facts::default()
    };
    facts.described.insert((module.clone(), digest(1)), vec![spec("t.work", "1.0")].into());
    facts.described.insert((module.clone(), digest(2)), vec![spec("t.work", "1.2")].into());
    facts.modules.insert(module.clone(), [(Alias::live(), digest(1)), (Alias::new("next").unwrap(), digest(2))].into());
    facts.live.insert(TaskName::new("t.work").unwrap(), module);
    facts
}

#[test]
fn the_target_is_resolved_in_the_documented_order() {
    let two = Digest::of(&[2]);
    let named = format!("m@{two}");
    type Resolved = Result<(Target, Option<Digest>), &'static str>;
    let rows: [(Value, Resolved); 9] = [
        (json!({ "task": "core.echo" }), Ok((Target::Module, Some(Digest::of(&[0]))))),
        (json!({ "task": "t.work" }), Ok((Target::Module, Some(Digest::of(&[1]))))),
        (json!({ "task": "t.work", "target": "worker" }), Ok((Target::Worker, None))),
        (json!({ "task": "t.other" }), Ok((Target::Worker, None))),
        (json!({ "task": "t.other", "target": "module" }), Err("MODULE_NOT_FOUND")),
        (json!({ "task": "t.work", "module": "m@next" }), Ok((Target::Module, Some(two.clone())))),
        (json!({ "task": "t.work", "module": named }), Ok((Target::Module, Some(two)))),
        (json!({ "task": "t.work", "module": "gone" }), Err("MODULE_NOT_FOUND")),
        (json!({ "task": "t.other", "module": "m" }), Err("MODULE_NOT_FOUND")),
    ];
    for (mut step, expected) in rows {
        step["id"] = json!("a");
        let mut bench = Bench::new(&document(json!([step])));
        bench.facts = facts();
        bench.start("{}").unwrap();
        match expected {
            Ok((target, digest)) => {
                let more = bench.unit("a").more().unwrap_or_else(|| panic!("{step}"));
                assert_eq!(more.target, Some(target), "{step}");
                assert_eq!(more.module.as_ref().map(|pin| pin.digest.clone()), digest, "{step}");
            }
            Err(code) => assert_eq!(bench.error().code, code, "{step}"),
        }
    }
}

#[test]
fn a_run_keeps_the_digest_that_it_first_used() {
    let mut bench = Bench::new(&document(json!([task("a"), { "id": "b", "task": "t.work", "after": ["a"] }])));
    bench.facts = facts();
    bench.start("{}").unwrap();
    let module = ModuleName::new("m").unwrap();
    bench.facts.modules.get_mut(&module).unwrap().insert(Alias::live(), Digest::of(&[2]));
    bench.succeed("a");
    assert_eq!(bench.unit("b").more().unwrap().module.as_ref().unwrap().digest, Digest::of(&[1]), "C074");
    bench.check_fold();
}

#[test]
fn a_module_must_serve_the_version_asked_for() {
    let mut document = document(json!([{ "id": "a", "task": "t.work", "module": "m" }]));
    document["contracts"] = json!({ "t.work": { "version": "1.1" } });
    let mut bench = Bench::new(&document);
    bench.facts = facts();
    bench.start("{}").unwrap();
    assert_eq!(bench.error().code, "MODULE_NOT_FOUND");
    document["steps"][0]["module"] = json!("m@next");
    let mut bench = Bench::new(&document);
    bench.facts = facts();
    bench.start("{}").unwrap();
    assert_eq!(bench.status("a"), UnitStatus::Scheduled);
}

fn with_output_schema(result: &str) -> Bench {
    let mut document = document(json!([{ "id": "a", "task": "t.work" }]));
    document["output"] = json!({ "type": "object", "properties": { "done": { "const": true } } });
    document["result"] = result.into();
    let mut bench = Bench::new(&document);
    bench.start("{}").unwrap();
    bench
}

#[test]
fn a_result_is_checked_before_the_run_ends_with_it() {
    for (result, ended) in [("${ steps.a.output }", "WorkflowCompleted"), ("${ {'done': 1} }", "WorkflowFailed")] {
        let mut bench = with_output_schema(result);
        bench.succeed("a");
        assert_eq!(bench.story().last().unwrap(), ended, "{result}");
    }
}

#[test]
fn between_a_result_and_its_verdict_the_run_goes_on_by_itself() {
    let mut bench = with_output_schema("${ {'done': true, 'at': now_ms} }");
    bench.checks = false;
    bench.succeed("a");
    assert_eq!(bench.story().last().unwrap(), "StepSucceeded a");
    assert_eq!(bench.execution.waiting(), crate::model::row::Waiting::Turn);
    let to_check = |bench: &Bench| match bench.effects.last() {
        Some(Effect::Check(at, result)) => (*at, result.clone()),
        other => panic!("{other:?}"),
    };
    let (at, result) = to_check(&bench);
    // A start of the server asks again, later.
    bench.advance(10);
    bench.ask(Command::Continue).unwrap();
    let (later, other) = to_check(&bench);
    assert!(later > at && other != result);
    // What the run learnt meanwhile moves its time, so that the result is another one and is checked anew.
    bench.signal("go", "1").unwrap();
    let seq = bench.execution.last_seq;
    bench.ask(Command::Checked(Checked { at, result: result.clone(), verdict: Ok(()) })).unwrap();
    assert_eq!(bench.execution.last_seq, seq);
    let (at, result) = to_check(&bench);
    bench.advance(10);
    bench.ask(Command::Checked(Checked { at, result: result.clone(), verdict: Ok(()) })).unwrap();
    assert_eq!((bench.story().last().unwrap().as_str(), bench.output()), ("WorkflowCompleted", result.to_value()));
    assert_eq!(bench.ask(Command::Checked(Checked { at, result, verdict: Ok(()) })), Err(Refusal::Over));
}

#[test]
fn a_cancel_before_the_verdict_cancels() {
    let mut bench = with_output_schema("${ steps.a.output }");
    bench.checks = false;
    bench.succeed("a");
    let Some(Effect::Check(at, result)) = bench.effects.last().cloned() else { panic!("it is to be checked") };
    bench.cancel().unwrap();
    assert_eq!(bench.ask(Command::Checked(Checked { at, result, verdict: Ok(()) })), Err(Refusal::Over));
    assert_eq!(bench.story().last().unwrap(), "WorkflowCancelled");
}
