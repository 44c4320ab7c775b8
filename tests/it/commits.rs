//! How many transactions work costs: one for each step, and fewer where much is done at once.

use serde_json::{Value, json};

use crate::support::{Client, Server, workflow};

const STEPS: u64 = 10;

/// A chain of steps, each in the sandbox.
fn chain() -> Value {
    let steps: Vec<Value> = (0..STEPS)
        .map(|at| match at {
            0 => json!({ "id": "s0", "task": "core.echo", "input": "${ input }" }),
            _ => json!({ "id": format!("s{at}"), "task": "core.echo", "input": format!("${{ steps.s{}.output }}", at - 1) }),
        })
        .collect();
    workflow("chain", json!(steps))
}

/// Runs chains at once; returns how many transactions that took.
async fn commits_of(client: &Client, chains: u64) -> u64 {
    let before = client.metric("sandkeep_commits_total").await;
    let run = (0..chains).map(|at| async move {
        let id = format!("chain-{chains}-{at}");
        client.start("chain", &id, json!({ "at": at })).await;
        assert_eq!(client.wait(&id).await["status"], "COMPLETED");
    });
    futures_util::future::join_all(run).await;
    client.metric("sandkeep_commits_total").await - before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_costs_one_commit_for_its_start_and_one_for_each_step() {
    let server = Server::start().await;
    let client = server.client();
    client.register(&chain()).await;
    assert_eq!(commits_of(&client, 1).await, STEPS + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_side_by_side_share_their_commits() {
    let server = Server::start().await;
    let client = server.client();
    client.register(&chain()).await;
    let chains = 64;
    let commits = commits_of(&client, chains).await;
    let alone = chains * (STEPS + 1);
    assert!(commits < alone / 2, "{commits} commits for {alone} changes");
    let batches = client.metric("sandkeep_batches_total").await;
    let changes = client.metric("sandkeep_batch_changes_total").await;
    assert!(changes > batches, "{changes} changes in {batches} batches");
}
