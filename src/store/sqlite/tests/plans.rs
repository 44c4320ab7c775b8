//! How SQLite carries out the statements of the hot path and those of lists.

use rusqlite::{Connection, params_from_iter, types::Null};

use super::*;
use crate::{
    model::{Status, Timestamp},
    store::{
        ExecutionQuery,
        sqlite::{events, executions, list, ready},
        suite::{id, tenant},
    },
};

/// Makes a database; returns it with what it needs to stay.
fn database() -> (Place, Connection) {
    let place = Place::new();
    drop(place.open());
    let connection = Connection::open(place.file("test.db")).unwrap();
    (place, connection)
}

/// A temporary table is a tree with a page cache of its own, made and freed in each call.
#[test]
fn hot_statements_make_no_temporary_table() {
    let (_place, connection) = database();
    for statement in
        [executions::ADVANCE, executions::CREATE, executions::ADVANCE_TO_STATUS, events::ADD, ready::PUT, ready::DROP]
    {
        let mut explain = connection.prepare(&format!("EXPLAIN {statement}")).unwrap();
        let count = explain.parameter_count();
        let parameters = params_from_iter(vec![Null; count]);
        let steps: Vec<String> = explain.query_map(parameters, |row| row.get(1)).unwrap().map(Result::unwrap).collect();
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{statement}");
    }
}

/// A step's commit changes the row of its execution and no index of it but that of unfinished turns.
#[test]
fn a_step_writes_to_no_index_of_lists() {
    let (_place, connection) = database();
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE rootpage = ?1").unwrap();
    let mut explain = connection.prepare(&format!("EXPLAIN {}", executions::ADVANCE)).unwrap();
    let parameters = params_from_iter(vec![Null; explain.parameter_count()]);
    let steps = explain.query_map(parameters, |row| Ok((row.get::<_, String>(1)?, row.get::<_, i64>(3)?))).unwrap();
    let written = steps.map(Result::unwrap).filter(|(step, _)| step == "OpenWrite");
    let mut written: Vec<String> =
        written.map(|(_, root)| names.query_row([root], |row| row.get(0)).unwrap()).collect();
    written.sort();
    assert_eq!(written, ["executions", "executions_turns"]);
}

/// Every kind of filter, alone and with each of the others.
fn queries() -> Vec<ExecutionQuery> {
    let statuses: [&[Status]; 6] = [
        &[],
        &[Status::Completed],
        &[Status::Running, Status::Compensating],
        &[Status::Failed],
        &[Status::Failed, Status::Running],
        &[Status::Completed, Status::Failed, Status::Running],
    ];
    let mut queries = Vec::new();
    for statuses in statuses {
        for labels in 0..3 {
            for others in 0..32 {
                let has = |bit: u32| others & (1 << bit) != 0;
                let labels = (0..labels).map(|at| (format!("k{at}"), "v".to_owned())).collect();
                queries.push(ExecutionQuery {
                    statuses: statuses.to_vec(),
                    workflow: has(0).then(|| id("orders")),
                    version: has(1).then(|| id("1")),
                    labels,
                    created_after: has(2).then_some(Timestamp(1)),
                    created_before: has(3).then_some(Timestamp(9)),
                    after: has(4).then(|| (Timestamp(5), id("e-1"))),
                    limit: 51,
                });
            }
        }
    }
    queries
}

#[test]
fn lists_are_searched_by_what_they_are_filtered_by() {
    let (_place, connection) = database();
    for query in queries() {
        for list::Select { sql, values } in list::selects(&tenant(), &query) {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = explain.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().all(|step| !step.starts_with("SCAN")), "{query:?}: {steps:?}");
            let of_active = sql.contains("executions_active") || sql.contains("executions_in_use");
            let sorted = steps.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(!sorted || of_active, "{query:?}: {steps:?}");
            let first = &steps[0];
            if !query.labels.is_empty() {
                assert!(first.contains("(tenant=? AND key=? AND value=?"), "{query:?}: {first}");
                continue;
            }
            assert!(first.contains("(tenant=?"), "{query:?}: {first}");
            assert_eq!(first.contains("workflow=?"), query.workflow.is_some(), "{query:?}: {first}");
            if query.statuses.is_empty() {
                assert_eq!(first.contains("version=?"), query.version.is_some(), "{query:?}: {first}");
            }
        }
    }
}
