//! How deliveries end: each unit is resolved once.

use super::*;
use crate::model::{Status, execution::STALE_MAX};

fn one_task() -> Bench {
    Bench::started(
        json!([{ "id": "a", "task": "t.work", "retry": { "max_attempts": 2, "max_redeliveries": 2, "jitter": 0 } }]),
    )
}

#[test]
fn the_same_outcome_twice_is_accepted_and_recorded_once() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work" }, { "id": "b", "task": "t.work" }]));
    assert!(bench.report("a", 1, 7, Ok("1")));
    let events = bench.history.len();
    assert!(bench.report("a", 1, 7, Ok("1")), "C053");
    assert_eq!(bench.history.len(), events);
    assert!(!bench.report("a", 1, 7, Err(Failure::engine("TIMEOUT", ""))), "its other outcome is stale");
    assert!(!bench.report("a", 1, 8, Ok("2")), "C044: another delivery is stale");
    assert_eq!(bench.tail(2), ["StaleResultIgnored a", "StaleResultIgnored a"]);
    assert!(!bench.report("a", 1, 8, Ok("2")));
    assert_eq!(bench.history.len(), events + 2, "recorded once per delivery");
    bench.check_fold();
}

#[test]
fn stale_reports_are_bounded_and_end_with_the_run() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work" }, { "id": "b", "task": "t.work" }]));
    bench.succeed("a");
    for delivery in 0..100 {
        assert!(!bench.report("a", 1, delivery, Ok("0")));
    }
    let stale = bench.story().iter().filter(|kind| kind.starts_with("StaleResultIgnored")).count();
    assert_eq!(stale, STALE_MAX);
    bench.succeed("b");
    assert_eq!(bench.execution.status, Status::Completed);
    let events = bench.history.len();
    assert!(!bench.report("b", 1, 99, Ok("0")));
    assert!(bench.succeed("b"), "the delivery that decided repeats itself");
    assert_eq!(bench.history.len(), events, "nothing follows a terminal event");
}

#[test]
fn a_late_success_counts_while_the_unit_is_unresolved() {
    let mut bench = one_task();
    bench.lose("a", 1).unwrap();
    assert!(bench.report("a", 1, 1, Ok("1")), "the lost delivery was only slow");
    assert_eq!(bench.execution.status, Status::Completed);
    let mut bench = one_task();
    bench.fail("a", "BUSY", true);
    assert!(bench.report("a", 1, 5, Ok("1")), "another delivery of the failed attempt succeeded");
    assert_eq!(bench.execution.status, Status::Completed);
    assert!(bench.execution.timers.is_empty());
    bench.check_fold();
}

#[test]
fn a_late_failure_of_an_earlier_attempt_is_stale() {
    let mut bench = one_task();
    bench.fail("a", "BUSY", true);
    bench.advance(1_000);
    bench.timer("retry:2:a").unwrap();
    assert!(!bench.report("a", 1, 9, Err(Failure::engine("TIMEOUT", ""))), "C028");
    assert_eq!(bench.status("a"), UnitStatus::Scheduled);
}

#[test]
fn a_loss_costs_no_attempt_until_they_are_too_many() {
    let mut bench = one_task();
    for delivery in 1..=2 {
        bench.lose("a", delivery).unwrap();
        assert_eq!((bench.unit("a").attempt, bench.status("a")), (1, UnitStatus::Scheduled));
        let Some(Effect::Ready(row, _)) = bench.effects.last() else { panic!("ready again") };
        assert_eq!((row.attempt, row.losses, row.redelivery), (1, u32::try_from(delivery).unwrap(), true));
    }
    assert_eq!(bench.lose("a", 2), Err(Refusal::Over), "a delivery is lost once");
    bench.lose("a", 3).unwrap();
    assert_eq!(bench.tail(3), ["StepAttemptUncertain a", "StepAttemptFailed a", "RetryScheduled a"]);
    assert_eq!(bench.unit("a").more().unwrap().last_error.as_ref().unwrap().code, "WORKER_LOST");
    bench.advance(60_000);
    bench.timer("retry:2:a").unwrap();
    for delivery in 4..=6 {
        bench.lose("a", delivery).unwrap();
    }
    assert_eq!(bench.error().code, "WORKER_LOST", "C048");
    bench.check_fold();
}

#[test]
fn a_trap_is_retried_once_per_unit() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work", "retry": { "max_attempts": 5 } }]));
    bench.report("a", 1, 1, Err(Failure::sandbox("TRAP", "unreachable")));
    bench.advance(60_000);
    bench.timer("retry:2:a").unwrap();
    bench.report("a", 2, 2, Err(Failure::sandbox("TRAP", "unreachable")));
    assert_eq!(bench.error().code, "TRAP");
    assert_eq!(bench.execution.status, Status::Failed);
}

#[test]
fn progress_is_recorded_before_another_delivery() {
    let mut bench = one_task();
    let lost = Lost {
        unit: unit("a"),
        attempt: 1,
        delivery: DeliveryId(1),
        served: None,
        progress: Some(Payload::trusted("42")),
        reason: "gone".into(),
    };
    bench.ask(Command::Lost(lost)).unwrap();
    assert_eq!(bench.tail(2), ["ProgressRecorded a", "StepAttemptUncertain a"]);
    assert_eq!(bench.unit("a").more().unwrap().progress.as_ref().unwrap().as_str(), "42");
}

#[test]
fn a_report_on_something_unknown_is_stale() {
    let mut bench = Bench::started(json!([{ "id": "a", "task": "t.work" }, { "id": "nap", "sleep": "1h" }]));
    for key in ["other", "nap"] {
        let report = Report {
            unit: unit(key),
            attempt: 1,
            delivery: Some(DeliveryId(1)),
            served: None,
            progress: None,
            outcome: Ok(Payload::null()),
        };
        assert_eq!(bench.ask(Command::Report(report)), Ok(Answer::Reported { accepted: false }));
    }
}
