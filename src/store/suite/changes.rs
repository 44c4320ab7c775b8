//! Changes: races, rows that go with a run, kept answers, log lines.

use super::*;
use crate::{
    model::{Payload, Timestamp, event::CancelRequested},
    store::{Batch, Change, Conflict, Error, HistoryQuery, System},
};

const WHOLE: HistoryQuery = HistoryQuery { after_seq: 0, reverse: false, limit: 1_000, bytes: usize::MAX };

fn cancel(change: &Change) -> Change {
    follow(change, vec![CancelRequested { reason: "by test".into() }.into()])
}

pub(super) async fn a_stale_seq_loses_alone(store: &dyn System) {
    let (first, second) = (start(&run("e-1")), start(&run("e-2")));
    write(store, [first.clone(), second.clone()]).await;
    write(store, [cancel(&first)]).await;

    let mut stale = cancel(&first);
    stale.ready_put.push(ready(&first.run, "a", 3));
    stale.timers_put.push(timer(&first.run, "workflow", 9));
    stale.logs.push(line("lost"));
    stale.keys.push(key("lost", i64::MAX));
    stale.labels.insert("k".into(), "v".into());
    let outcomes = commit(store, [stale, cancel(&second), start(&second.run), cancel(&start(&run("none")))]).await;
    let conflict = |expected, found| Err(Conflict { expected, found });
    assert_eq!(outcomes, [conflict(2, 3), Ok(()), conflict(0, 3), conflict(2, 0)], "C004");

    for change in [&first, &second] {
        let events = store.history(&change.run, WHOLE).await.unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    }
    assert!(store.ready_counts().await.unwrap().is_empty());
    assert!(store.timers_until(Timestamp(i64::MAX), 10).await.unwrap().is_empty());
    assert!(store.logs(&first.run, 0, 10).await.unwrap().is_empty());
    assert_eq!(store.find_keys(vec![(tenant(), "lost".into())], Timestamp(0)).await.unwrap(), [None]);
    assert_eq!(store.stats().changes, 4);
}

pub(super) async fn a_retry_after_a_lost_answer_loses_its_own_race(store: &dyn System) {
    let change = start(&run("e-1"));
    write(store, [change.clone()]).await;
    let ended = complete(&change);
    assert_eq!(commit(store, [ended.clone()]).await, [Ok(())]);
    assert_eq!(commit(store, [ended.clone()]).await, [Err(Conflict { expected: 2, found: 3 })], "C004");
    let found = store.find_execution(&tenant(), &change.run.execution).await.unwrap();
    assert_eq!(found, Some(ended.projection));
}

pub(super) async fn a_new_run_follows_the_last_one(store: &dyn System) {
    let first = start(&run("e-1"));
    let ended = complete(&first);
    write(store, [first.clone()]).await;
    write(store, [ended.clone()]).await;
    let mut again = run("e-1");
    again.run = 2;
    let second = start(&again);
    write(store, [second.clone()]).await;

    let found = store.find_execution(&tenant(), &again.execution).await.unwrap();
    assert_eq!(found.as_ref(), Some(&second.projection));
    let loaded = store.load(vec![again.execution_key()]).await.unwrap().remove(0).unwrap().unwrap();
    assert_eq!((loaded.projection, loaded.events), (second.projection.clone(), second.events.clone()));
    assert_eq!(store.history(&first.run, WHOLE).await.unwrap().len(), 3, "the earlier run keeps its history");
    let conflict = |expected, found| Err(Conflict { expected, found });
    assert_eq!(commit(store, [cancel(&ended)]).await, [conflict(3, 3)], "an earlier run is never changed");
    assert_eq!(commit(store, [first]).await, [conflict(0, 3)]);
    assert_eq!(commit(store, [second.clone()]).await, [conflict(0, 2)]);
    write(store, [complete(&second)]).await;
}

pub(super) async fn gaps_are_refused_whole(store: &dyn System) {
    let good = start(&run("good"));
    let mut gap = start(&run("gap"));
    gap.events[1].seq = 3;
    let mut short = start(&run("short"));
    short.projection.last_seq = 5;
    let mut other = start(&run("other"));
    other.projection.run = run("another");
    for bad in [gap, short, other] {
        let batch = Batch { changes: vec![good.clone(), bad], ..Batch::default() };
        assert!(matches!(store.commit(batch).await, Err(Error::Database(_))));
        assert_eq!(store.active_executions().await.unwrap(), 0);
    }
    write(store, [good]).await;
}

pub(super) async fn nothing_is_a_batch_too(store: &dyn System) {
    assert!(Batch::default().is_empty());
    assert_eq!(store.commit(Batch::default()).await.unwrap().changes, []);
}

pub(super) async fn a_terminal_change_removes_rows(store: &dyn System) {
    let mut changes = [start_with_unit(&run("e-1"), "a"), start_with_unit(&run("e-2"), "a")];
    for change in &mut changes {
        let more = [ready(&change.run, "b", 3), ready(&change.run, "c", 3)];
        change.ready_put.extend(more);
        change.timers_put.extend([timer(&change.run, "workflow", 5), timer(&change.run, "total:a", 6)]);
    }
    write(store, changes.clone()).await;
    let mut ended = complete(&changes[0]);
    ended.ready_put.push(ready(&ended.run, "late", 3));
    ended.timers_put.push(timer(&ended.run, "wind_down", 7));
    write(store, [ended]).await;

    let counts: u64 = store.ready_counts().await.unwrap().into_values().sum();
    assert_eq!(counts, 3, "those of the other run");
    let timers = store.timers_until(Timestamp(i64::MAX), 10).await.unwrap();
    assert_eq!(timers, changes[1].timers_put);
    assert_eq!(store.active_executions().await.unwrap(), 1);
}

pub(super) async fn answers_are_kept_until_they_expire(store: &dyn System) {
    let mut change = start(&run("e-1"));
    change.keys = vec![key("start e-1 k1", 100), key("start e-1 k2", 200), key("start e-1 k3", 300)];
    write(store, [change.clone()]).await;
    let find = async |now| {
        let scopes = ["start e-1 k2", "none", "start e-1 k1"].map(|scope| (tenant(), scope.to_owned()));
        store.find_keys(scopes.into(), Timestamp(now)).await.unwrap()
    };
    let (first, second) = (Some(key("start e-1 k1", 100)), Some(key("start e-1 k2", 200)));
    assert_eq!(find(99).await, [second.clone(), None, first]);
    assert_eq!(find(100).await, [second, None, None]);
    assert_eq!(store.find_keys(vec![(id("other"), "start e-1 k2".into())], Timestamp(0)).await.unwrap(), [None]);

    let mut again = cancel(&change);
    again.keys = vec![key("start e-1 k1", 400)];
    write(store, [again]).await;
    assert_eq!(store.prune_keys(Timestamp(300), 1).await.unwrap(), 1, "the one that expired first");
    assert_eq!(find(0).await, [None, None, Some(key("start e-1 k1", 400))]);
    assert_eq!(store.prune_keys(Timestamp(300), 10).await.unwrap(), 1);
    assert_eq!(store.prune_keys(Timestamp(300), 10).await.unwrap(), 0);
}

pub(super) async fn log_lines_are_numbered_by_run(store: &dyn System) {
    let (mut first, mut second) = (start(&run("e-1")), start(&run("e-2")));
    first.logs = vec![line("one"), line("two \0 nul")];
    second.logs = vec![line("other")];
    write(store, [first.clone(), second.clone()]).await;
    let mut next = cancel(&first);
    next.logs = vec![line("three")];
    next.logs[0].fields = None;
    write(store, [next.clone()]).await;
    let all = store.logs(&first.run, 0, 10).await.unwrap();
    assert_eq!(all, [(1, line("one")), (2, line("two \0 nul")), (3, next.logs[0].clone())], "C076");
    assert_eq!(store.logs(&first.run, 1, 1).await.unwrap(), all[1..2]);
    assert_eq!(store.logs(&first.run, 3, 9).await.unwrap(), []);
    assert_eq!(store.logs(&second.run, 0, 10).await.unwrap(), [(1, line("other"))]);
    assert_eq!(all[0].1.fields, Some(Payload::trusted(r#"{"k":"\u0000"}"#)));
}

pub(super) async fn writes_after_close_are_refused(store: &dyn System) {
    let change = start(&run("e-1"));
    write(store, [change.clone()]).await;
    store.close().await.unwrap();
    let batch = Batch { changes: vec![cancel(&change)], ..Batch::default() };
    assert!(matches!(store.commit(batch).await, Err(Error::Closed)));
    assert_eq!(store.history(&change.run, WHOLE).await.unwrap().len(), 2, "reads go on");
    store.close().await.unwrap();
}
