//! Threads: callers that go away, many readers beside the writer, jobs that panic.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;
use crate::{
    model::{Event, Timestamp},
    store::{
        Batch, Error, ExecutionQuery, HistoryQuery, ReadyOrder, Store as _, System, sqlite::write::write_batch,
        suite::*,
    },
};

const WHOLE: HistoryQuery = HistoryQuery { after_seq: 0, reverse: false, limit: 100, bytes: usize::MAX };

#[tokio::test]
async fn a_dropped_commit_leaves_a_store_that_works() {
    let place = Place::new();
    let store = place.open();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for round in 0..1_000 {
        let change = start_with_unit(&run(&format!("e-{round}")), "a");
        let mut commit = store.commit(Batch { changes: vec![change], ..Batch::default() });
        // Handed to the writer, or not even that; then the caller is gone.
        if round % 3 != 0 {
            let _ = commit.as_mut().poll(&mut context);
        }
    }
    for round in 0..100 {
        write(&store, [start(&run(&format!("after-{round}")))]).await;
    }
    // Of each, all is there or nothing.
    let ready = store.ready_counts().await.unwrap().into_values().sum::<u64>();
    assert_eq!(store.active_executions().await.unwrap(), ready + 100, "C079");
    for round in 0..1_000 {
        let run = run(&format!("e-{round}"));
        let events = store.history(&run, WHOLE).await.unwrap().len();
        let found = store.find_execution(&run.tenant, &run.execution).await.unwrap();
        assert_eq!(events, if found.is_some() { 3 } else { 0 }, "C079");
    }
}

#[tokio::test]
async fn dropped_reads_leave_a_store_that_works() {
    let place = Place::new();
    let store = Store::open(Options { readers: 1, ..place.options() }).unwrap();
    write(&store, [start(&run("e-1"))]).await;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..1_000 {
        let run = run("e-1");
        let mut read = store.history(&run, WHOLE);
        let _ = read.as_mut().poll(&mut context);
    }
    assert_eq!(store.history(&run("e-1"), WHOLE).await.unwrap().len(), 2);
}

async fn write_chains(store: Arc<Store>, writer: u32) {
    for round in 0..20 {
        let change = start_with_unit(&run(&format!("e-{writer}-{round}")), "a");
        write(&*store, [change.clone()]).await;
        let loaded = store.load(vec![change.run.execution_key()]).await.unwrap().remove(0).unwrap().unwrap();
        assert_eq!(loaded.events, change.events, "a commit is seen by whoever reads after it");
        write(&*store, [complete(&change)]).await;
    }
}

async fn read_pages(store: Arc<Store>) {
    for _ in 0..40 {
        let query = ExecutionQuery { limit: 50, ..ExecutionQuery::default() };
        for row in store.list_executions(&tenant(), query).await.unwrap() {
            let events = store.history(&row.run, WHOLE).await.unwrap();
            assert!(events.len() as u64 >= row.last_seq);
        }
    }
}

async fn ask_as_the_server(store: Arc<Store>) {
    for _ in 0..40 {
        store.sweep_page(None, 100).await.unwrap();
        store.timers_until(Timestamp(0), 10).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_beside_the_writer_are_never_busy() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let mut tasks = JoinSet::new();
    for writer in 0..8 {
        tasks.spawn(write_chains(store.clone(), writer));
        tasks.spawn(read_pages(store.clone()));
        tasks.spawn(ask_as_the_server(store.clone()));
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("C077: no error in any of them");
    }
    assert_eq!(store.active_executions().await.unwrap(), 0);
    assert_eq!(store.stats().commits, 320);
}

#[tokio::test]
async fn a_panic_in_a_transaction_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    let change = start_with_unit(&run("e-1"), "a");
    let batch = Batch { changes: vec![change.clone()], ..Batch::default() };
    let failed = store.writer.run(move |writer| {
        writer.transact(|connection, classes| {
            write_batch(connection, classes, &batch)?;
            if connection.is_autocommit() { Ok(()) } else { panic!("in the middle") }
        })
    });
    assert!(matches!(failed.await, Err(Error::Database(_))));
    assert_eq!(store.active_executions().await.unwrap(), 0);
    // The number of the class went with the transaction.
    write(&store, [change]).await;
    assert_eq!(store.ready_counts().await.unwrap().into_values().collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn rows_that_cannot_be_read_stop_nothing_behind_them() {
    let place = Place::new();
    let store = place.open();
    let mut changes = ["e-1", "e-2", "e-3"].map(|name| start_with_unit(&run(name), "a"));
    for change in &mut changes {
        change.timers_put = vec![timer(&change.run, "workflow", 5)];
    }
    write(&store, changes.clone()).await;
    let spoil = |connection: &rusqlite::Transaction<'_>| {
        Ok(connection.execute_batch(
            "UPDATE events SET fields = x'ff' WHERE execution = 'e-1' AND seq = 3;
             UPDATE timers SET timer = 'invented' WHERE execution = 'e-1';
             UPDATE ready SET workflow = '' WHERE execution = 'e-2';
             UPDATE executions SET waiting = 'invented' WHERE id = 'e-2';",
        )?)
    };
    store.writer.run(move |writer| writer.transact(|connection, _| spoil(connection))).await.unwrap();

    let page = store.ready_page(&(&changes[0].ready_put[0]).into(), ReadyOrder::Age, 2).await.unwrap();
    assert_eq!(page.items.iter().map(|item| &item.row).collect::<Vec<_>>(), [&changes[2].ready_put[0]], "C089");
    assert_eq!(
        page.unreadable.iter().map(|(unit, _)| unit).collect::<Vec<_>>(),
        [&changes[0].ready_put[0].unit],
        "C089"
    );
    let timers = store.timers_until(Timestamp(9), 2).await.unwrap();
    assert_eq!(timers.iter().map(|row| &row.run).collect::<Vec<_>>(), [&changes[1].run, &changes[2].run], "C089");
    let swept = store.sweep_page(None, 2).await.unwrap();
    assert_eq!(swept.iter().map(|row| &row.projection.run).collect::<Vec<_>>(), [&changes[0].run, &changes[2].run]);
    let failed = store.find_execution(&tenant(), &id("e-2")).await;
    assert!(matches!(failed, Err(Error::Unreadable { .. })));
    let loaded = store.load(vec![changes[0].run.execution_key()]).await.unwrap().remove(0).unwrap().unwrap();
    assert_eq!(loaded.events[..2], changes[0].events[..2]);
    assert!(Event::read(&loaded.events[2]).is_err());
}
