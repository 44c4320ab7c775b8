//! What a start finds: timers that came due meanwhile, rows that are missing, thousands that sleep.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::support::{Server, Worker, audit, count, of_type, scale, until, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn overdue_timers_fire_once_each_and_in_order() {
    let mut server = Server::start().await;
    let document = workflow(
        "naps",
        json!([
            { "id": "third", "sleep": "1h" },
            { "id": "second", "sleep": "900ms" },
            { "id": "first", "sleep": "600ms" },
        ]),
    );
    let client = server.client();
    client.register(&document).await;
    for number in 0..4 {
        client.start("naps", &format!("e-{number}"), json!({})).await;
    }
    server.kill();
    // What is tested is the time that passes without a server.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    server.restart().await;
    let client = server.client();
    for number in 0..4 {
        let id = format!("e-{number}");
        let state = until("both timers have fired", async || {
            let state = client.state(&id).await;
            (state["units"]["first"]["status"] == "SUCCEEDED" && state["units"]["second"]["status"] == "SUCCEEDED")
                .then_some(state)
        })
        .await;
        assert_eq!(state["units"]["third"]["status"], "WAITING", "C002: {state}");
        let (status, _) = client.post(&format!("/v1/executions/{id}/cancel"), &json!({})).await;
        assert_eq!(status, 200);
        let state = client.wait(&id).await;
        let history = client.history(&id).await;
        let resolved: Vec<&str> = history
            .iter()
            .filter(|event| event["type"] == "StepSucceeded")
            .map(|event| event["unit"].as_str().unwrap())
            .collect();
        assert_eq!(resolved, ["first", "second"], "C002: in due order: {history:#?}");
        assert_eq!(count(&history, "TimerFired"), 2, "C002: once each: {history:#?}");
        audit(&document, &state, &history);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_missing_is_put_back_and_counted() {
    let mut server = Server::with(&[("ENGINE__SWEEP_MS", "200")]).await;
    let client = server.client();
    client.register(&workflow("naps", json!([{ "id": "nap", "sleep": "2s" }]))).await;
    client.register(&workflow("work", json!([{ "id": "a", "task": "native.work" }]))).await;
    client.start("naps", "timer", json!({})).await;
    client.start("work", "ready", json!({})).await;
    assert_eq!(client.metric("sandkeep_repairs_total").await, 0, "nothing is repaired without a fault");
    server.kill();
    for table in ["timers", "ready"] {
        let deleted =
            server.sql().execute(&format!("DELETE FROM {table} WHERE execution IN ('timer', 'ready')"), []).unwrap();
        assert_eq!(deleted, 1, "C001: the event and its row are one transaction ({table})");
    }
    server.restart().await;
    let client = server.client();
    assert_eq!(client.wait("timer").await["status"], "COMPLETED", "C001");
    let worker = Worker::register(&client, "w", &["native.work"]).await;
    let task = worker.take().await;
    worker.complete(&task, json!(1)).await;
    assert_eq!(client.wait("ready").await["status"], "COMPLETED", "C001");
    assert!(client.metric("sandkeep_repairs_total").await >= 2, "C001: each repair is counted");
    let history = client.history("timer").await;
    assert_eq!(
        (count(&history, "TimerFired"), of_type(&history, "StepScheduled", "nap").len()),
        (1, 1),
        "{history:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_load_what_sleeps() {
    let sleepers = scale(20_000, 2_000);
    let mut server = Server::start().await;
    let client = server.client();
    client.register(&workflow("naps", json!([{ "id": "nap", "sleep": "1d" }]))).await;
    let starts = stream::iter(0..sleepers).map(|number| {
        let client = client.clone();
        async move { client.start("naps", &format!("e-{number}"), json!({})).await }
    });
    starts.buffer_unordered(256).collect::<()>().await;
    server.kill();
    let began = Instant::now();
    server.restart().await;
    assert!(began.elapsed() < Duration::from_secs(30), "the server was ready after {:?}", began.elapsed());
    let client = server.client();
    assert_eq!(client.metric("sandkeep_active_executions").await, sleepers);
    assert_eq!(client.metric("sandkeep_timers_loaded").await, 0, "what is due in a day is only a row");
    let state = until("a state", async || Some(client.state("e-7").await)).await;
    assert_eq!(state["units"]["nap"]["status"], "WAITING", "{state}");
}
