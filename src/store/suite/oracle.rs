//! Random batches leave in SQLite what they leave in the obvious store.

use proptest::prelude::*;

use super::*;
use crate::{
    model::{Millis, Status, Timestamp, row::Waiting},
    store::{
        Batch, Change, ExecutionQuery, HistoryQuery, NotePut, Noted, ReadyOrder, Store, System, memory::Memory, sqlite,
    },
};

/// What a random change does beside its event.
#[derive(Clone, Debug)]
struct Step {
    execution: u8,
    /// Added to the seq that the run is at; most steps expect the right one.
    off: u64,
    unit: u8,
    action: u8,
    at: i64,
}

fn step() -> impl Strategy<Value = Step> {
    (0..4u8, prop_oneof![9 => Just(0u64), 1 => Just(1u64)], 0..3u8, 0..9u8, 0..50i64)
        .prop_map(|(execution, off, unit, action, at)| Step { execution, off, unit, action, at })
}

fn change_of(step: &Step, last: Option<&Change>) -> Change {
    let run = last.map_or_else(|| run(&format!("e-{}", step.execution)), |last| last.run.clone());
    let (name, at) = (format!("u{}", step.unit), Timestamp(step.at));
    let mut change = match last {
        None => start_with_unit(&run, &name),
        Some(last) if last.projection.status.is_terminal() => {
            let mut again = run.clone();
            again.run += 1;
            let mut change = start(&again);
            change.projection.created_at = at;
            change.labels.insert("unit".into(), name);
            return change;
        }
        Some(last) => follow(last, vec![scheduled(&name, &step.at.to_string())]),
    };
    change.expected_seq += step.off;
    change.events.iter_mut().for_each(|event| event.seq += step.off);
    change.projection.last_seq += step.off;
    let input_seq = change.projection.last_seq;
    match step.action {
        0 | 1 => change.ready_put.push(crate::model::row::ReadyRow {
            priority: step.unit * 3,
            ready_at: at,
            ..ready(&run, &name, input_seq)
        }),
        2 => change.ready_drop.push(id(&name)),
        3 => change.timers_put.push(timer(&run, &format!("sleep:{name}"), step.at)),
        4 => change.timers_drop.push(id(&format!("sleep:{name}"))),
        5 => change.logs.push(line(&name)),
        6 => change.keys.push(key(&name, step.at)),
        7 => change.projection.waiting = Waiting::Turn,
        _ => {
            let status = [Status::Completed, Status::Failed, Status::Compensating][usize::from(step.unit)];
            change.projection.status = status;
            change.projection.waiting = if status.is_terminal() { Waiting::Nothing } else { Waiting::Signal };
        }
    }
    if step.at % 7 == 0 {
        change
            .ready_put
            .iter_mut()
            .for_each(|row| row.timeouts.queue_ms = Some(Millis(row.ready_at.0.cast_unsigned() % 5)));
    }
    change
}

/// Everything that a store can be asked for, in one text.
async fn dump(store: &dyn System) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let all = || ExecutionQuery { limit: 100, ..ExecutionQuery::default() };
    let labelled = ExecutionQuery { labels: [("unit".to_owned(), "u1".to_owned())].into(), ..all() };
    let active = ExecutionQuery { statuses: vec![Status::Running, Status::Failed], ..all() };
    for query in [all(), labelled, active] {
        writeln!(text, "{:#?}", store.list_executions(&tenant(), query).await.unwrap()).unwrap();
    }
    for row in store.list_executions(&tenant(), all()).await.unwrap() {
        let whole = HistoryQuery { after_seq: 0, reverse: false, limit: 1_000, bytes: usize::MAX };
        writeln!(text, "{:#?}", store.history(&row.run, whole).await.unwrap()).unwrap();
        writeln!(text, "{:#?}", store.logs(&row.run, 0, 1_000).await.unwrap()).unwrap();
    }
    let mut timers = store.timers_until(Timestamp(i64::MAX), 1_000).await.unwrap();
    timers.sort_by_key(|row| (row.due_at, row.run.clone(), row.timer.to_string()));
    writeln!(text, "{timers:#?}").unwrap();
    let class = (&ready(&run("e-0"), "u0", 3)).into();
    for order in [ReadyOrder::Priority, ReadyOrder::Age] {
        let page = store.ready_page(&class, order, 1_000).await.unwrap();
        let place = |row: &crate::model::row::ReadyRow| (u8::MAX - row.priority, row.ready_at);
        match order {
            ReadyOrder::Priority => assert!(page.items.is_sorted_by_key(|item| place(&item.row))),
            ReadyOrder::Age => assert!(page.items.is_sorted_by_key(|item| item.row.ready_at)),
        }
        let mut items = page.items;
        items.sort_by_key(|item| item.row.unit.clone());
        writeln!(text, "{items:#?} {:#?}", page.unreadable.len()).unwrap();
    }
    let mut noted = store.noted().await.unwrap().items;
    noted.sort_by_key(|item| item.row.unit.clone());
    writeln!(text, "{noted:#?}").unwrap();
    writeln!(text, "{:#?}", store.sweep_page(None, 100).await.unwrap()).unwrap();
    writeln!(text, "{:#?} {:#?}", store.unfinished_turns(100).await.unwrap(), store.active_executions().await.unwrap())
        .unwrap();
    let scopes = (0..3).map(|at| (tenant(), format!("u{at}"))).collect();
    writeln!(text, "{:#?}", store.find_keys(scopes, Timestamp(20)).await.unwrap()).unwrap();
    writeln!(text, "{:#?}", store.next_queue_end().await.unwrap()).unwrap();
    text
}

async fn compare(batches: Vec<Vec<Step>>) {
    let directory = tempfile::tempdir().unwrap();
    let options = sqlite::Options::new(directory.path().join("test.db"));
    let (sqlite, memory) = (sqlite::Store::open(options).unwrap(), Memory::new());
    let mut last: [Option<Change>; 4] = Default::default();
    for steps in batches {
        let mut batch = Batch::default();
        let mut taken = [false; 4];
        for step in steps {
            let at = usize::from(step.execution);
            if std::mem::replace(&mut taken[at], true) {
                continue;
            }
            batch.changes.push(change_of(&step, last[at].as_ref()));
            if step.action == 5 {
                let unit = unit(&batch.changes[0].run, &format!("u{}", step.unit));
                batch.notes.push(NotePut { unit, attempt: 1, noted: Noted::Out(note(step.at.cast_unsigned().into())) });
            }
        }
        let outcomes = memory.commit(batch.clone()).await.unwrap().changes;
        assert_eq!(sqlite.commit(batch.clone()).await.unwrap().changes, outcomes);
        for (change, outcome) in batch.changes.into_iter().zip(outcomes) {
            if outcome.is_ok() {
                let at: usize = change.run.execution.as_str()[2..].parse().unwrap();
                last[at] = Some(change);
            }
        }
    }
    assert_eq!(dump(&sqlite).await, dump(&memory).await);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn random_batches_leave_the_same_in_both(batches in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..20)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(compare(batches));
    }
}
