//! The start on a database that was used before. Nothing is loaded but what is ready, due, or was in hand.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;

use super::{
    Error, Inner,
    counters::count,
    lane::{Ask, What},
};
use crate::{
    engine::{Command, Lost},
    model::{Served, Status, row::ExecutionKey},
    store::{InHand, ReadyClass, ReadyOrder},
};

/// How many unfinished turns one read takes.
const TURNS: usize = 10_000;
/// How many executions one page looks at.
const PAGE: usize = 1_000;

/// Brings memory to where the rows are. Runs before anything is handed out.
pub(super) async fn run(app: &Arc<Inner>) -> Result<(), Error> {
    for tenant in app.store.tenants().await? {
        app.tenants.refresh(&*app.store, &tenant).await?;
    }
    if app.store.ended_uncleanly() {
        app.store.mark_redelivery().await?;
        let in_hand = app.store.found_in_hand();
        tracing::warn!(in_hand = in_hand.len(), "the last server on this database ended uncleanly");
        // All at once, so that they share commits.
        join_all(in_hand.into_iter().map(|unit| lose(app, unit))).await;
    }
    for (class, stored) in app.store.ready_counts().await? {
        app.dispatch.set_stored(&class, stored);
    }
    hold_noted(app).await?;
    for key in app.store.unfinished_turns(TURNS).await? {
        go_on(app, key);
    }
    tokio::spawn(tell_stops(app.clone()));
    Ok(())
}

/// Tells units of runs that wind down to stop, once more. In the background: they are few, and have a timer besides.
async fn tell_stops(app: Arc<Inner>) {
    let mut after = None;
    while let Ok(page) = app.store.sweep_page(after.as_ref(), PAGE).await {
        let Some(last) = page.last() else { return };
        after = Some(last.projection.run.execution_key());
        for row in page.iter().filter(|row| row.projection.status == Status::Compensating && row.ready > 0) {
            go_on(&app, row.projection.run.execution_key());
        }
    }
}

/// Counts the loss of what the sandbox had in hand.
async fn lose(app: &Arc<Inner>, found: InHand) {
    let InHand { unit, attempt, delivery } = found;
    count(&app.counters.losses);
    let lost = Lost {
        unit: unit.unit.clone(),
        attempt,
        delivery,
        served: Some(Served::default()),
        progress: None,
        reason: "the server ended while the sandbox had it in hand".to_owned(),
    };
    // What was decided since is over, which is no error.
    let answer = app.ask(unit.run.execution_key(), Some(unit.run.run), Command::Lost(lost), None, Vec::new()).await;
    if let Err(error) = answer
        && error.is_transient()
    {
        tracing::warn!(%error, execution = %unit.run.execution, "a loss could not be counted");
    }
}

/// Holds what workers had in hand for one session time-out, so that a living one keeps it.
async fn hold_noted(app: &Arc<Inner>) -> Result<(), Error> {
    let until = app.clock.now().after(app.settings.session_timeout);
    let classes: HashSet<ReadyClass> = app.store.noted().await?.iter().map(|(row, _)| ReadyClass::from(row)).collect();
    for class in classes {
        let page = app.store.ready_page(&class, ReadyOrder::Age, usize::MAX >> 1).await?;
        for mut item in page.items {
            if let Some(note) = item.note.take() {
                app.dispatch.hold(item, note, until);
            }
        }
    }
    Ok(())
}

fn go_on(app: &Arc<Inner>, key: ExecutionKey) {
    app.lanes.send(Ask { key, what: What::Repair, reply: None, logs: Vec::new() });
}
