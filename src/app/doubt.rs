//! After a commit that failed and may have been written all the same: memory was told of nothing that it left, so that
//! what it may have left is looked for in the rows, as at a start.

use std::{sync::Arc, time::Duration};

use super::{Error, Inner, recovery};

/// How long after a failure the rows are read. Failures follow each other: one look serves all until then.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Looks after each failure until the server stops.
pub(super) async fn run(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        tokio::select! {
            () = app.doubt.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        tokio::time::sleep(LOOK_AFTER).await;
        if let Err(error) = look(&app).await {
            tracing::warn!(%error, "what a failed commit left cannot be read; trying again");
            app.doubt.notify_one();
        }
    }
}

/// Looks for facts, ready rows, timers, turns and stops that nobody was told of, and wakes who waits.
async fn look(app: &Arc<Inner>) -> Result<(), Error> {
    app.default_versions.forget_all();
    recovery::read_tenants(app).await?;
    for class in app.store.ready_counts().await?.into_keys() {
        app.dispatch.expect_row(&class);
    }
    app.refill_wake.notify_one();
    app.queue_wake.notify_one();
    app.timers.read_again();
    recovery::go_on_with_turns(app).await?;
    recovery::tell_stops(app, recovery::Unseen::Nobody).await?;
    app.waiters.all_changed();
    Ok(())
}
