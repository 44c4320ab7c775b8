//! Limits: the size of the database and of its log.

use super::*;
use crate::store::{Batch, Change, Error, HistoryQuery, Store as _, System, suite::*};

/// A change with an event of this size.
fn large(name: &str, size: usize) -> Change {
    let mut change = start(&run(name));
    change.events[1].fields = format!("{{\"x\":{:?}}}", "x".repeat(size));
    change
}

fn batch(changes: impl IntoIterator<Item = Change>) -> Batch {
    Batch { changes: changes.into_iter().collect(), ..Batch::default() }
}

#[tokio::test]
async fn a_full_database_keeps_what_it_has_and_goes_on_when_it_can() {
    let place = Place::new();
    let max_bytes = Some(512 * 1024);
    let store = Store::open(Options { max_bytes, ..place.options() }).unwrap();
    let mut kept = Vec::new();
    let error = loop {
        let name = format!("e-{}", kept.len());
        match store.commit(batch([start_with_unit(&run(&format!("{name}-beside")), "a"), large(&name, 10_000)])).await {
            Ok(_) => kept.push(large(&name, 10_000)),
            Err(error) => break error,
        }
        assert!(kept.len() < 100, "the limit is met");
    };
    assert!(matches!(&error, Error::Full { limit } if limit.contains("524288")), "{error}");
    assert!(error.is_transient());
    assert!(store.stats().database_bytes + store.stats().log_bytes > 0);

    let check = async |store: &Store, kept: &[Change]| {
        let keys = kept.iter().map(|change| change.run.execution_key()).collect();
        for (loaded, change) in store.load(keys).await.unwrap().iter().zip(kept) {
            assert_eq!(loaded.as_ref().unwrap().as_ref().unwrap().events, change.events);
        }
        let beside = store.ready_counts().await.unwrap().into_values().sum::<u64>();
        assert_eq!(beside, kept.len() as u64, "nothing of the batch that failed is there");
    };
    check(&store, &kept).await;
    let failed = store.commit(batch([large("again", 500_000)])).await;
    assert!(matches!(failed, Err(Error::Full { .. })));
    // What frees space is possible.
    store.mark_redelivery().await.unwrap();
    store.close().await.unwrap();
    drop(store);

    let store = Store::open(Options { max_bytes, ..place.options() }).unwrap();
    assert!(!store.ended_uncleanly());
    check(&store, &kept).await;
    drop(store);
    let store = Store::open(Options { max_bytes: Some(64 * 1024 * 1024), ..place.options() }).unwrap();
    check(&store, &kept).await;
    write(&store, [large("more", 500_000)]).await;
}

#[tokio::test]
async fn module_bytes_that_do_not_fit_leave_nothing() {
    use crate::{
        model::{Digest, Timestamp, row::ModuleRow},
        store::{ChunkPut, ModulePut},
    };
    let place = Place::new();
    let store = Store::open(Options { max_bytes: Some(1024 * 1024), ..place.options() }).unwrap();
    let content = vec![3; 2 * 1024 * 1024];
    let row = ModuleRow {
        name: id("big"),
        digest: Digest::of(&content),
        size_bytes: content.len() as u64,
        tasks: Vec::new(),
        imports: Vec::new(),
        created_at: Timestamp(1),
    };
    let chunks = ChunkPut::all(&row.digest, &content.into());
    let put = ModulePut { tenant: tenant(), row };
    let failed = store.commit(Batch { chunks, modules: vec![put], ..Batch::default() }).await;
    assert!(matches!(failed, Err(Error::Full { .. })));
    assert!(store.list_modules(&tenant(), None, None, 10).await.unwrap().is_empty());
    write(&store, [start(&run("e-1"))]).await;
}

#[tokio::test]
async fn the_log_stays_short_beside_readers() {
    let place = Place::new();
    let log_bytes = 256 * 1024;
    let store = Store::open(Options { log_bytes, readers: 3, ..place.options() }).unwrap();
    let first = large("e-0", 20_000);
    write(&store, [first.clone()]).await;
    let mut longest = 0;
    for round in 0..400 {
        let query = HistoryQuery { after_seq: 0, reverse: round % 2 == 0, limit: 100, bytes: usize::MAX };
        let changes = batch([large(&format!("e-{}", round + 1), 20_000)]);
        let all = crate::store::ExecutionQuery { limit: 100, ..Default::default() };
        let owner = tenant();
        let (committed, events, rows) =
            tokio::join!(store.commit(changes), store.history(&first.run, query), store.list_executions(&owner, all));
        committed.unwrap();
        assert_eq!((events.unwrap().len(), rows.unwrap().is_empty()), (2, false), "C077");
        longest = longest.max(store.stats().log_bytes);
    }
    assert!(longest <= 6 * log_bytes, "C078: {longest} bytes");
    assert!(store.stats().database_bytes > 4_000_000);
}

#[tokio::test]
async fn a_log_that_a_reader_held_up_is_cut_afterwards() {
    // Several of the commits fill the log, or each of them does.
    for event_bytes in [5_000, 20_000, 100_000] {
        check_cut(event_bytes).await;
    }
}

async fn check_cut(event_bytes: usize) {
    let place = Place::new();
    let log_bytes = 64 * 1024;
    let store = Store::open(Options { log_bytes, ..place.options() }).unwrap();
    write(&store, [start(&run("e-0"))]).await;
    let reader = rusqlite::Connection::open(place.file("test.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    for round in 0..40 {
        write(&store, [large(&format!("held-{round}"), event_bytes)]).await;
    }
    let held = store.stats().log_bytes;
    assert!(held > 8 * log_bytes, "an abandoned reader keeps it: {held}");
    reader.execute_batch("COMMIT").unwrap();
    for round in 0..4 {
        write(&store, [large(&format!("free-{round}"), event_bytes)]).await;
    }
    let cut = store.stats().log_bytes;
    // A commit that alone fills the log leaves itself there.
    let most = 2 * log_bytes.max(u64::try_from(event_bytes).unwrap());
    assert!(cut <= most, "C078: {cut} bytes of log with events of {event_bytes}");
}
