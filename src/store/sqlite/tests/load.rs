//! Many executions at once.

use super::*;
use crate::{
    model::{Timestamp, row::Waiting},
    store::{Batch, Change, Store as _, System, suite::*},
};

#[tokio::test]
async fn ten_thousand_sleep() {
    let place = Place::new();
    let store = place.open();
    let sleeping = |at: i64| {
        let mut change = start(&run(&format!("e-{at:05}")));
        change.timers_put = vec![timer(&change.run, "sleep:nap", 1_000_000 + (at * 7919) % 10_000)];
        change.projection.next_wake = Some(change.timers_put[0].due_at);
        change.projection.waiting = Waiting::Timer;
        change
    };
    for from in (0..10_000).step_by(500) {
        write(&store, (from..from + 500).map(sleeping)).await;
    }
    assert_eq!(store.stats().commits, 20, "one transaction for a batch");
    store.close().await.unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.active_executions().await.unwrap(), 10_000);
    let due = store.timers_until(Timestamp(1_000_099), 1_000).await.unwrap();
    assert_eq!(due.iter().map(|row| row.due_at.0).collect::<Vec<_>>(), (1_000_000..1_000_100).collect::<Vec<_>>());
    let page = store.sweep_page(Some(&run("e-04999").execution_key()), 1_000).await.unwrap();
    assert!(page.iter().all(|row| row.next_timer == row.projection.next_wake && row.ready == 0));
    assert_eq!((page.len(), &page[0].projection.run), (1_000, &run("e-05000")));
}

/// One step of each run: two events, the next unit ready, the last one done.
fn step(last: &Change, at: usize) -> Change {
    let next = format!("s{}", at + 1);
    let output = r#"{"total_cents":1299,"currency":"EUR","lines":[{"sku":"a-1","count":3}]}"#;
    let mut change = follow(last, vec![succeeded(&format!("s{at}"), output), scheduled(&next, output)]);
    change.ready_put = vec![ready(&last.run, &next, change.projection.last_seq)];
    change.ready_drop = vec![id(&format!("s{at}"))];
    change
}

#[tokio::test]
async fn chains_are_written_in_batches() {
    let place = Place::new();
    let store = place.open();
    let runs = (0..64).map(|at| run(&format!("01900000-0000-7000-8000-{:012x}", at * 0x1234_5678_u64)));
    let mut changes: Vec<_> = runs.map(|run| start_with_unit(&run, "s0")).collect();
    write(&store, changes.clone()).await;
    for at in 0..10 {
        changes = changes.iter().map(|change| step(change, at)).collect();
        let committed = store.commit(Batch { changes: changes.clone(), ..Batch::default() }).await.unwrap();
        assert!(committed.changes.iter().all(Result::is_ok));
        assert_eq!(store.ready_counts().await.unwrap().into_values().collect::<Vec<_>>(), [64]);
    }
    write(&store, changes.iter().map(complete)).await;
    let stats = store.stats();
    assert_eq!((stats.commits, stats.changes), (12, 12 * 64), "one commit for a step of all of them");
    assert!(stats.commit_us > 0 && stats.database_bytes > 0 && stats.log_bytes > 0);
    assert_eq!(store.active_executions().await.unwrap(), 0);
    assert!(store.ready_counts().await.unwrap().is_empty());
}
