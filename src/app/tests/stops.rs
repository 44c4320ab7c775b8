//! Units that were told to stop when the server ended.

use super::*;
use crate::store::{System as _, memory::Fault};

/// How long a unit that may be out is waited for.
const GRACE: Millis = Millis(1_500);

fn short_grace() -> Settings {
    Settings { limits: Limits { cancel_grace: GRACE, ..Limits::default() }, ..settings() }
}

/// Cancels a run with a queued unit and ends the server before that is taken back; returns the store of the next one.
async fn cancelled_and_ended(clean: bool) -> Memory {
    let store = Memory::new();
    let server = Server::with(&store, short_grace()).await;
    server.register("native", json!([{ "id": "a", "task": "native.work" }])).await;
    server.start("native", "e-1").await.unwrap();
    store.fail_commits(1..1_000, Fault::Refused);
    assert_eq!(server.0.cancel_execution(&tenant(), "e-1", None).await.unwrap().status, "COMPENSATING");
    if clean {
        store.close().await.unwrap();
    }
    store.reopen()
}

/// Whether each unit that ended cancelled may have been done.
async fn cancelled(server: &Server) -> Vec<bool> {
    let events = server.events("e-1").await;
    let cancelled = events.iter().filter(|event| event["type"] == "StepCancelled");
    cancelled.map(|event| event["uncertain"].as_bool().unwrap_or(false)).collect()
}

#[tokio::test]
async fn a_queued_unit_that_must_stop_is_taken_back_by_the_next_server() {
    let store = cancelled_and_ended(true).await;
    let server = Server::with(&store, short_grace()).await;
    let session = server.worker("w").await;
    assert!(server.poll(&session, 0).await.is_empty(), "it is handed to nobody");
    assert_eq!(server.ended("e-1").await.status, "CANCELLED");
    let history = server.history("e-1").await;
    assert!(!history.contains(&"TimerFired".to_owned()), "it waits for no grace: {history:?}");
    assert_eq!(cancelled(&server).await, [false]);
    assert!(server.poll(&session, 0).await.is_empty());
}

#[tokio::test]
async fn a_unit_that_may_be_out_and_must_stop_is_waited_for_and_not_handed_out() {
    let store = cancelled_and_ended(false).await;
    let server = Server::with(&store, short_grace()).await;
    let session = server.worker("w").await;
    let ended = async {
        let mut handed = 0;
        loop {
            handed += server.poll(&session, 100).await.tasks().len();
            if server.state("e-1").await.status == "CANCELLED" {
                return handed;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, ended).await.expect("its grace ends"), 0);
    let history = server.history("e-1").await;
    assert!(history.contains(&"TimerFired".to_owned()), "{history:?}");
    assert_eq!(cancelled(&server).await, [true]);
}
