//! How SQLite carries out the statements of the hot path.

use rusqlite::Connection;

use super::*;
use crate::store::sqlite::{events, executions, ready};

/// A temporary table is a tree with a page cache of its own, made and freed in each call.
#[test]
fn hot_statements_make_no_temporary_table() {
    let place = Place::new();
    drop(place.open());
    let connection = Connection::open(place.file("test.db")).unwrap();
    for statement in
        [executions::ADVANCE, executions::CREATE, executions::ADVANCE_TO_STATUS, events::ADD, ready::PUT, ready::DROP]
    {
        let mut explain = connection.prepare(&format!("EXPLAIN {statement}")).unwrap();
        let count = explain.parameter_count();
        let parameters = rusqlite::params_from_iter(vec![rusqlite::types::Null; count]);
        let steps: Vec<String> = explain.query_map(parameters, |row| row.get(1)).unwrap().map(Result::unwrap).collect();
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{statement}");
    }
}
