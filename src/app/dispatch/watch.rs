//! Watches over deliveries and sessions: time-outs, silence, and the ends of times in queues.

use std::{sync::Arc, time::Duration};

use super::dispatcher::{Held, Holder};
use crate::{
    app::{Inner, counters::count},
    engine::{Answer, Command, Lost, Report},
    model::{Failure, Millis, Served, SessionId, Timestamp, code, row::ReadyRow},
    store::{ReadyClass, ReadyOrder},
};

/// How often deliveries and sessions are looked at while there are any. The lateness of a time-out is at most this.
const LOOK_EVERY: Millis = Millis(200);
/// How many ends of times in queues one look handles.
const QUEUE_ENDS: usize = 1_000;
/// How long to wait after the store failed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Watches until the server stops.
pub(in crate::app) async fn run(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        let now = app.clock.now();
        look(&app, now).await;
        let idle = app.dispatch.session_count() == 0 && app.dispatch.held_by_workers().is_empty();
        tokio::select! {
            () = app.clock.sleep_until(now.after(LOOK_EVERY)), if !idle => {}
            () = app.watch_wake.notified(), if idle => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

async fn look(app: &Arc<Inner>, now: Timestamp) {
    let timeout = app.settings.session_timeout;
    let silent: Vec<SessionId> = app
        .dispatch
        .sessions(|session| (session.last_seen.after(timeout) <= now).then(|| session.id.clone()))
        .into_iter()
        .flatten()
        .collect();
    for session in silent {
        app.end_session(&session, "the worker's session was silent for too long").await;
    }
    let ends =
        app.dispatch.held_by_workers().into_iter().filter_map(|held| ending(app, &held, now).map(|end| (held, end)));
    let ends: Vec<(Held, End)> = ends.collect();
    for (held, end) in ends {
        app.end_delivery(held, end).await;
    }
}

/// How a delivery to a worker ends without its word.
pub(in crate::app) enum End {
    /// The attempt failed.
    Failed(Failure),
    /// Nobody knows whether the work was done.
    Lost(String),
}

fn ending(app: &Inner, held: &Held, now: Timestamp) -> Option<End> {
    let row = &held.ready.row;
    if held.deadline <= now {
        let message = format!("the attempt took longer than {}", row.timeouts.attempt_ms);
        return Some(End::Failed(Failure::engine(code::TIMEOUT, message)));
    }
    let (session, _) = match &held.holder {
        Holder::Noted(worker, until) if *until <= now => {
            return Some(End::Lost(format!("the worker `{worker}` did not come back after a restart of the server")));
        }
        Holder::Session(session, worker) => (session, worker),
        _ => return None,
    };
    if !held.confirmed && held.handed_at.after(Millis(app.settings.heartbeat_interval.0 * 2)) <= now {
        return Some(End::Lost("the delivery was never confirmed by a sign of life".to_owned()));
    }
    let silence = row.timeouts.heartbeat_ms?;
    if held.heard_at.after(silence) > now {
        return None;
    }
    let session_heard = app.dispatch.with_session(session, |session| session.last_seen);
    Some(if session_heard.is_some_and(|heard| heard.after(silence) > now) {
        End::Failed(Failure::engine(code::HEARTBEAT_TIMEOUT, format!("nothing was heard of the attempt for {silence}")))
    } else {
        End::Lost(format!("nothing was heard of the worker for {silence}"))
    })
}

impl Inner {
    /// Ends a delivery by command; it stays in the books where the command cannot be committed now.
    pub(in crate::app) async fn end_delivery(&self, held: Held, end: End) {
        let unit = held.ready.row.unit.clone();
        let Some(held) = self.dispatch.take_out(&unit, held.delivery) else { return };
        let served = self.served_by(&held);
        let row = &held.ready.row;
        let command = match end {
            End::Failed(failure) => Command::Report(Report {
                unit: unit.unit.clone(),
                attempt: row.attempt,
                delivery: Some(held.delivery),
                served: Some(served),
                progress: held.progress.clone(),
                outcome: Err(failure),
            }),
            End::Lost(reason) => {
                count(&self.counters.losses);
                Command::Lost(Lost {
                    unit: unit.unit.clone(),
                    attempt: row.attempt,
                    delivery: held.delivery,
                    served: Some(served),
                    progress: held.progress.clone(),
                    reason,
                })
            }
        };
        let answer = self.ask(unit.run.execution_key(), Some(unit.run.run), command, None, Vec::new()).await;
        match answer {
            Err(error) if error.is_transient() => self.dispatch.keep_out(held),
            // It was decided before, and whoever did may not have heard of it: what its row says now is looked up.
            Err(error) if error.is_of_the_past() => {
                self.dispatch.expect_row(&(&held.ready.row).into());
                self.refill_wake.notify_one();
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Ends a session: what it holds is lost.
    pub(in crate::app) async fn end_session(&self, session: &SessionId, reason: &str) {
        let Some(session) = self.dispatch.unregister(session) else { return };
        tracing::info!(worker = %session.worker, session = %session.id, holds = session.held.len(), reason, "a session ended");
        for unit in &session.held {
            if let Some(held) = self.dispatch.held(unit) {
                self.end_delivery(held, End::Lost(reason.to_owned())).await;
            }
        }
    }

    /// Who served a delivery to a worker, as far as is known.
    pub(in crate::app) fn served_by(&self, held: &Held) -> Served {
        let (worker_session, worker_id) = match &held.holder {
            Holder::Session(session, worker) => (Some(session.clone()), Some(worker.clone())),
            Holder::Noted(worker, _) => (None, Some(worker.clone())),
            Holder::Sandbox(..) => (None, None),
        };
        Served {
            worker_id,
            worker_session,
            module: None,
            dispatched_at_ms: Some(held.handed_at),
            finished_at_ms: Some(self.clock.now()),
            usage: None,
        }
    }
}

/// Ends times in queues until the server stops.
pub(in crate::app) async fn run_queue_ends(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        let next = match app.store.next_queue_end().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "ends of times in queues cannot be read; trying again"
                );
                tokio::time::sleep(AGAIN_AFTER).await;
                continue;
            }
        };
        let now = app.clock.now();
        if next.is_some_and(|next| next <= now) {
            end_queue_times(&app, now).await;
        }
        // What ends later than this look is announced by `queue_end_armed`.
        let until = next.filter(|next| *next > now).unwrap_or(now.after(LOOK_EVERY));
        tokio::select! {
            () = app.clock.sleep_until(until), if next.is_some() => {}
            () = app.queue_wake.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

async fn end_queue_times(app: &Arc<Inner>, now: Timestamp) {
    let rows = match app.store.queue_ends_until(now, QUEUE_ENDS).await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "ends of times in queues cannot be read");
            return;
        }
    };
    for row in rows {
        if app.dispatch.take_for_queue_end(&row, now) {
            end_queue_time(app, row).await;
        }
    }
}

async fn end_queue_time(app: &Arc<Inner>, row: ReadyRow) {
    let waited = row.timeouts.queue_ms.unwrap_or_default();
    let failure = Failure::engine(
        code::QUEUE_TIMEOUT,
        format!("nobody took the unit from the queue `{}` within {waited}", row.queue),
    );
    let report = Report {
        unit: row.unit.unit.clone(),
        attempt: row.attempt,
        delivery: None,
        served: None,
        progress: None,
        outcome: Err(failure),
    };
    let run = &row.unit.run;
    match app.ask(run.execution_key(), Some(run.run), Command::Report(report), None, Vec::new()).await {
        Ok(Answer::Reported { .. }) => {}
        Ok(_) | Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
    }
}

/// Starts more in the sandbox when a tenant that had enough there may have more, until the server stops.
pub(in crate::app) async fn run_beginnings(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        tokio::select! {
            () = app.sandbox.room_to_begin() => app.pump(),
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

/// Reads rows into windows that are low, until the server stops.
pub(in crate::app) async fn run_refills(app: Arc<Inner>) {
    let mut stopping = app.stopping.subscribe();
    loop {
        for (class, limit) in app.dispatch.refills() {
            refill(&app, &class, limit).await;
        }
        app.pump();
        tokio::select! {
            () = app.refill_wake.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

async fn refill(app: &Arc<Inner>, class: &ReadyClass, limit: usize) {
    let mut pages = Vec::new();
    for order in [ReadyOrder::Priority, ReadyOrder::Age] {
        match app.store.ready_page(class, order, limit / 2 + 1).await {
            Ok(page) => {
                for (unit, reason) in &page.unreadable {
                    count(&app.counters.unreadable);
                    tracing::error!(execution = %unit.run.execution, unit = %unit.unit, reason, "a ready unit is set aside");
                }
                pages.push((order, page));
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "ready units cannot be read; trying again");
                app.dispatch.refill_failed(class);
                tokio::time::sleep(AGAIN_AFTER).await;
                app.refill_wake.notify_one();
                return;
            }
        }
    }
    app.dispatch.refilled(class, pages, limit / 2 + 1);
}
