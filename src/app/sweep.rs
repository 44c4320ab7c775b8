//! The sweep: finds executions that wait for something whose row is not there, and puts it back. It finds nothing unless
//! there is a fault elsewhere, which is why each repair is counted and told.

use std::{sync::Arc, time::Duration};

use super::{
    Error, Inner,
    counters::count,
    lane::{Ask, What},
};
use crate::{model::row::Waiting, store::SweepRow};

/// How many executions one page compares.
const PAGE: usize = 1_000;
/// How many expired keys one sweep removes.
const KEYS: usize = 10_000;

/// Sweeps until the server stops.
pub(super) async fn run(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        let next = app.clock.now().after(app.settings.sweep);
        tokio::select! {
            () = app.clock.sleep_until(next) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        if let Err(error) = once(&app).await {
            tracing::warn!(%error, "the sweep could not read; it goes on next time");
        }
    }
}

/// Compares every execution that is not terminal with its rows; returns how many it repaired.
pub(super) async fn once(app: &Arc<Inner>) -> Result<usize, Error> {
    let mut after = None;
    let mut repaired = 0;
    loop {
        let page = app.store.sweep_page(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.projection.run.execution_key());
        for row in page.iter().filter(|row| !is_sound(row)) {
            repaired += 1;
            repair(app, row);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    app.store.prune_keys(app.clock.now(), KEYS).await?;
    Ok(repaired)
}

fn is_sound(row: &SweepRow) -> bool {
    let waits = match row.projection.waiting {
        Waiting::Turn => false,
        Waiting::Work => row.ready > 0,
        Waiting::Timer | Waiting::Signal | Waiting::Nothing => true,
    };
    waits && row.next_timer == row.projection.next_wake
}

/// Tells the lane to put the rows that the state must have. One whose turn merely goes on is no fault.
fn repair(app: &Arc<Inner>, row: &SweepRow) {
    let key = row.projection.run.execution_key();
    if row.projection.waiting != Waiting::Turn {
        count(&app.counters.repairs);
        tracing::warn!(
            tenant = %key.tenant, execution = %key.execution, waiting = row.projection.waiting.as_str(),
            "an execution waits for a row that is not there; it is put back"
        );
    }
    app.lanes.send(Ask { key, what: What::Repair, reply: None, logs: Vec::new() });
}
