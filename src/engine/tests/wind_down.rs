//! Failure, cancel and time-out: what is open is stopped, what is out is waited for.

use super::*;
use crate::model::Status;

fn busy() -> Bench {
    Bench::started(json!([
        { "id": "a", "task": "t.work" },
        { "id": "nap", "sleep": "1h" },
        { "id": "ok", "await": "go" },
        { "id": "later", "task": "t.work", "after": ["a"] }
    ]))
}

#[test]
fn cancel_ends_waits_at_once_and_waits_for_work() {
    let mut bench = busy();
    bench.cancel().unwrap();
    assert_eq!(bench.execution.status, Status::Compensating);
    assert_eq!(bench.status("nap"), UnitStatus::Cancelled);
    assert_eq!(bench.status("ok"), UnitStatus::Cancelled);
    assert_eq!(bench.status("a"), UnitStatus::Scheduled);
    assert!(bench.effects.contains(&Effect::Stop(unit("a"), 1)));
    bench.cancel().unwrap();
    assert!(bench.succeed("a"), "a success in the grace is recorded");
    assert_eq!(bench.status("a"), UnitStatus::Succeeded);
    assert_eq!(bench.status("later"), UnitStatus::Pending, "nothing more starts");
    assert_eq!(bench.execution.status, Status::Cancelled);
    let events = bench.history.len();
    assert_eq!(bench.cancel(), Ok(Answer::Done), "cancel again is done");
    assert_eq!(bench.history.len(), events);
    bench.check_fold();
}

#[test]
fn a_unit_that_is_still_queued_is_taken_back() {
    let mut bench = busy();
    bench.cancel().unwrap();
    bench.ask(Command::Stopped { unit: unit("a"), attempt: 1 }).unwrap();
    assert_eq!(bench.tail(2), ["StepCancelled a", "WorkflowCancelled"]);
}

#[test]
fn a_failure_or_silence_in_the_grace_ends_cancelled() {
    let mut bench = busy();
    bench.cancel().unwrap();
    bench.fail("a", "BUSY", true);
    assert_eq!(bench.tail(3), ["StepAttemptFailed a", "StepCancelled a", "WorkflowCancelled"]);
    assert!(!bench.unit("a").more().unwrap().uncertain);

    let mut bench = busy();
    bench.cancel().unwrap();
    bench.advance(30_000);
    bench.timer("grace:a").unwrap();
    assert!(bench.unit("a").more().unwrap().uncertain);
    assert_eq!(bench.execution.status, Status::Cancelled);

    let mut bench = busy();
    bench.cancel().unwrap();
    bench.lose("a", 1).unwrap();
    assert_eq!(bench.tail(3), ["StepAttemptUncertain a", "StepCancelled a", "WorkflowCancelled"]);
    bench.check_fold();
}

#[test]
fn an_uncaught_failure_stops_the_rest_and_keeps_its_cause() {
    let mut bench = Bench::started(
        json!([{ "id": "a", "task": "t.work" }, { "id": "b", "task": "t.work" }, { "id": "nap", "sleep": "1h" }]),
    );
    bench.fail("a", "OUT_OF_STOCK", false);
    assert_eq!(bench.execution.status, Status::Compensating);
    bench.cancel().unwrap();
    bench.ask(Command::Stopped { unit: unit("b"), attempt: 1 }).unwrap();
    assert_eq!(bench.execution.status, Status::Failed, "one cause per run, the first");
    assert_eq!(bench.error().code, "OUT_OF_STOCK");
    bench.check_fold();
}

#[test]
fn the_documents_timeout_winds_down() {
    let mut document = document(json!([{ "id": "nap", "sleep": "1h" }]));
    document["timeout"] = json!("10m");
    let mut bench = Bench::new(&document);
    bench.start("{}").unwrap();
    bench.advance(600_000);
    bench.timer("workflow").unwrap();
    assert_eq!(bench.tail(4), ["TimerFired", "WorkflowTimeoutReached", "StepCancelled nap", "WorkflowTimedOut"]);
    assert_eq!(bench.execution.status, Status::TimedOut);
    bench.check_fold();
}

#[test]
fn winding_down_is_cut_short_in_the_end() {
    let mut bench = busy();
    bench.facts.limits.cancel_grace = crate::model::Millis(10_000_000);
    bench.facts.limits.wind_down_timeout = crate::model::Millis(1_000);
    bench.cancel().unwrap();
    bench.advance(1_000);
    bench.timer("wind_down").unwrap();
    assert_eq!(bench.execution.status, Status::Cancelled);
    bench.check_fold();
}

#[test]
fn cancel_and_a_due_timer_leave_exactly_one_end() {
    // C014, in both orders.
    for timer_first in [true, false] {
        let mut bench =
            Bench::started(json!([{ "id": "nap", "sleep": "1s" }, { "id": "nap2", "sleep": "1h", "after": ["nap"] }]));
        bench.advance(1_000);
        if timer_first {
            bench.timer("sleep:nap").unwrap();
            bench.cancel().unwrap();
        } else {
            bench.cancel().unwrap();
            assert_eq!(bench.timer("sleep:nap"), Err(Refusal::Over));
        }
        assert_eq!(bench.execution.status, Status::Cancelled);
        let ends = bench
            .story()
            .iter()
            .filter(|kind| kind.ends_with(" nap") && !kind.contains("Started") && !kind.contains("Scheduled"))
            .count();
        assert_eq!(ends, if timer_first { 2 } else { 1 }, "{:?}", bench.story());
        bench.check_fold();
    }
}
