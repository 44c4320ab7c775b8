//! Histories: loaded whole, read in parts, kept byte for byte.

use super::*;
use crate::{
    model::{Payload, row::ExecutionKey},
    store::{Error, HistoryQuery, System},
};

pub(super) async fn loads_come_in_the_order_asked(store: &dyn System) {
    let changes = ["e-1", "e-2", "e-3"].map(|name| start_with_unit(&run(name), "a"));
    write(store, changes.clone()).await;
    let keys = ["e-3", "none", "e-1", "e-3"].map(|name| ExecutionKey { tenant: tenant(), execution: id(name) });
    let loaded = store.load(keys.into()).await.unwrap();
    for (loaded, expected) in loaded.iter().zip([Some(2), None, Some(0), Some(2)]) {
        let found = loaded.as_ref().unwrap().as_ref().map(|loaded| (&loaded.projection, &loaded.events));
        assert_eq!(found, expected.map(|at: usize| (&changes[at].projection, &changes[at].events)));
    }
    assert_eq!(loaded.len(), 4);
    assert!(store.load(Vec::new()).await.unwrap().is_empty());
}

pub(super) async fn an_unreadable_execution_is_loaded_apart(store: &dyn Spoil) {
    let changes = ["e-1", "e-2", "e-3"].map(|name| start_with_unit(&run(name), "a"));
    write(store, changes.clone()).await;
    store.spoil(&changes[1].run.execution_key()).await;
    let keys: Vec<_> = changes.iter().map(|change| change.run.execution_key()).collect();
    let loaded = store.load(keys).await.unwrap();
    assert!(matches!(&loaded[1], Err(Error::Unreadable { .. })), "C089 {:?}", loaded[1]);
    for at in [0, 2] {
        let found = loaded[at].as_ref().unwrap().as_ref().unwrap();
        assert_eq!((&found.projection, &found.events), (&changes[at].projection, &changes[at].events), "C089");
    }
    let alone = store.find_execution(&tenant(), &changes[1].run.execution).await;
    assert!(matches!(alone, Err(Error::Unreadable { .. })), "C089 {alone:?}");
}

async fn seqs(store: &dyn System, after_seq: u64, reverse: bool, limit: usize, bytes: usize) -> Vec<u64> {
    let query = HistoryQuery { after_seq, reverse, limit, bytes };
    store.history(&run("e-1"), query).await.unwrap().iter().map(|event| event.seq).collect()
}

pub(super) async fn a_history_is_read_in_parts(store: &dyn System) {
    let first = start(&run("e-1"));
    let units = (0..8).map(|n| scheduled(&format!("u{n}"), "{}")).collect();
    write(store, [first.clone(), start(&run("e-2"))]).await;
    write(store, [follow(&first, units)]).await;
    let all = usize::MAX;
    for (after_seq, reverse, limit, expected) in [
        (0, false, 100, (1..=10).collect::<Vec<_>>()),
        (0, false, 3, vec![1, 2, 3]),
        (8, false, 3, vec![9, 10]),
        (10, false, 3, vec![]),
        (0, true, 3, vec![10, 9, 8]),
        (3, true, 5, vec![2, 1]),
        (1, true, 5, vec![]),
        (0, false, 0, vec![]),
    ] {
        assert_eq!(seqs(store, after_seq, reverse, limit, all).await, expected, "{after_seq} {reverse} {limit}");
    }
    let none = HistoryQuery { after_seq: 0, reverse: false, limit: 5, bytes: all };
    assert_eq!(store.history(&run("none"), none).await.unwrap(), []);
}

pub(super) async fn a_history_part_is_bounded_in_bytes(store: &dyn System) {
    let mut change = start(&run("e-1"));
    for (event, size) in change.events.iter_mut().zip([100, 50]) {
        event.fields = "x".repeat(size);
    }
    write(store, [change]).await;
    for (reverse, bytes, expected) in
        [(false, 0, vec![1]), (false, 149, vec![1]), (false, 150, vec![1, 2]), (true, 60, vec![2]), (true, 1, vec![2])]
    {
        assert_eq!(seqs(store, 0, reverse, 9, bytes).await, expected, "{reverse} {bytes}");
    }
}

pub(super) async fn payloads_are_kept_byte_for_byte(store: &dyn System) {
    let texts = [
        r#"{"s":"a\u0000b","k\u0000":1}"#,
        "[9007199254740993,18446744073709551615,0.1,1.0,-0.0,1e308,1E-400]",
        r#"{"b":1,"a":2}"#,
        "\"\u{1F9F1} \\ud83e\\uddf1\"",
        "null",
    ];
    let first = start(&run("e-1"));
    let units: Vec<_> = texts.iter().enumerate().map(|(at, text)| succeeded(&format!("u{at}"), text)).collect();
    write(store, [first.clone()]).await;
    let next = follow(&first, units.clone());
    write(store, [next.clone()]).await;
    let query = HistoryQuery { after_seq: 2, reverse: false, limit: 10, bytes: usize::MAX };
    let found = store.history(&first.run, query).await.unwrap();
    assert_eq!(found, next.events, "C076 C084");

    let mut ready_change = follow(&next, texts.iter().map(|text| scheduled("r", text)).collect());
    let seqs = ready_change.events.iter().map(|event| event.seq).collect::<Vec<_>>();
    let rows = seqs.iter().map(|seq| ready(&first.run, &format!("r{seq}"), *seq));
    ready_change.ready_put = rows.collect();
    let class = (&ready_change.ready_put[0]).into();
    write(store, [ready_change]).await;
    let page = store.ready_page(&class, crate::store::ReadyOrder::Age, 10).await.unwrap();
    let mut inputs: Vec<_> = page.items.into_iter().map(|item| (item.row.input_seq, item.input)).collect();
    inputs.sort_by_key(|(seq, _)| *seq);
    let expected: Vec<_> = seqs.into_iter().zip(texts.map(Payload::trusted)).collect();
    assert_eq!(inputs, expected, "C076 C084");
}
