//! Ends, moves and losses in the middle of a guest's work.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{
    Case, Guest, Harness,
    case::{named, workflow},
    harness::{attempt_ms, push, upload},
};
use crate::support::{Client, count, of_type, until};

/// The cases, in the order in which the test acts them out.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::own("cancelled while it spins", "CANCELLED"),
        Case::own("cancelled while it calls the host", "CANCELLED"),
        Case::own("cancelled in the queue", "CANCELLED"),
        Case::own("client gone in mid-run", "COMPLETED"),
        Case::own("a new version goes live in mid-run", "the old digest finishes"),
    ]
}

/// Tells that it runs, then does `then` for ever.
fn reporting(then: &str) -> Guest {
    let run = format!("(call $report (i32.const 4096) (i32.const 2)) (loop $l {then} (br $l)) unreachable");
    Guest::new(&run).data(4096, "[]")
}

/// Tells that it runs, works for a second or so, and returns `[]`.
fn working() -> Guest {
    let run = "(local $i i32)
        (call $report (i32.const 4096) (i32.const 2))
        (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000000000))))
        (call $ok (i32.const 4096) (i32.const 2))";
    Guest::new(run).data(4096, "[]")
}

/// Waits until an execution's guest has told that it runs.
async fn runs(client: &Client, id: &str) {
    until("the guest's word", async || {
        let state = client.state(id).await;
        (state["units"]["a"]["progress"] == json!([])).then_some(())
    })
    .await;
}

async fn cancel(client: &Client, id: &str) {
    let (status, answer) = client.post(&format!("/v1/executions/{id}/cancel"), &json!({})).await;
    assert!(matches!(status, 200 | 202), "{answer}");
}

/// Waits for the end of what was cancelled, and returns its history.
async fn cancelled(client: &Client, id: &str) -> Vec<Value> {
    assert_eq!(client.wait(id).await["status"], "CANCELLED");
    let history = client.history(id).await;
    assert_eq!(count(&history, "WorkflowCancelled"), 1, "{history:#?}");
    assert_eq!(of_type(&history, "StepCancelled", "a").len(), 1, "{history:#?}");
    history
}

async fn cancelled_while_running(client: &Client, id: &str, then: &str) -> String {
    let task = push(client, id, reporting(then)).await;
    client.register(&workflow(id, &task, 1, 60_000)).await;
    client.start(id, id, json!({})).await;
    runs(client, id).await;
    cancel(client, id).await;
    cancelled(client, id).await;
    "CANCELLED".to_owned()
}

/// Fills all slots of the tenant, and cancels one that waits behind them, then those.
async fn cancelled_in_the_queue(client: &Client) -> String {
    let task = push(client, "queue", reporting("")).await;
    client.register(&workflow("queue", &task, 1, 60_000)).await;
    let running: Vec<String> = (0..6).map(|number| format!("running-{number}")).collect();
    for id in &running {
        client.start("queue", id, json!({})).await;
        runs(client, id).await;
    }
    let waiting: Vec<String> = (0..20).map(|number| format!("waiting-{number}")).collect();
    for id in &waiting {
        client.start("queue", id, json!({})).await;
    }
    for id in waiting.iter().chain(&running) {
        cancel(client, id).await;
    }
    for id in waiting.iter().chain(&running) {
        cancelled(client, id).await;
    }
    "CANCELLED".to_owned()
}

/// A client that waits for the end goes away.
async fn client_gone(client: &Client, address: &str) -> String {
    let task = push(client, "gone", working()).await;
    client.register(&workflow("gone", &task, 1, attempt_ms() * 30)).await;
    client.start("gone", "gone", json!({})).await;
    runs(client, "gone").await;
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /v1/executions/gone/wait?timeout_ms=30000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(stream);
    let state = client.wait("gone").await;
    assert_eq!(state["status"], "COMPLETED", "{state}");
    "COMPLETED".to_owned()
}

/// The module's next version goes live while an attempt of the last one runs.
async fn next_version(client: &Client) -> String {
    let task = push(client, "moved", working()).await;
    let (_, old) = client.get("/v1/modules/moved").await;
    client.register(&workflow("moved", &task, 1, attempt_ms() * 30)).await;
    client.start("moved", "moved", json!({})).await;
    runs(client, "moved").await;
    let next = upload(client, "moved", named(Guest::returning("[2]"), &task).build()).await;
    assert!(next.refused.is_none(), "{next:?}");
    let state = client.wait("moved").await;
    assert_eq!(state["units"]["a"]["output"], json!([]), "C074 {state}");
    let history = client.history("moved").await;
    let [succeeded] = of_type(&history, "StepSucceeded", "a")[..] else { panic!("{history:#?}") };
    assert_eq!(succeeded["served"]["module"], old["digest"], "C074 {succeeded}");
    "the old digest finishes".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_in_mid_work_are_ends() {
    // Half of these slots, six, are the tenant's.
    let settings = [("SANDBOX__CPU_MS", "600000"), ("SANDBOX__MAX_CONCURRENT", "12")];
    let mut harness = Harness::start("lifecycle", &settings).await;
    let client = harness.client.clone();
    let mut cases = cases().into_iter();
    let mut next = || cases.next().expect("there is one for each act");
    harness.own(next(), async |_| cancelled_while_running(&client, "spins", "").await).await;
    let calls = "(drop (call $cancelled)) (call $report (i32.const 4096) (i32.const 2))";
    harness.own(next(), async |_| cancelled_while_running(&client, "calls", calls).await).await;
    harness.own(next(), async |_| cancelled_in_the_queue(&client).await).await;
    harness.own(next(), async |server| client_gone(&client, server.url().strip_prefix("http://").unwrap()).await).await;
    harness.own(next(), async |_| next_version(&client).await).await;
    assert!(cases.next().is_none(), "every case was acted out");
}
