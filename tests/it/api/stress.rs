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
