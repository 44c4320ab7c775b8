//! The neighbour: small honest work that goes on while others do harm.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{Client, PATIENCE, scale, workflow};

/// The pause between two pieces of its work, so that it is company and no load.
const PAUSE: Duration = Duration::from_millis(20);

/// Honest work, piece after piece.
pub(super) struct Neighbour {
    client: Client,
    served: usize,
    /// The 99th percentile of a piece of its work alone.
    pub(super) alone_ms: u64,
}

/// Work of the neighbour that goes on beside a case.
pub(super) struct Beside {
    over: Arc<AtomicBool>,
    work: JoinHandle<Vec<u64>>,
}

impl Neighbour {
    /// Registers its workflow with `client`, which speaks for its tenant, and works alone for a while.
    pub(super) async fn settle(client: Client) -> Self {
        client.register(&workflow("neighbour", json!([{ "id": "a", "task": "core.echo", "input": 1 }]))).await;
        let mut neighbour = Self { client, served: 0, alone_ms: 0 };
        let mut took = Vec::new();
        for number in 0..scale(200, 10) {
            took.push(serve(&neighbour.client, &format!("alone-{number}")).await);
        }
        neighbour.alone_ms = percentile_99(took);
        neighbour
    }

    /// Works until [`Self::end`].
    pub(super) fn begin(&mut self) -> Beside {
        self.served += 1;
        let (client, round) = (self.client.clone(), self.served);
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let work = tokio::spawn(async move {
            let mut took = Vec::new();
            // Two pieces at least, and one that begins after the harm is done.
            loop {
                let last = told.load(Ordering::Acquire) && took.len() >= 2;
                took.push(serve(&client, &format!("beside-{round}-{}", took.len())).await);
                if last {
                    return took;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Beside { over, work }
    }

    /// Ends the work beside a case; returns the 99th percentile of a piece.
    pub(super) async fn end(&self, beside: Beside) -> u64 {
        beside.over.store(true, Ordering::Release);
        percentile_99(beside.work.await.expect("the neighbour's work goes on"))
    }
}

async fn serve(client: &Client, id: &str) -> u64 {
    let began = Instant::now();
    client.start("neighbour", id, json!({})).await;
    let path = format!("/v1/executions/{id}/wait?timeout_ms=30000");
    let mut state = client.get(&path).await.1;
    while state["status"] == "RUNNING" {
        assert!(began.elapsed() < PATIENCE, "the neighbour's work does not end: {state}");
        state = client.get(&path).await.1;
    }
    assert_eq!(state["status"], "COMPLETED", "the neighbour's work: {state}");
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn percentile_99(mut took: Vec<u64>) -> u64 {
    took.sort_unstable();
    took[(took.len() * 99).div_ceil(100) - 1]
}
