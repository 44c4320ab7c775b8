//! Many clients at once, and clients that leave in the middle.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;

use super::{register_echo, register_gate};
use crate::support::{Client, Server, Worker, scale, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_dropped_leave_nothing_behind() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    let count = scale(1_000_u64, 100);
    let dropped = (0..count).map(|at| {
        let client = client.clone();
        async move {
            let body = json!({ "workflow": "gate", "execution_id": format!("dropped-{at}") });
            // At moments spread over the life of a request; each connection ends with its request.
            let moment = Duration::from_micros(at * 7_919 % 20_000);
            let once = Client::new(&client.at(""));
            let _ = tokio::time::timeout(moment, once.try_post("/v1/executions", &body)).await;
        }
    });
    join_all(dropped).await;
    register_echo(&client).await;
    for at in 0..100 {
        client.start("echo", &format!("normal-{at}"), json!({})).await;
    }
    for at in 0..100 {
        assert_eq!(client.wait(&format!("normal-{at}")).await["status"], "COMPLETED", "C079");
    }
    // What was dropped is there whole or not at all.
    for at in 0..count {
        let (status, state) = client.get(&format!("/v1/executions/dropped-{at}")).await;
        assert!(status == 404 || (status == 200 && state["status"] == "RUNNING"), "C079 {status} {state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_timers_and_reads_side_by_side_all_succeed() {
    let server = Server::start().await;
    let client = server.client();
    let steps = json!([
        { "id": "work", "task": "native.work", "target": "worker", "input": "${ input }" },
        { "id": "nap", "sleep": "20ms", "after": ["work"] },
        { "id": "more", "task": "native.work", "target": "worker", "after": ["nap"], "input": 2 },
    ]);
    client.register(&workflow("busy", steps)).await;
    let executions = scale(3_000, 150);
    let over = AtomicBool::new(false);
    let reading = join_all((0..4).map(|_| async {
        let mut reads = 0;
        while !over.load(Ordering::Relaxed) {
            for path in ["/v1/executions?limit=100", "/v1/executions/x-0/history", "/v1/executions/x-1", "/v1/health"] {
                let (status, answer) = client.get(path).await;
                assert!(status < 500, "C077 {path}: {answer}");
                reads += 1;
            }
        }
        reads
    }));
    let working = async {
        join_all((0..32).map(|at| {
            let (client, over) = (client.clone(), &over);
            async move {
                let worker = Worker::register(&client, &format!("w-{at}"), &["native.work"]).await;
                while !over.load(Ordering::Relaxed) {
                    if let Some(task) = worker.poll(200).await {
                        assert_eq!(worker.complete(&task, json!({ "at": at })).await["accepted"], true);
                    }
                }
            }
        }))
        .await
    };
    let starting = async {
        join_all((0..executions).map(|at| async move { at }).map(|at| {
            let client = client.clone();
            async move {
                let id = format!("x-{}", at.await);
                client.start("busy", &id, json!({})).await;
                assert_eq!(client.wait(&id).await["status"], "COMPLETED", "C077");
            }
        }))
        .await;
        over.store(true, Ordering::Relaxed);
    };
    let (reads, _, ()) = tokio::join!(reading, working, starting);
    assert!(reads.iter().sum::<u64>() > 0);
    assert_eq!(client.metric("sandkeep_commit_failures_total").await, 0, "C077");
}

/// An input that is too large fails its step by name, before there is a task (past 1 MiB a template is over its budget);
/// large ones that are allowed hold up nobody.
#[tokio::test(flavor = "multi_thread")]
async fn large_tasks_do_not_block_their_queue() {
    let server = Server::start().await;
    let client = server.client();
    let task = |input: &str| json!([{ "id": "a", "task": "native.work", "target": "worker", "input": input }]);
    client.register(&workflow("whole", task("${ input }"))).await;
    client.register(&workflow("doubled", json!([
        { "id": "a", "task": "native.work", "target": "worker", "input": { "one": "${ input }", "two": "${ input }" } },
    ]))).await;
    client.start("doubled", "too-large", json!("x".repeat(600_000))).await;
    let refused = client.wait("too-large").await;
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!("FAILED"), &json!("EXPRESSION_ERROR")), "C038");
    let (large, small) = (8, scale(100, 30));
    for at in 0..large {
        client.start("whole", &format!("large-{at}"), json!("x".repeat(1_000_000))).await;
    }
    for at in 0..small {
        client.start("whole", &format!("small-{at}"), json!(at)).await;
    }
    let worker = Worker::register(&client, "w", &["native.work"]).await;
    let poll = json!({ "worker_session_id": worker.session, "wait_ms": 30_000, "max_tasks": 32 });
    let mut done = 0;
    while done < large + small {
        let (status, batch) = client.post("/v1/workers/poll", &poll).await;
        assert_eq!(status, 200, "C038 {done}: {batch}");
        let tasks = batch["tasks"].as_array().unwrap();
        assert!((1..=32).contains(&tasks.len()), "C038");
        assert!(batch.to_string().len() <= 4 * 1024 * 1024, "C038 {} bytes", batch.to_string().len());
        for task in tasks {
            worker.complete(task, json!(null)).await;
        }
        done += tasks.len();
    }
    for at in 0..large {
        assert_eq!(client.wait(&format!("large-{at}")).await["status"], "COMPLETED", "C038");
    }
}

/// Guests that never end have threads of their own: clocks, timers, requests and other guests go on meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn endless_guests_hold_up_neither_requests_nor_timers_nor_each_other() {
    let server = Server::with(&[("SANDBOX__CPU_MS", "600000"), ("SANDBOX__THREADS", "2")]).await;
    let client = server.client();
    client.push("hostile").await;
    let spin = json!([{ "id": "a", "task": "hostile.spin", "retry": { "max_attempts": 1 } }]);
    client.register(&workflow("spin", spin)).await;
    client.register(&workflow("nap", json!([{ "id": "a", "sleep": "50ms" }]))).await;
    register_echo(&client).await;
    let worker = Worker::register(&client, "w", &["native.work"]).await;
    for id in ["spin-1", "spin-2"] {
        client.start("spin", id, json!({})).await;
    }
    for round in 0..5 {
        for workflow in ["nap", "echo"] {
            let id = format!("{workflow}-{round}");
            client.start(workflow, &id, json!({})).await;
            assert_eq!(client.wait(&id).await["status"], "COMPLETED", "C056");
        }
        for _ in 0..10 {
            assert_eq!(client.get("/v1/executions").await.0, 200, "C056");
        }
        worker.heartbeat(&[]).await;
    }
    for id in ["spin-1", "spin-2"] {
        assert_eq!(
            client.state(id).await["units"]["a"]["status"],
            "RUNNING",
            "C056: the rest was done while they spun"
        );
        assert_eq!(client.post(&format!("/v1/executions/{id}/cancel"), &json!({})).await.0, 200);
        assert_eq!(client.wait(id).await["status"], "CANCELLED", "C056: a guest that never looks up is stopped");
    }
}
