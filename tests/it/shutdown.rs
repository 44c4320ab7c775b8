//! The end of a server that is told to stop: bounded in time, and of no consequence to executions.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Client, Server, Worker, count, scale, signal, until, workflow};

/// Starts `number` executions of a step each.
async fn start_many(client: &Client, name: &str, task: &str, number: usize) -> Vec<String> {
    client.register(&workflow(name, json!([{ "id": "a", "task": task, "timeouts": { "attempt": "1h" } }]))).await;
    let ids: Vec<String> = (0..number).map(|number| format!("{name}-{number}")).collect();
    join_all(ids.iter().map(|id| client.start(name, id, json!({})))).await;
    ids
}

/// Waits until the unit of each execution is handed out.
async fn all_run(client: &Client, ids: &[String]) {
    for id in ids {
        until("the unit is handed out", async || {
            (client.state(id).await["units"]["a"]["status"] == "RUNNING").then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_does_so_and_takes_no_work_along() {
    let tasks = scale(10, 4);
    let mut server = Server::with(&[("SERVER__DRAIN_MS", "1000"), ("SANDBOX__CPU_MS", "3600000")]).await;
    let client = server.client();
    client.push("hostile").await;
    let sandboxed = start_many(&client, "spin", "hostile.spin", tasks).await;
    let native = start_many(&client, "work", "native.work", tasks).await;
    let worker = Worker::register(&client, "w", &["native.work"]).await;
    for _ in 0..tasks {
        worker.take().await;
    }
    all_run(&client, &sandboxed).await;
    all_run(&client, &native).await;
    let idle = Worker::register(&client, "w-idle", &["native.other"]).await;
    let polls: Vec<_> = (0..50)
        .map(|_| {
            let (client, session) = (client.clone(), idle.session.clone());
            tokio::spawn(async move {
                client.try_post("/v1/workers/poll", &json!({ "worker_session_id": session, "wait_ms": 60_000 })).await
            })
        })
        .collect();
    until("all polls stand in line", async || {
        let (_, workers) = client.get("/v1/workers").await;
        let idle = workers["workers"].as_array()?.iter().find(|worker| worker["worker_id"] == "w-idle")?;
        (idle["waiting_polls"] == 50).then_some(())
    })
    .await;

    let began = Instant::now();
    assert_eq!(server.stop().await, Some(0), "C049: a clean end");
    // 3 s are stated; the machine may be busy.
    assert!(began.elapsed() < Duration::from_secs(15), "C049: it ended after {:?}", began.elapsed());
    for poll in join_all(polls).await {
        assert_eq!(poll.unwrap(), Some((204, Value::Null)), "C049: parked polls answer empty");
    }

    server.restart().await;
    let client = server.client();
    for id in sandboxed.iter().chain(&native) {
        let state = client.state(id).await;
        assert_eq!(
            (&state["status"], &state["units"]["a"]["attempt"]),
            (&json!("RUNNING"), &json!(1)),
            "C049: {state}"
        );
    }
    all_run(&client, &sandboxed).await;
    for id in &sandboxed {
        let unit = client.state(id).await["units"]["a"].clone();
        assert_eq!((&unit["attempt"], &unit["redelivery"]), (&json!(1), &json!(true)), "C049: {unit}");
        assert_eq!(count(&client.history(id).await, "StepAttemptUncertain"), 0, "C049: given back, not lost");
    }
    // Its worker does not come back, so another gets what it held.
    let other = Worker::register(&client, "w-other", &["native.work"]).await;
    for _ in 0..tasks {
        let task = other.take().await;
        assert_eq!((&task["attempt"], &task["redelivery"]), (&json!(1), &json!(true)), "C049: {task}");
        other.complete(&task, json!(1)).await;
    }
    for id in &native {
        assert_eq!(client.wait(id).await["status"], "COMPLETED", "C049");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_server_at_once() {
    let mut server = Server::with(&[("SERVER__DRAIN_MS", "600000"), ("SANDBOX__CPU_MS", "3600000")]).await;
    let client = server.client();
    client.push("hostile").await;
    let ids = start_many(&client, "spin", "hostile.spin", 1).await;
    all_run(&client, &ids).await;
    signal(server.pid(), "TERM");
    // It takes no connection any more.
    until("the server drains", async || Client::new(server.url()).try_get("/v1/health").await.is_none().then_some(()))
        .await;
    assert!(!server.has_ended(), "C049: running work has its time");
    assert_eq!(server.stop().await, Some(1), "C049");
    server.restart().await;
    let state = server.client().state(&ids[0]).await;
    assert_eq!((&state["status"], &state["units"]["a"]["attempt"]), (&json!("RUNNING"), &json!(1)), "C049: {state}");
}
