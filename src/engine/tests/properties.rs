//! Properties over random documents and random commands.

use proptest::prelude::*;

use super::*;
use crate::{
    engine::{Repin, RepinTo, rows_of},
    model::{Digest, ModuleName},
};

/// One thing that may happen to an execution.
#[derive(Clone, Debug)]
enum Happening {
    Succeed(usize),
    Fail(usize, bool),
    Lose(usize, u128),
    Late(usize, u128),
    Signal,
    Cancel,
    Stopped(usize),
    Repin(bool),
    NextTimer,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        5 => any::<usize>().prop_map(Happening::Succeed),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(at, retryable)| Happening::Fail(at, retryable)),
        2 => (any::<usize>(), any::<u128>()).prop_map(|(at, delivery)| Happening::Lose(at, delivery)),
        1 => (any::<usize>(), any::<u128>()).prop_map(|(at, delivery)| Happening::Late(at, delivery)),
        2 => Just(Happening::Signal),
        1 => Just(Happening::Cancel),
        1 => any::<usize>().prop_map(Happening::Stopped),
        1 => any::<bool>().prop_map(Happening::Repin),
        5 => Just(Happening::NextTimer),
    ];
    proptest::collection::vec(one, 0..40)
}

/// Up to twelve steps of every kind, each after some of those before it.
fn steps() -> impl Strategy<Value = Value> {
    let one = (0u8..6, any::<u16>(), any::<bool>());
    proptest::collection::vec(one, 1..12).prop_map(|steps| {
        let step = |(at, (kind, after, when)): (usize, (u8, u16, bool))| {
            let mut step = match kind {
                0 => json!({ "compute": { "n": at } }),
                1 => json!({ "sleep": "10s" }),
                2 => json!({ "await": "go", "timeout": "1m", "on_timeout": "null" }),
                3 => json!({ "task": "t.work", "timeouts": { "total": "5m" } }),
                _ => json!({ "task": "t.work", "retry": { "max_attempts": 2, "max_redeliveries": 1 } }),
            };
            step["id"] = json!(format!("s{at}"));
            let after: Vec<String> =
                (0..at).filter(|before| after & (1 << before) != 0).map(|before| format!("s{before}")).collect();
            step["after"] = json!(after);
            if !when && at > 0 {
                step["when"] = json!(format!("${{ steps.s{}.status == \"SUCCEEDED\" }}", at - 1));
            }
            step
        };
        Value::Array(steps.into_iter().enumerate().map(step).collect())
    })
}

fn keys(bench: &Bench, status: UnitStatus) -> Vec<String> {
    let of = |index| bench.execution.unit(index).status == status;
    bench
        .definition
        .plan
        .indexes()
        .filter(|index| of(*index))
        .map(|index| bench.definition.plan.step(index).unit.to_string())
        .collect()
}

fn pick(keys: &[String], at: usize) -> Option<&String> {
    (!keys.is_empty()).then(|| &keys[at % keys.len()])
}

fn fire_next(bench: &mut Bench) {
    let Some((due, timer)) = bench.execution.timers_by_time.first().cloned() else { return };
    bench.now = bench.now.max(due);
    bench.ask(Command::TimerDue(timer)).unwrap();
}

fn happen(bench: &mut Bench, happening: &Happening) {
    bench.advance(100);
    let scheduled = keys(bench, UnitStatus::Scheduled);
    match happening {
        Happening::Succeed(at) => {
            if let Some(key) = pick(&scheduled, *at) {
                bench.succeed(key);
            }
        }
        Happening::Fail(at, retryable) => {
            if let Some(key) = pick(&scheduled, *at) {
                bench.fail(key, "BUSY", *retryable);
            }
        }
        Happening::Lose(at, delivery) => drop(pick(&scheduled, *at).map(|key| bench.lose(key, *delivery))),
        Happening::Late(at, delivery) => {
            let ended = keys(bench, UnitStatus::Succeeded);
            if let Some(key) = pick(&ended, *at) {
                bench.report(key, 1, *delivery, Ok("0"));
            }
        }
        Happening::Signal => drop(bench.signal("go", "1")),
        Happening::Cancel => drop(bench.cancel()),
        Happening::Stopped(at) => {
            drop(
                pick(&scheduled, *at)
                    .map(|key| bench.ask(Command::Stopped { unit: unit(key), attempt: bench.unit(key).attempt })),
            );
        }
        Happening::Repin(second) => {
            let digest = Digest::of(&[if *second { 2 } else { 1 }]);
            let module = ModuleName::new("m").unwrap();
            drop(bench.ask(Command::Repin(Repin { module, to: RepinTo::Digest(digest), leaving: None })));
        }
        Happening::NextTimer => fire_next(bench),
    }
}

/// An execution of these steps, served by a module or by workers.
fn begun(steps: Value, by_module: bool) -> Bench {
    let mut bench = Bench::new(&document(steps));
    if by_module {
        bench.facts = super::steps::facts();
    }
    bench.start("{}").unwrap();
    bench
}

/// The run needs what its pins mean and what its open units have, each digest once and nothing else.
fn check_held(bench: &Bench) {
    let execution = &bench.execution;
    let units = execution.units.iter().filter(|unit| unit.status.is_open());
    let used = units.filter_map(|unit| unit.more()?.module.as_ref().map(|pin| pin.digest.clone()));
    let needed: std::collections::BTreeSet<_> = used.chain(execution.pins.values().cloned()).collect();
    let mut held: Vec<_> = execution.held.iter().map(|held| held.digest.clone()).collect();
    held.sort();
    assert_eq!(held, needed.into_iter().collect::<Vec<_>>(), "{:?}", bench.story());
}

/// What must hold after whatever happened.
fn check(bench: &Bench) {
    bench.check_fold();
    check_held(bench);
    let terminal = bench.history.iter().position(|(event, _)| {
        matches!(
            event,
            Event::WorkflowCompleted(_)
                | Event::WorkflowFailed(_)
                | Event::WorkflowCancelled(_)
                | Event::WorkflowTimedOut(_)
        )
    });
    if let Some(at) = terminal {
        assert_eq!(at + 1, bench.history.len(), "nothing follows a terminal event: {:?}", bench.story());
    }
    let (ready, timers) = rows_of(&bench.execution, &bench.definition);
    if bench.execution.status.is_terminal() {
        assert!(ready.is_empty() && timers.is_empty());
        assert!(bench.execution.units.iter().all(|unit| !unit.status.is_open()));
    } else {
        let waits_for_signal = !bench.execution.awaiting.is_empty();
        assert!(
            !ready.is_empty() || !timers.is_empty() || waits_for_signal,
            "it waits for nothing: {:?}",
            bench.story()
        );
        let sentence = crate::engine::waiting_for(&bench.execution, &bench.definition).expect("it is not terminal");
        assert!(!sentence.contains("this is a fault"), "{sentence}");
    }
    let rows: std::collections::BTreeSet<&UnitKey> = ready.iter().map(|(row, _)| &row.unit.unit).collect();
    assert_eq!(rows, rows_by_effects(bench), "the effects leave the rows that the state must have");
    for index in bench.definition.plan.indexes() {
        let key = &bench.definition.plan.step(index).unit;
        let ends = bench.history.iter().filter(|(event, _)| {
            event.unit() == Some(key)
                && matches!(
                    event,
                    Event::StepSucceeded(_) | Event::StepFailed(_) | Event::StepCancelled(_) | Event::StepSkipped(_)
                )
        });
        assert!(ends.count() <= 1, "a unit ends once: {:?}", bench.story());
    }
}

/// The ready rows that carrying out every effect leaves.
fn rows_by_effects(bench: &Bench) -> std::collections::BTreeSet<&UnitKey> {
    let mut rows = std::collections::BTreeSet::new();
    for effect in &bench.effects {
        match effect {
            Effect::Ready(row, _) => {
                rows.insert(&row.unit.unit);
            }
            Effect::Withdraw(unit) => {
                rows.remove(unit);
            }
            _ => {}
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_history_tells_it(
        steps in steps(), happenings in happenings(), by_module in any::<bool>()
    ) {
        let mut bench = begun(steps, by_module);
        check(&bench);
        for happening in &happenings {
            happen(&mut bench, happening);
        }
        check(&bench);
    }

    #[test]
    fn every_execution_can_be_ended(steps in steps(), happenings in happenings(), cancel in any::<bool>()) {
        let mut bench = Bench::started(steps);
        for happening in &happenings {
            happen(&mut bench, happening);
        }
        if cancel {
            drop(bench.cancel());
        }
        // Work succeeds, timers fire, signals come: whatever it is, it ends.
        for _ in 0..200 {
            if bench.execution.status.is_terminal() {
                break;
            }
            match keys(&bench, UnitStatus::Scheduled).first().cloned() {
                Some(key) => {
                    bench.succeed(&key);
                }
                None if bench.execution.timers.is_empty() => drop(bench.signal("go", "1")),
                None => fire_next(&mut bench),
            }
        }
        prop_assert!(bench.execution.status.is_terminal(), "{:?}", bench.story());
        check(&bench);
    }

    #[test]
    fn the_same_commands_give_the_same_history(steps in steps(), happenings in happenings()) {
        let run = || {
            let mut bench = begun(steps.clone(), true);
            for happening in &happenings {
                happen(&mut bench, happening);
            }
            bench.history
        };
        prop_assert_eq!(run(), run());
    }
}
