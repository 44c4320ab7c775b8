//! The server's own questions: timers, ready windows, notes, sweep.

use super::*;
use crate::{
    model::{
        Millis, Status, Timestamp,
        event::CancelRequested,
        execution::Target,
        row::{Note, ReadyRow, SettingsRef, Waiting},
    },
    store::{Batch, NotePut, Noted, ReadyClass, ReadyOrder, System},
};

pub(super) async fn timers_come_earliest_first(store: &dyn System) {
    let mut changes = ["e-1", "e-2", "e-3"].map(|name| start(&run(name)));
    changes[0].timers_put = vec![timer(&changes[0].run, "sleep:a", 30), timer(&changes[0].run, "workflow", 10)];
    changes[1].timers_put = vec![timer(&changes[1].run, "retry:2:b", 20), timer(&changes[1].run, "await:c", 41)];
    changes[2].timers_put = vec![timer(&changes[2].run, "start", 40)];
    write(store, changes.clone()).await;
    let due = async |until, limit| {
        let timers = store.timers_until(Timestamp(until), limit).await.unwrap();
        timers.iter().map(|row| row.due_at.0).collect::<Vec<_>>()
    };
    assert_eq!(due(40, 10).await, [10, 20, 30, 40]);
    assert_eq!(due(40, 2).await, [10, 20]);
    assert!(due(9, 2).await.is_empty());
    let mut next = follow(&changes[0], vec![scheduled("z", "{}")]);
    next.timers_put = vec![timer(&next.run, "sleep:a", 5)];
    next.timers_drop = vec![id("workflow"), id("wind_down")];
    write(store, [next.clone()]).await;
    assert_eq!(due(100, 10).await, [5, 20, 40, 41]);
    assert_eq!(store.timers_until(Timestamp(5), 1).await.unwrap(), next.timers_put);
}

/// Makes units ready with (name, priority, time).
async fn make_ready(store: &dyn System, units: &[(&str, u8, i64)]) -> Vec<ReadyRow> {
    let mut change = start_with_unit(&run("e-1"), "first");
    change.ready_put = units
        .iter()
        .map(|(name, priority, at)| ReadyRow {
            priority: *priority,
            ready_at: Timestamp(*at),
            ..ready(&change.run, name, 3)
        })
        .collect();
    write(store, [change.clone()]).await;
    change.ready_put
}

async fn page(store: &dyn System, class: &ReadyClass, order: ReadyOrder, limit: usize) -> Vec<String> {
    let page = store.ready_page(class, order, limit).await.unwrap();
    assert!(page.unreadable.is_empty());
    page.items.iter().map(|item| item.row.unit.unit.to_string()).collect()
}

pub(super) async fn ready_rows_come_in_both_orders(store: &dyn System) {
    let rows =
        make_ready(store, &[("a", 5, 30), ("b", 9, 40), ("c", 0, 10), ("d", 5, 20), ("e", 9, 35), ("f", 255, 90)])
            .await;
    let class = (&rows[0]).into();
    assert_eq!(page(store, &class, ReadyOrder::Priority, 10).await, ["f", "e", "b", "d", "a", "c"]);
    assert_eq!(page(store, &class, ReadyOrder::Priority, 2).await, ["f", "e"]);
    assert_eq!(page(store, &class, ReadyOrder::Age, 10).await, ["c", "d", "a", "e", "b", "f"]);
    assert_eq!(page(store, &class, ReadyOrder::Age, 3).await, ["c", "d", "a"]);
    assert_eq!(page(store, &class, ReadyOrder::Age, 0).await, [""; 0]);
    let found = store.ready_page(&class, ReadyOrder::Age, 1).await.unwrap();
    assert_eq!(
        (&found.items[0].row, found.items[0].input.as_str(), &found.items[0].note),
        (&rows[2], r#"{"n":1}"#, &None)
    );
}

pub(super) async fn ready_classes_are_told_apart(store: &dyn System) {
    let mut change = start_with_unit(&run("e-1"), "base");
    let base = change.ready_put[0].clone();
    let named = |name: &str| ready(&change.run, name, 3);
    change.ready_put = vec![
        base.clone(),
        ReadyRow { queue: id("slow"), ..named("queue") },
        ReadyRow { target: Target::Worker, module: None, ..named("target") },
        ReadyRow {
            task: id("orders.check"),
            settings: Some(SettingsRef { module: id("m"), revision: 7 }),
            ..named("task")
        },
        ReadyRow { contract: Some(id("1.2")), ..named("contract") },
        ReadyRow { node: Some(id("gpu")), ..named("node") },
        named("base2"),
    ];
    write(store, [change.clone()]).await;
    let counts = store.ready_counts().await.unwrap();
    assert_eq!(counts.len(), 6);
    for row in &change.ready_put[1..6] {
        let class = ReadyClass::from(row);
        assert_eq!(counts[&class], 1);
        let page = store.ready_page(&class, ReadyOrder::Priority, 10).await.unwrap();
        assert_eq!(page.items.iter().map(|item| &item.row).collect::<Vec<_>>(), [row]);
    }
    assert_eq!(counts[&ReadyClass::from(&base)], 2);
    let unknown = ReadyClass { queue: id("none"), ..(&base).into() };
    assert!(store.ready_page(&unknown, ReadyOrder::Age, 10).await.unwrap().items.is_empty());
}

pub(super) async fn a_put_replaces_the_row_of_its_unit(store: &dyn System) {
    let first = start_with_unit(&run("e-1"), "a");
    write(store, [first.clone()]).await;
    note_all(store, &[(&first.ready_put[0], 1, Some(note(1)))]).await;
    let mut next = follow(&first, vec![scheduled("b", "{}")]);
    let again = ReadyRow { attempt: 2, losses: 3, priority: 9, queue: id("slow"), ..first.ready_put[0].clone() };
    next.ready_drop = vec![id("a"), id("none")];
    next.ready_put = vec![again.clone(), ready(&first.run, "b", 4)];
    write(store, [next.clone()]).await;
    let page = store.ready_page(&(&again).into(), ReadyOrder::Priority, 10).await.unwrap();
    assert_eq!((&page.items[0].row, &page.items[0].note), (&again, &None), "the note goes with the row");
    let mut last = follow(&next, vec![succeeded("a", "1")]);
    last.ready_drop = vec![id("a")];
    write(store, [last]).await;
    let counts = store.ready_counts().await.unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [((&next.ready_put[1]).into(), 1)]);
}

pub(super) async fn an_unreadable_input_is_listed_apart(store: &dyn System) {
    let mut change = start(&run("e-1"));
    change.events.extend([
        stored(3, scheduled("a", "1")),
        stored(4, scheduled("b", "2")),
        stored(5, succeeded("c", "3")),
    ]);
    change.events[2].fields = r#"{"unit":"a"}"#.into();
    change.projection.last_seq = 5;
    change.ready_put = vec![
        ready(&change.run, "bad_fields", 3),
        ReadyRow { ready_at: Timestamp(9_000), ..ready(&change.run, "good", 4) },
        ready(&change.run, "other_event", 5),
        ready(&change.run, "missing", 77),
    ];
    write(store, [change.clone()]).await;
    for order in [ReadyOrder::Priority, ReadyOrder::Age] {
        let page = store.ready_page(&(&change.ready_put[0]).into(), order, 10).await.unwrap();
        assert_eq!(page.items.iter().map(|item| item.input.as_str()).collect::<Vec<_>>(), ["2"], "C089");
        let mut bad: Vec<_> = page.unreadable.iter().map(|(unit, _)| unit.unit.to_string()).collect();
        bad.sort();
        assert_eq!(bad, ["bad_fields", "missing", "other_event"], "C089");
        assert!(page.unreadable.iter().all(|(_, reason)| !reason.is_empty()));
    }
}

/// When notes are cleared.
const BACK_AT: Timestamp = Timestamp(5_000);

async fn note_all(store: &dyn System, notes: &[(&ReadyRow, u32, Option<Note>)]) {
    let put = |(row, attempt, note): &(&ReadyRow, u32, Option<Note>)| NotePut {
        unit: row.unit.clone(),
        attempt: *attempt,
        noted: note.clone().map_or(Noted::Back(BACK_AT), Noted::Out),
    };
    store.commit(Batch { notes: notes.iter().map(put).collect(), ..Batch::default() }).await.unwrap();
}

pub(super) async fn notes_stick_to_their_attempt(store: &dyn System) {
    let rows = make_ready(store, &[("a", 5, 1), ("b", 5, 2), ("c", 5, 3)]).await;
    let gone = ready(&run("none"), "a", 3);
    note_all(
        store,
        &[
            (&rows[0], 1, Some(note(7))),
            (&rows[1], 2, Some(note(8))),
            (&rows[2], 1, Some(note(u128::MAX))),
            (&gone, 1, Some(note(9))),
        ],
    )
    .await;
    let noted = async || {
        let mut items = store.noted().await.unwrap().items;
        items.sort_by_key(|item| item.row.ready_at);
        items.into_iter().map(|item| (item.row, item.note)).collect::<Vec<_>>()
    };
    assert_eq!(noted().await, [(rows[0].clone(), Some(note(7))), (rows[2].clone(), Some(note(u128::MAX)))]);
    let page = store.ready_page(&(&rows[0]).into(), ReadyOrder::Age, 10).await.unwrap();
    assert_eq!(
        page.items.iter().map(|item| item.note.clone()).collect::<Vec<_>>(),
        [Some(note(7)), None, Some(note(u128::MAX))]
    );
    note_all(store, &[(&rows[0], 1, None), (&rows[2], 9, None)]).await;
    assert_eq!(noted().await, [(rows[2].clone(), Some(note(u128::MAX)))]);
    let page = store.ready_page(&(&rows[0]).into(), ReadyOrder::Age, 10).await.unwrap();
    let redelivery: Vec<bool> = page.items.iter().map(|item| item.row.redelivery).collect();
    assert_eq!(redelivery, [true, false, false], "what was given back is delivered again");
}

pub(super) async fn redelivery_is_marked_on_all(store: &dyn System) {
    let rows = make_ready(store, &[("a", 5, 1), ("b", 5, 2)]).await;
    store.mark_redelivery().await.unwrap();
    let page = store.ready_page(&(&rows[0]).into(), ReadyOrder::Age, 10).await.unwrap();
    let expected: Vec<_> = rows.into_iter().map(|row| ReadyRow { redelivery: true, ..row }).collect();
    assert_eq!(page.items.into_iter().map(|item| item.row).collect::<Vec<_>>(), expected);
}

pub(super) async fn ends_in_a_queue_come_earliest_first(store: &dyn System) {
    assert_eq!(store.next_queue_end().await.unwrap(), None);
    let mut change = start_with_unit(&run("e-1"), "a");
    let queued = |name: &str, span| {
        let mut row = ready(&change.run, name, 3);
        row.timeouts.queue_ms = Some(Millis(span));
        row.timeouts.heartbeat_ms = Some(Millis(7));
        row
    };
    let rows = [queued("c", 30), queued("b", 10), queued("d", 20)];
    change.ready_put.extend(rows.clone());
    write(store, [change.clone()]).await;
    assert_eq!(store.next_queue_end().await.unwrap(), Some(Timestamp(1_010)));
    assert_eq!(store.queue_ends_until(Timestamp(1_020), 10).await.unwrap(), [rows[1].clone(), rows[2].clone()]);
    assert_eq!(store.queue_ends_until(Timestamp(9_999), 1).await.unwrap(), [rows[1].clone()]);
    assert_eq!(store.queue_ends_until(Timestamp(1_009), 9).await.unwrap(), []);
    note_all(store, &[(&rows[1], rows[1].attempt, None)]).await;
    assert_eq!(store.next_queue_end().await.unwrap(), Some(Timestamp(1_020)), "what is given back waits anew");
    let back = ReadyRow { redelivery: true, ..rows[1].clone() };
    let after = BACK_AT.after(Millis(10));
    assert_eq!(store.queue_ends_until(after, 9).await.unwrap(), [rows[2].clone(), rows[0].clone(), back]);
    write(store, [complete(&change)]).await;
    assert_eq!(store.next_queue_end().await.unwrap(), None);
}

pub(super) async fn the_sweep_sees_every_active_execution(store: &dyn System) {
    let mut keys = Vec::new();
    for tenant in ["a", "default", "z"] {
        for name in ["e-1", "e-2", "e-3", "ended"] {
            let mut of = run(name);
            of.tenant = id(tenant);
            let mut change = start_with_unit(&of, "u");
            change.ready_put.push(ready(&of, "v", 3));
            change.timers_put = vec![timer(&of, "workflow", 90), timer(&of, "total:u", 40)];
            write(store, [change.clone()]).await;
            if name == "ended" {
                write(store, [complete(&change)]).await;
            } else {
                keys.push(change);
            }
        }
    }
    let mut swept = Vec::new();
    loop {
        let after = swept.last().map(|row: &crate::store::SweepRow| row.projection.run.execution_key());
        let page = store.sweep_page(after.as_ref(), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        swept.extend(page);
    }
    let seen: Vec<_> = swept.iter().map(|row| (&row.projection, row.ready, row.next_timer)).collect();
    let expected: Vec<_> = keys.iter().map(|change| (&change.projection, 2, Some(Timestamp(40)))).collect();
    assert_eq!(seen, expected);
    assert_eq!(store.active_executions().await.unwrap(), 9);
    write(store, [start(&run("bare"))]).await;
    let bare = store
        .sweep_page(Some(&crate::model::row::ExecutionKey { tenant: id("a"), execution: id("z") }), 1)
        .await
        .unwrap();
    assert_eq!((bare[0].ready, bare[0].next_timer), (0, None));
}

pub(super) async fn turns_are_found_while_unfinished(store: &dyn System) {
    let mut changes = ["e-1", "e-2", "e-3"].map(|name| start(&run(name)));
    changes[0].projection.waiting = Waiting::Turn;
    changes[2].projection.waiting = Waiting::Turn;
    write(store, changes.clone()).await;
    let turns = async |limit| {
        let keys = store.unfinished_turns(limit).await.unwrap();
        keys.iter().map(|key| key.execution.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(turns(10).await, ["e-1", "e-3"]);
    assert_eq!(turns(1).await, ["e-1"]);
    let mut next = follow(&changes[0], vec![scheduled("a", "1")]);
    next.projection.waiting = Waiting::Work;
    let mut other = follow(&changes[1], vec![scheduled("a", "1")]);
    other.projection.waiting = Waiting::Turn;
    write(store, [next, other]).await;
    assert_eq!(turns(10).await, ["e-2", "e-3"]);
    write(store, [complete(&changes[2])]).await;
    assert_eq!(turns(10).await, ["e-2"]);
}

pub(super) async fn runs_that_wind_down_are_found_while_they_have_work(store: &dyn System) {
    let changes = ["e-1", "e-2", "e-3", "e-4"].map(|name| start_with_unit(&run(name), "a"));
    write(store, changes.clone()).await;
    let key = |at: usize| changes[at].run.execution_key();
    assert!(store.winding_down(None, 10).await.unwrap().is_empty(), "all of them run");
    let mut winding =
        [1, 2, 3].map(|at| follow(&changes[at], vec![CancelRequested { reason: "by test".into() }.into()]));
    winding.iter_mut().for_each(|change| change.projection.status = Status::Compensating);
    winding[1].ready_drop = vec![id("a")];
    write(store, winding.clone()).await;
    assert_eq!(store.winding_down(None, 10).await.unwrap(), [key(1), key(3)]);
    assert_eq!(store.winding_down(None, 1).await.unwrap(), [key(1)]);
    assert_eq!(store.winding_down(Some(&key(1)), 10).await.unwrap(), [key(3)]);
    write(store, [complete(&winding[0])]).await;
    assert_eq!(store.winding_down(None, 10).await.unwrap(), [key(3)]);
}
