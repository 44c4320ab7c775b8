//! Serves units in the sandbox: one attempt, one fresh instance, one report.

use std::{sync::Arc, time::Duration};

use super::dispatcher::Taken;
use crate::{
    app::{Error, Inner, allowance::Allowance, contracts, counters::count, recordings::Begun},
    engine::{Answer, Command, Report},
    model::{Digest, Failure, Payload, Served, TenantId, code, delivery::Usage, row::LogLine},
    sandbox,
    store::{InHand, NotePut, Noted},
};

/// The longest wait between two tries to report a result.
const REPORT_AGAIN_MAX: Duration = Duration::from_secs(5);

impl Inner {
    /// Starts what the sandbox has room for.
    pub(in crate::app) fn pump(self: &Arc<Self>) {
        let enough = |tenant: &TenantId, in_hand: usize| self.sandbox.has_enough(tenant, in_hand);
        while let Some(taken) = self.dispatch.take_for_sandbox(self.clock.now(), enough) {
            count(&self.counters.handed_sandbox);
            let app = self.clone();
            tokio::spawn(async move { app.serve(taken).await });
        }
        if self.dispatch.became_low() {
            self.refill_wake.notify_one();
        }
    }

    /// Serves one delivery from its slot to its committed report.
    async fn serve(self: Arc<Self>, taken: Taken) {
        let row = &taken.ready.row;
        let in_hand = InHand { unit: row.unit.clone(), attempt: row.attempt, delivery: taken.delivery };
        if let Err(error) = self.store.note_in_hand(taken.slot, Some(&in_hand)) {
            tracing::warn!(error = &error as &dyn std::error::Error, "what the sandbox has in hand cannot be noted");
        }
        let ended = self.run_attempt(&taken).await;
        self.dispatch.free_slot(&taken);
        self.pump();
        match ended {
            Some(ended) => self.report(&taken, ended).await,
            None => self.hand_back(&taken),
        }
        self.dispatch.reported();
        self.pump();
    }

    /// Gives a delivery back that was cut short by the end of the server.
    fn hand_back(&self, taken: &Taken) {
        count(&self.counters.returns);
        if let Err(error) = self.store.note_in_hand(taken.slot, None) {
            tracing::warn!(error = &error as &dyn std::error::Error, "what the sandbox has in hand cannot be noted");
        }
        let row = &taken.ready.row;
        // Before the delivery leaves the books: the end of the server waits for that, and writes what was noted by then.
        let now = self.clock.now();
        self.note(NotePut { unit: row.unit.clone(), attempt: row.attempt, noted: Noted::Back(now) });
        self.dispatch.give_back(&row.unit, taken.delivery, now);
    }

    /// Runs the attempt; none: it was cut short by the end of the server.
    async fn run_attempt(&self, taken: &Taken) -> Option<Ended> {
        let row = &taken.ready.row;
        let definition = self.definition(&row.unit.run.tenant, &row.workflow, &row.workflow_version).await;
        let contract = definition.as_ref().ok().and_then(|definition| definition.contract(&row.task));
        if let Err(failure) = contracts::check_input(contract, &taken.ready.input) {
            return Some(Ended::failed(failure));
        }
        let Some(digest) = &row.module else {
            return Some(Ended::failed(Failure::engine(code::MODULE_NOT_FOUND, "the unit names no module")));
        };
        let module = match self.module(&row.unit.run.tenant, digest).await {
            Ok(module) => module,
            Err(failure) => return Some(Ended::failed(failure)),
        };
        let allowance = self.allowance(&row.unit.run.tenant, &row.task, row.settings.as_ref()).await;
        let Allowance { limits, grant, recorded } = match allowance {
            Ok(allowance) => allowance,
            Err(failure) => return Some(Ended::failed(failure)),
        };
        if let Some(last) = self.last_progress(row).await {
            taken.progress.report(last);
        }
        let attempt = sandbox::Attempt {
            info: sandbox::Info {
                unit: row.unit.clone(),
                workflow: row.workflow.clone(),
                workflow_version: row.workflow_version.clone(),
                task: row.task.clone(),
                attempt: row.attempt,
                redelivery: row.redelivery,
                deadline: Some(taken.deadline),
            },
            input: taken.ready.input.clone(),
            limits,
            grant,
            wall: row.timeouts.attempt_ms,
            progress: taken.progress.clone(),
            cancel: taken.cancel.clone(),
            answers: if recorded { sandbox::Answers::Kept } else { sandbox::Answers::Live },
        };
        let begun = recorded.then(|| Begun::of(&attempt));
        let finished = self.sandbox.run(&module, attempt).await.ok()?;
        let cancelled = finished.outcome.as_ref().is_err_and(|failure| failure.code == code::CANCELLED);
        if cancelled && self.is_stopping() {
            return None;
        }
        if let Some(begun) = begun {
            self.keep_recording(row, begun, &finished).await;
        }
        let outcome = finished.outcome.and_then(|output| contracts::check_output(contract, &output).map(|()| output));
        Some(Ended { outcome, usage: Some(finished.usage), logs: finished.logs, progress: finished.progress })
    }

    /// Reports until it is committed: a result is not lost to a full disk.
    async fn report(&self, taken: &Taken, ended: Ended) {
        let row = &taken.ready.row;
        let served = Served {
            module: row.module.clone(),
            dispatched_at_ms: Some(taken.handed_at),
            finished_at_ms: Some(self.clock.now()),
            usage: ended.usage,
            ..Served::default()
        };
        let report = Report {
            unit: row.unit.unit.clone(),
            attempt: row.attempt,
            delivery: Some(taken.delivery),
            served: Some(served),
            progress: ended.progress,
            outcome: ended.outcome,
        };
        let mut wait = Duration::from_millis(100);
        loop {
            let command = Command::Report(report.clone());
            let run = &row.unit.run;
            match self.ask(run.execution_key(), Some(run.run), command, None, ended.logs.clone()).await {
                Ok(answer) => {
                    if answer == (Answer::Reported { accepted: false }) {
                        count(&self.counters.stale_reports);
                    }
                    self.dispatch.settle(&row.unit, taken.delivery);
                    return;
                }
                Err(error) if error.is_transient() && !self.is_stopping() => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(REPORT_AGAIN_MAX);
                }
                Err(error) => {
                    self.report_failed(taken, &error);
                    return;
                }
            }
        }
    }

    fn report_failed(&self, taken: &Taken, error: &Error) {
        if !self.is_stopping() {
            let unit = &taken.ready.row.unit;
            tracing::error!(%error, execution = %unit.run.execution, unit = %unit.unit, "a result cannot be recorded");
        }
        self.dispatch.take_out(&taken.ready.row.unit, taken.delivery);
    }

    /// Returns a module that is ready to run.
    async fn module(&self, tenant: &TenantId, digest: &Digest) -> Result<sandbox::Module, Failure> {
        if let Some(module) = self.sandbox.cached(digest) {
            return Ok(module);
        }
        let loaded = self.sandbox.load(tenant, digest, async { Ok(self.module_bytes(tenant, digest).await?) }).await;
        loaded.map_err(|error| match error {
            NotLoaded::Gone(failure) => failure,
            NotLoaded::Rejected(rejected) => {
                Failure::sandbox(code::INTERNAL, format!("the module `{digest}` cannot be loaded: {rejected}"))
            }
        })
    }
}

/// Why a module is not ready to run.
enum NotLoaded {
    Gone(Failure),
    Rejected(sandbox::Rejected),
}

impl From<Failure> for NotLoaded {
    fn from(failure: Failure) -> Self {
        Self::Gone(failure)
    }
}

impl From<sandbox::Rejected> for NotLoaded {
    fn from(rejected: sandbox::Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

/// How a sandboxed attempt ended.
struct Ended {
    outcome: Result<Payload, Failure>,
    usage: Option<Usage>,
    logs: Vec<LogLine>,
    progress: Option<Payload>,
}

impl Ended {
    fn failed(failure: Failure) -> Self {
        Self { outcome: Err(failure), usage: None, logs: Vec::new(), progress: None }
    }
}
