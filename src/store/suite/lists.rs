//! Lists of executions.

use std::collections::BTreeSet;

use super::*;
use crate::{
    model::{Status, Timestamp, row::Projection},
    store::{ExecutionQuery, System},
};

fn ended(change: &crate::store::Change, status: Status) -> crate::store::Change {
    let mut next = complete(change);
    next.projection.status = status;
    next
}

async fn names(store: &dyn System, query: ExecutionQuery) -> Vec<String> {
    let rows = store.list_executions(&tenant(), query).await.unwrap();
    rows.iter().map(|row| row.run.execution.to_string()).collect()
}

pub(super) async fn filters_are_joined(store: &dyn System) {
    let statuses =
        [Status::Running, Status::Completed, Status::Failed, Status::Cancelled, Status::TimedOut, Status::Compensating];
    for (at, status) in statuses.into_iter().enumerate() {
        let mut change = start(&run(&format!("e-{at}")));
        change.projection.created_at = Timestamp(at as i64);
        change.labels =
            [("parity", (at % 2).to_string()), ("at", at.to_string())].map(|(k, v)| (k.to_owned(), v)).into();
        if at >= 3 {
            change.projection.workflow = id("returns");
            change.projection.version = id(&at.to_string());
        }
        write(store, [change.clone()]).await;
        match status {
            Status::Running => {}
            Status::Compensating => {
                let mut next =
                    follow(&change, vec![crate::model::event::CancelRequested { reason: String::new() }.into()]);
                next.projection.status = status;
                write(store, [next]).await;
            }
            status => write(store, [ended(&change, status)]).await,
        }
    }
    let base = || ExecutionQuery { limit: 100, ..ExecutionQuery::default() };
    let of = |statuses: &[Status]| ExecutionQuery { statuses: statuses.to_vec(), ..base() };
    let labelled = |labels: &[(&str, &str)]| ExecutionQuery {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..base()
    };
    for (query, expected) in [
        (base(), "5 4 3 2 1 0"),
        (ExecutionQuery { limit: 2, ..base() }, "5 4"),
        (ExecutionQuery { limit: 0, ..base() }, ""),
        (of(&[Status::Running]), "0"),
        (of(&[Status::Completed]), "1"),
        (of(&[Status::Failed, Status::Running, Status::Compensating, Status::Cancelled]), "5 3 2 0"),
        (of(&[Status::Failed, Status::Completed, Status::Running]), "2 1 0"),
        (ExecutionQuery { limit: 2, ..of(&[Status::TimedOut, Status::Running, Status::Compensating]) }, "5 4"),
        (
            ExecutionQuery { after: Some((Timestamp(5), id("e-5"))), ..of(&[Status::Compensating, Status::TimedOut]) },
            "4",
        ),
        (ExecutionQuery { workflow: Some(id("returns")), ..base() }, "5 4 3"),
        (ExecutionQuery { workflow: Some(id("returns")), version: Some(id("4")), ..base() }, "4"),
        (ExecutionQuery { version: Some(id("4")), ..of(&[Status::Running]) }, ""),
        (ExecutionQuery { version: Some(id("4")), ..base() }, "4"),
        (ExecutionQuery { workflow: Some(id("orders")), version: Some(id("4")), ..base() }, ""),
        (ExecutionQuery { workflow: Some(id("returns")), ..of(&[Status::TimedOut, Status::Compensating]) }, "5 4"),
        (ExecutionQuery { workflow: Some(id("returns")), version: Some(id("3")), ..of(&[Status::Cancelled]) }, "3"),
        (ExecutionQuery { workflow: Some(id("orders")), ..of(&[Status::Failed, Status::Running]) }, "2 0"),
        (
            ExecutionQuery {
                workflow: Some(id("returns")),
                after: Some((Timestamp(5), id("e-5"))),
                limit: 1,
                ..base()
            },
            "4",
        ),
        (labelled(&[("parity", "1")]), "5 3 1"),
        (labelled(&[("parity", "1"), ("at", "3")]), "3"),
        (labelled(&[("parity", "1"), ("at", "2")]), ""),
        (labelled(&[("none", "1")]), ""),
        (ExecutionQuery { statuses: vec![Status::Cancelled, Status::Running], ..labelled(&[("parity", "1")]) }, "3"),
        (ExecutionQuery { after: Some((Timestamp(3), id("e-3"))), ..labelled(&[("parity", "1")]) }, "1"),
        (ExecutionQuery { created_after: Some(Timestamp(1)), created_before: Some(Timestamp(4)), ..base() }, "3 2"),
        (ExecutionQuery { created_after: Some(Timestamp(3)), ..labelled(&[("parity", "1")]) }, "5"),
        (ExecutionQuery { created_before: Some(Timestamp(0)), ..base() }, ""),
    ] {
        let expected: Vec<_> = expected.split_whitespace().map(|at| format!("e-{at}")).collect();
        assert_eq!(names(store, query.clone()).await, expected, "{query:?}");
    }
}

pub(super) async fn labels_of_an_earlier_run_find_nothing(store: &dyn System) {
    let mut first = start(&run("e-1"));
    first.labels.insert("run".into(), "first".into());
    write(store, [first.clone()]).await;
    write(store, [complete(&first)]).await;
    let mut again = run("e-1");
    again.run = 2;
    let mut second = start(&again);
    second.labels.insert("run".into(), "second".into());
    write(store, [second]).await;
    for (value, expected) in [("first", 0), ("second", 1)] {
        let labels = [("run".to_owned(), value.to_owned())].into();
        let query = ExecutionQuery { labels, limit: 10, ..ExecutionQuery::default() };
        assert_eq!(names(store, query).await.len(), expected, "{value}");
    }
}

pub(super) async fn pages_show_each_old_row_once(store: &dyn System) {
    let old: BTreeSet<String> = (0..1000).map(|at| format!("old-{:03}", (at * 7919) % 1000)).collect();
    for names in old.iter().collect::<Vec<_>>().chunks(250) {
        write(store, names.iter().map(|name| start(&run(name)))).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    for page in 0.. {
        if page % 10 == 0 {
            // Newer ones, and ones of the same instant that sort before and behind the page.
            let mut newer = start(&run(&format!("new-{page}")));
            newer.projection.created_at = Timestamp(5_000);
            write(store, [newer, start(&run(&format!("a-{page}"))), start(&run(&format!("z-{page}")))]).await;
        }
        let query = ExecutionQuery { after: after.take(), limit: 7, ..ExecutionQuery::default() };
        let rows: Vec<Projection> = store.list_executions(&tenant(), query).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = Some((last.created_at, last.run.execution.clone()));
        seen.extend(rows.iter().map(|row| row.run.execution.to_string()).filter(|name| name.starts_with("old")));
    }
    assert_eq!(seen.len(), old.len(), "C098");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), old, "C098");
}

pub(super) async fn tenants_see_only_their_own(store: &dyn System) {
    for tenant in ["default", "other"] {
        let mut of = run("e-1");
        of.tenant = id(tenant);
        let mut change = start_with_unit(&of, "a");
        change.events[2] = stored(3, scheduled("a", &format!("{tenant:?}")));
        change.labels.insert("k".into(), "v".into());
        change.logs.push(line(tenant));
        change.projection.version = id(tenant);
        write(store, [change]).await;
    }
    for tenant in ["default", "other"] {
        let owner = id(tenant);
        let query = || ExecutionQuery { limit: 10, ..ExecutionQuery::default() };
        let labelled = ExecutionQuery { labels: [("k".to_owned(), "v".to_owned())].into(), ..query() };
        let failed = ExecutionQuery { statuses: vec![Status::Running], ..query() };
        for query in [query(), labelled, failed] {
            let rows = store.list_executions(&owner, query).await.unwrap();
            assert_eq!(rows.iter().map(|row| row.run.tenant.as_str()).collect::<Vec<_>>(), [tenant]);
        }
        let found = store.find_execution(&owner, &id("e-1")).await.unwrap().unwrap();
        assert_eq!(found.run.tenant, owner);
        let lines = store.logs(&found.run, 0, 10).await.unwrap();
        assert_eq!(lines, [(1, line(tenant))]);
        assert!(store.workflow_in_use(&owner, &id("orders"), &id(tenant)).await.unwrap());
        let class = crate::store::ReadyClass { tenant: owner, ..(&ready(&run("e-1"), "a", 3)).into() };
        let page = store.ready_page(&class, crate::store::ReadyOrder::Priority, 10).await.unwrap();
        let inputs: Vec<_> = page.items.iter().map(|item| item.input.to_string()).collect();
        assert_eq!(inputs, [format!("{tenant:?}")]);
    }
    assert!(!store.workflow_in_use(&tenant(), &id("orders"), &id("other")).await.unwrap());
    assert!(store.find_execution(&id("third"), &id("e-1")).await.unwrap().is_none());
    assert!(
        store
            .list_executions(&id("third"), ExecutionQuery { limit: 10, ..ExecutionQuery::default() })
            .await
            .unwrap()
            .is_empty()
    );
}
