//! Opening: what is ours, what is not, who is first, how the last server ended.

use std::{fs, os::unix::fs::PermissionsExt};

use rusqlite::Connection;

use super::*;
use crate::store::{
    Error, InHand, Store as _, System,
    sqlite::{Durability, schema},
    suite::*,
};

fn in_hand(name: &str) -> InHand {
    let change = start_with_unit(&run(name), "a");
    InHand { unit: unit(&change.run, "a"), attempt: 1, delivery: note(5).delivery }
}

#[tokio::test]
async fn everything_is_there_after_a_reopening() {
    for durability in [Durability::Full, Durability::Relaxed] {
        let place = Place::new();
        let options = || Options { durability, ..place.options() };
        let store = Store::open(options()).unwrap();
        let epoch = store.epoch();
        assert!(!store.ended_uncleanly(), "a new database has nothing to be unsure about");
        let changes = ["e-1", "e-2"].map(|name| start_with_unit(&run(name), "a"));
        write(&store, changes.clone()).await;
        for clean in [true, false] {
            let store = Store::open(options()).map(drop).unwrap_err();
            assert!(matches!(store, Error::Locked { .. }), "{clean}");
        }
        drop(store);
        let store = Store::open(options()).unwrap();
        assert_eq!(store.epoch(), epoch);
        let loaded = store.load(changes.iter().map(|change| change.run.execution_key()).collect()).await.unwrap();
        for (loaded, change) in loaded.iter().zip(&changes) {
            let loaded = loaded.as_ref().unwrap().as_ref().unwrap();
            assert_eq!((&loaded.projection, &loaded.events), (&change.projection, &change.events));
        }
        assert_eq!(store.ready_counts().await.unwrap().into_values().sum::<u64>(), 2);
        // The class of a ready row is known again.
        write(&store, [start_with_unit(&run("e-3"), "a")]).await;
        assert_eq!(store.ready_counts().await.unwrap().into_values().collect::<Vec<_>>(), [3]);
    }
}

#[tokio::test]
async fn a_database_of_every_older_schema_is_brought_up() {
    let shape = |place: &Place| {
        let connection = Connection::open(place.file("test.db")).unwrap();
        let mut select = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)));
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let new = Place::new();
    drop(new.open());
    for old in 1..schema::SCHEMA {
        let place = Place::new();
        schema::create_with(&place.file("test.db"), old).unwrap();
        let connection = Connection::open(place.file("test.db")).unwrap();
        let insert = "INSERT INTO executions VALUES ('default', 'e-1', 1, 'orders', '1', \
            'sha256:0000000000000000000000000000000000000000000000000000000000000000', 'COMPLETED', 3, 'nothing', NULL, \
            1, 2, 2)";
        connection.execute(insert, []).unwrap();
        drop(connection);
        let store = place.open();
        let query = crate::store::ExecutionQuery { workflow: Some(id("orders")), limit: 10, ..Default::default() };
        assert_eq!(store.list_executions(&tenant(), query).await.unwrap().len(), 1, "schema {old}");
        drop(store);
        assert_eq!(shape(&place), shape(&new), "schema {old}");
    }
}

#[tokio::test]
async fn what_a_killed_server_committed_is_there() {
    let place = Place::new();
    let store = place.open();
    let changes: Vec<_> = (0..30).map(|at| start_with_unit(&run(&format!("e-{at}")), "a")).collect();
    for change in &changes {
        write(&store, [change.clone()]).await;
    }
    store.note_in_hand(2, Some(&in_hand("e-7"))).unwrap();
    // The files as they are at this moment, the log not brought in: what a kill leaves.
    let copy = Place::new();
    for name in ["test.db", "test.db-wal", "test.db.lock", "test.db.inflight"] {
        fs::copy(place.file(name), copy.file(name)).unwrap();
    }
    let found = copy.open();
    assert!(found.ended_uncleanly());
    assert_eq!((found.epoch(), found.found_in_hand()), (store.epoch(), vec![in_hand("e-7")]));
    let loaded = found.load(changes.iter().map(|change| change.run.execution_key()).collect()).await.unwrap();
    for (loaded, change) in loaded.iter().zip(&changes) {
        assert_eq!(loaded.as_ref().unwrap().as_ref().unwrap().events, change.events);
    }
}

#[tokio::test]
async fn databases_have_different_epochs() {
    assert_ne!(Place::new().open().epoch(), Place::new().open().epoch());
}

#[tokio::test]
async fn only_a_close_is_a_clean_end() {
    let place = Place::new();
    drop(place.open());
    let store = place.open();
    assert!(store.ended_uncleanly());
    store.close().await.unwrap();
    assert!(matches!(Store::open(place.options()), Err(Error::Locked { .. })), "closed, and still about");
    drop(store);
    let store = place.open();
    assert!(!store.ended_uncleanly());
    drop(store);
    assert!(place.open().ended_uncleanly());
}

#[tokio::test]
async fn what_was_in_hand_is_found_after_an_unclean_end() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(store.found_in_hand(), []);
    store.note_in_hand(0, Some(&in_hand("e-1"))).unwrap();
    store.note_in_hand(1, Some(&in_hand("e-2"))).unwrap();
    store.note_in_hand(0, None).unwrap();
    drop(store);

    let store = place.open();
    assert_eq!(store.found_in_hand(), [in_hand("e-2")]);
    drop(store);
    let store = place.open();
    assert_eq!(store.found_in_hand(), [in_hand("e-2")], "it stays until work is begun");
    store.note_in_hand(4, Some(&in_hand("e-4"))).unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.found_in_hand(), [in_hand("e-4")]);
    store.close().await.unwrap();
    drop(store);
    assert_eq!(place.open().found_in_hand(), []);
}

#[tokio::test]
async fn garbage_in_the_in_flight_file_is_nothing() {
    let place = Place::new();
    drop(place.open());
    for garbage in [b"".to_vec(), b"x".to_vec(), vec![1; 100_000], (0..50_000).map(|at| at as u8).collect()] {
        fs::write(place.file("test.db.inflight"), garbage).unwrap();
        assert_eq!(place.open().found_in_hand(), []);
    }
}

#[test]
fn a_second_server_is_told_who_is_first() {
    let place = Place::new();
    let first = place.open();
    let Err(error) = Store::open(place.options()) else { panic!("two servers on one database") };
    let text = error.to_string();
    assert!(text.contains(&format!("process {}", std::process::id())) && text.contains("test.db.lock"), "{text}");
    // By another name it is the same database.
    std::os::unix::fs::symlink(place.file("test.db"), place.file("other.db")).unwrap();
    assert!(matches!(Store::open(Options::new(place.file("other.db"))), Err(Error::Locked { .. })));
    drop(first);
    place.open();
}

#[test]
fn files_are_for_their_owner_alone() {
    let place = Place::new();
    let _store = place.open();
    for name in ["test.db", "test.db-wal", "test.db-shm"] {
        assert_eq!(fs::metadata(place.file(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// Opens a file that is not ours and checks that neither it nor the directory changes.
fn refuse(place: &Place) -> Error {
    let list = || {
        let mut names: Vec<_> =
            fs::read_dir(place.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (names, before) = (list(), fs::read(place.file("test.db")).unwrap());
    let error = Store::open(place.options()).map(drop).unwrap_err();
    assert!(fs::read(place.file("test.db")).unwrap() == before, "{error}: the file was changed");
    assert_eq!(list(), names, "{error}: something was left behind");
    error
}

#[test]
fn a_text_is_refused_unharmed() {
    let place = Place::new();
    for content in ["hello\n".to_owned(), "SQLite format 3\0".to_owned(), "a line\n".repeat(10_000)] {
        fs::write(place.file("test.db"), content).unwrap();
        let error = refuse(&place);
        assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    }
}

#[test]
fn a_database_of_another_application_is_refused_unharmed() {
    for (mode, id) in [("DELETE", 0), ("WAL", 0), ("WAL", 0x4d4e_4f50)] {
        let place = Place::new();
        let other = Connection::open(place.file("test.db")).unwrap();
        other.pragma_update(None, "journal_mode", mode).unwrap();
        other.pragma_update(None, "application_id", id).unwrap();
        other
            .execute_batch("CREATE TABLE meta (name TEXT, value INTEGER); INSERT INTO meta VALUES ('clean', 0)")
            .unwrap();
        drop(other);
        let error = refuse(&place);
        assert!(error.to_string().contains("another application"), "{error}");
    }
}

#[test]
fn a_newer_schema_is_refused_unharmed() {
    let place = Place::new();
    drop(place.open());
    let newer = Connection::open(place.file("test.db")).unwrap();
    newer.pragma_update(None, "user_version", schema::SCHEMA + 1).unwrap();
    drop(newer);
    let error = refuse(&place);
    assert!(matches!(error, Error::TooNew { found, known, .. } if found == known + 1), "{error}");
}

#[test]
fn a_newer_schema_is_seen_in_the_log() {
    let place = Place::new();
    drop(place.open());
    // A newer server that was killed: what it wrote is in the log alone.
    let newer = Connection::open(place.file("test.db")).unwrap();
    newer.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    newer.pragma_update(None, "user_version", schema::SCHEMA + 1).unwrap();
    drop(newer);
    let before = ["test.db", "test.db-wal"].map(|name| fs::read(place.file(name)).unwrap());
    let error = Store::open(place.options()).map(drop).unwrap_err();
    assert!(matches!(error, Error::TooNew { .. }), "{error}");
    assert!(["test.db", "test.db-wal"].map(|name| fs::read(place.file(name)).unwrap()) == before);
}

#[tokio::test]
async fn a_database_that_was_cut_off_is_refused_unharmed() {
    let place = Place::new();
    let store = place.open();
    write(&store, (0..50).map(|at| start_with_unit(&run(&format!("e-{at}")), "a"))).await;
    drop(store);
    let whole = fs::read(place.file("test.db")).unwrap();
    for length in [50, 100, 4096, 3 * 4096 + 7, whole.len() - 4096] {
        fs::write(place.file("test.db"), &whole[..length]).unwrap();
        let error = Store::open(place.options()).map(drop).unwrap_err();
        assert!(matches!(error, Error::NotOurs { .. }), "{length}: {error}");
        assert!(fs::read(place.file("test.db")).unwrap() == whole[..length], "{length}");
    }
    fs::write(place.file("test.db"), &whole).unwrap();
    assert_eq!(place.open().active_executions().await.unwrap(), 50);
}

#[test]
fn a_log_without_its_database_is_not_taken_over() {
    let place = Place::new();
    fs::write(place.file("test.db-wal"), "something").unwrap();
    let error = Store::open(place.options()).map(drop).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert!(!place.file("test.db").exists());
}

#[test]
fn a_directory_is_refused() {
    let place = Place::new();
    fs::create_dir(place.file("test.db")).unwrap();
    assert!(matches!(Store::open(place.options()), Err(Error::NotOurs { .. })));
    assert!(matches!(Store::open(Options::new(place.file("none/test.db"))), Err(Error::Io { .. })));
}

#[test]
fn what_a_killed_creation_left_is_no_hindrance() {
    let place = Place::new();
    fs::write(place.file("test.db.new"), "half").unwrap();
    fs::write(place.file("test.db.new-journal"), "half").unwrap();
    fs::write(place.file("test.db"), "").unwrap();
    drop(place.open());
    assert!(!place.file("test.db.new").exists());
}
