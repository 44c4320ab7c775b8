//! The start on a database that was used before. Nothing is loaded but what is ready, due, or was in hand.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{
    Error, Inner,
    counters::count,
    lane::{Ask, What},
};
use crate::{
    engine::{self, Command, Lost},
    model::{Execution, Served, UnitKey, execution::Target, id::UnitRef, row::ExecutionKey},
    store::InHand,
    workflow::Definition,
};

/// How many unfinished turns one read takes.
const TURNS: usize = 10_000;
/// How many executions that wind down one page loads.
const PAGE: usize = 1_000;

/// Brings memory to where the rows are. Runs before anything is handed out.
pub(super) async fn run(app: &Arc<Inner>) -> Result<(), Error> {
    read_tenants(app).await?;
    let mut unseen = Unseen::Nobody;
    if app.store.ended_uncleanly() {
        unseen = Unseen::Workers;
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
    go_on_with_turns(app).await?;
    tell_stops(app, unseen).await
}

/// Who may be at work on a unit that is in no book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    Nobody,
    /// What was handed to a worker just before an unclean end is not noted.
    Workers,
}

/// Reads the tenants with all that is known of each, and the modules and aliases of those that have any.
pub(super) async fn read_tenants(app: &Inner) -> Result<(), Error> {
    {
        // An older answer must not replace what is registered meanwhile.
        let _guard = app.registering.lock().await;
        app.directory.read(&*app.store).await?;
    }
    for (tenant, known) in app.directory.all() {
        if let Some(row) = &known.policy {
            app.dispatch.set_share(&tenant, row.policy.share(app.sandbox.slots()));
        }
    }
    for tenant in app.store.tenants().await? {
        app.refresh_facts(&tenant).await?;
    }
    Ok(())
}

/// Goes on with turns that reached their bound.
pub(super) async fn go_on_with_turns(app: &Inner) -> Result<(), Error> {
    for key in app.store.unfinished_turns(TURNS).await? {
        app.lanes.send(Ask { key, what: What::Repair, reply: None, logs: Vec::new() });
    }
    Ok(())
}

/// Tells units of runs that wind down to stop, once more. Only what winds down and has work is loaded.
pub(super) async fn tell_stops(app: &Inner, unseen: Unseen) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = app.store.winding_down(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        // All at once, so that they share loads.
        join_all(page.iter().map(|key| stop_units(app, key, unseen))).await;
    }
}

async fn stop_units(app: &Inner, key: &ExecutionKey, unseen: Unseen) {
    let look = move |execution: &Execution, definition: &Arc<Definition>| {
        let by_worker = |unit: &UnitKey| {
            let unit = definition.plan.step_of(unit).and_then(|index| execution.unit(index).more());
            unit.is_some_and(|more| more.target == Some(Target::Worker))
        };
        let units = engine::stopping(execution, definition).into_iter();
        let units = units.map(|(unit, attempt)| (unseen == Unseen::Workers && by_worker(&unit), unit, attempt));
        (execution.key.clone(), units.collect::<Vec<_>>())
    };
    let (run, units) = match app.read(&key.tenant, &key.execution, look).await {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, execution = %key.execution, "the units that must stop cannot be read");
            return;
        }
    };
    for (may_be_out, unit, attempt) in units {
        if may_be_out {
            // Handed out no more, and waited for like what is out, until its grace ends.
            app.dispatch.stop(&UnitRef { run: run.clone(), unit }, attempt);
        } else {
            app.stop(&run, unit, attempt);
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
    for mut item in app.store.noted().await?.items {
        if let Some(note) = item.note.take() {
            app.dispatch.hold(item, note, until);
        }
    }
    Ok(())
}
