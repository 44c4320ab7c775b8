//! The worker protocol: sessions, deliveries, and their results.

use std::sync::Arc;

use super::{
    App, Error, ErrorCode, Inner, contracts,
    counters::count,
    dispatch::{GivenBack, Held, Holder, Taken, session::Session, watch::End},
    view::{
        ActiveDelivery, CompleteRequest, ContractRequest, FailRequest, HeartbeatAnswer, HeartbeatRequest, PollRequest,
        RegisterRequest, Registered, ReportAnswer, TaskView, WorkerView,
    },
};
use crate::{
    engine::{Answer, Command, Report},
    model::{
        ContractVersion, Delivery, DeliveryId, Failure, NodeLabel, Payload, QueueName, Served, SessionId, TaskName,
        TenantId, Timestamp, WorkerId,
        code::{self, Code},
        row::{Note, ReadyRow},
    },
    store::{NotePut, Noted},
};

/// How long a poll waits where it does not say.
const WAIT_MS: u64 = 20_000;
/// The longest that a poll waits.
const WAIT_MS_MAX: u64 = 60_000;
/// The most tasks of one poll.
const TASKS_MAX: u32 = 1_000;
/// The most contracts and queues of a session.
const CONTRACTS_MAX: usize = 1_000;
/// The most bytes of tasks in one answer; the first task always goes.
const ANSWER_BYTES_MAX: usize = 3 * 1024 * 1024;
/// The longest text that a worker says of itself.
const SAID_BYTES_MAX: usize = 256;

impl App {
    /// Opens a session.
    pub async fn register_worker(&self, tenant: &TenantId, request: RegisterRequest) -> Result<Registered, Error> {
        let now = self.inner.clock.now();
        let session = session_of(tenant, request, now)?;
        let answer = Registered {
            worker_session_id: session.id.to_string(),
            heartbeat_interval_ms: self.inner.settings.heartbeat_interval.0,
            session_timeout_ms: self.inner.settings.session_timeout.0,
            accepted_capacity: session.capacity.unwrap_or(0),
        };
        tracing::info!(worker = %session.worker, session = %session.id, "a worker registered");
        self.inner.dispatch.register(session);
        self.inner.watch_wake.notify_one();
        self.inner.refill_wake.notify_one();
        Ok(answer)
    }

    /// Takes a sign of life, and tells what is not wanted any more.
    pub async fn heartbeat_worker(
        &self,
        tenant: &TenantId,
        request: HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, Error> {
        let session = self.session(tenant, &request.worker_session_id)?;
        let app = &self.inner;
        let now = app.clock.now();
        if request.active.is_some() {
            app.dispatch.with_session(&session, |session| session.names_active = true);
        }
        app.dispatch.heard(&session, now);
        let mut cancel = Vec::new();
        for active in request.active.unwrap_or_default() {
            if !self.confirm(tenant, &session, &active, now)? {
                cancel.push(active.token);
            }
        }
        for token in app.unwanted(&session) {
            if !cancel.contains(&token) {
                cancel.push(token);
            }
        }
        Ok(HeartbeatAnswer { accepted: true, cancel, drain: app.is_stopping() })
    }

    fn confirm(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        active: &ActiveDelivery,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let delivery = self.delivery(tenant, &active.token)?;
        let progress = active.progress.clone().filter(|progress| progress.size_bytes() <= 64 * 1024);
        Ok(self.inner.dispatch.confirm(session, &delivery.unit, delivery.id, progress, now))
    }

    /// Waits for tasks that the session can take. Dropping the future loses nothing.
    pub async fn poll_worker(&self, tenant: &TenantId, request: PollRequest) -> Result<Handed, Error> {
        let session = self.session(tenant, &request.worker_session_id)?;
        let app = &self.inner;
        let max = request.max_tasks.unwrap_or(1).clamp(1, TASKS_MAX) as usize;
        let wait = request.wait_ms.unwrap_or(WAIT_MS).min(WAIT_MS_MAX);
        let end = tokio::time::Instant::now() + std::time::Duration::from_millis(wait);
        let mut stopping = app.stopping.subscribe();
        loop {
            let now = app.clock.now();
            app.dispatch.heard(&session, now);
            // In line before the look, so that what comes in between wakes this poll.
            let Some(mut parked) = ParkedPoll::new(app, &session) else { return Err(unknown_session()) };
            let Some(taken) = app.dispatch.take_for_session(&session, max, now) else { return Err(unknown_session()) };
            if app.dispatch.became_low() {
                app.refill_wake.notify_one();
            }
            let took = !taken.is_empty();
            parked.satisfied = took;
            let handed = self.hand_over(&session, taken).await;
            if !handed.is_empty() || app.is_stopping() {
                return Ok(handed);
            }
            if took {
                // Nothing of it could be handed over, but more may be ready, which wakes nobody any more.
                continue;
            }
            tokio::select! {
                _ = &mut parked.woken => parked.was_woken = true,
                () = tokio::time::sleep_until(end) => return Ok(handed),
                _ = stopping.wait_for(|stopping| *stopping) => return Ok(handed),
            }
            parked.satisfied = true;
            drop(parked);
        }
    }

    /// Makes the answer of what was taken: inputs are checked against their contracts before they are handed out, and the
    /// answer ends at its size limit.
    async fn hand_over(&self, session: &SessionId, taken: Vec<Taken>) -> Handed {
        // All of them from the start, so that a poll that ends in between gives all of them back.
        let mut handed = Handed { app: self.inner.clone(), deliveries: taken.clone(), tasks: Vec::new() };
        let mut bytes = 0;
        for taken in taken {
            let row = &taken.ready.row;
            let size = taken.ready.input.size_bytes();
            if !handed.tasks.is_empty() && bytes + size > ANSWER_BYTES_MAX {
                handed.leave_out(&taken);
                give_back(&self.inner, row, taken.delivery);
                continue;
            }
            let definition = self.inner.definition(&row.unit.run.tenant, &row.workflow, &row.workflow_version).await;
            let contract = definition.as_ref().ok().and_then(|definition| definition.contract(&row.task));
            if let Err(failure) = contracts::check_input(contract, &taken.ready.input) {
                handed.leave_out(&taken);
                if let Some(held) = self.inner.dispatch.held(&row.unit) {
                    self.inner.end_delivery(held, End::Failed(failure)).await;
                }
                continue;
            }
            bytes += size;
            let task = self.task_view(session, &taken).await;
            handed.tasks.push(task);
        }
        handed
    }

    async fn task_view(&self, session: &SessionId, taken: &Taken) -> TaskView {
        let app = &self.inner;
        let row = &taken.ready.row;
        let worker = app.dispatch.with_session(session, |session| session.worker.clone());
        let delivery = taken.ready.delivery(taken.delivery, worker.clone(), taken.handed_at, taken.deadline);
        if let Some(worker) = worker {
            let note = Note { delivery: taken.delivery, worker, session: session.clone(), handed_at: taken.handed_at };
            app.note(NotePut { unit: row.unit.clone(), attempt: row.attempt, noted: Noted::Out(note) });
        }
        count(&app.counters.handed_workers);
        TaskView {
            token: app.tokens.seal(&delivery),
            execution_id: row.unit.run.execution.to_string(),
            run: row.unit.run.run,
            workflow: row.workflow.to_string(),
            workflow_version: row.workflow_version.to_string(),
            step_id: row.unit.unit.to_string(),
            task_name: row.task.to_string(),
            contract_version: row.contract.as_ref().map_or_else(|| "*".to_owned(), ToString::to_string),
            input: taken.ready.input.clone(),
            idempotency_key: row.unit.idempotency_key(),
            attempt: row.attempt,
            redelivery: row.redelivery,
            deadline_ms: Some(taken.deadline.0),
            timeout_ms: Some(row.timeouts.attempt_ms.0),
            last_progress: app.last_progress(row).await,
            tenant: row.unit.run.tenant.to_string(),
        }
    }

    /// Takes a success.
    pub async fn complete_task(&self, tenant: &TenantId, request: CompleteRequest) -> Result<ReportAnswer, Error> {
        let delivery = self.delivery(tenant, &request.token)?;
        let output = request.output.unwrap_or_else(Payload::null);
        let outcome = self.checked_output(&delivery, output).await?;
        self.report(delivery, outcome).await
    }

    async fn checked_output(&self, delivery: &Delivery, output: Payload) -> Result<Result<Payload, Failure>, Error> {
        let bytes_max = self.inner.settings.limits.payload_bytes;
        if output.size_bytes() > bytes_max {
            let message = format!("the output has {} bytes; at most {bytes_max} are allowed", output.size_bytes());
            return Ok(Err(Failure::engine(code::PAYLOAD_TOO_LARGE, message)));
        }
        let run = &delivery.unit.run;
        let unit = delivery.unit.unit.clone();
        let found = self
            .inner
            .read(&run.tenant, &run.execution, move |_, definition| {
                let index = definition.plan.step_of(&unit)?;
                match &definition.step(index).kind {
                    crate::workflow::Kind::Task(task) => Some((definition.clone(), task.task.clone())),
                    _ => None,
                }
            })
            .await?
            .flatten();
        Ok(match found {
            Some((definition, task)) => contracts::check_output(definition.contract(&task), &output).map(|()| output),
            None => Ok(output),
        })
    }

    /// Takes a failure.
    pub async fn fail_task(&self, tenant: &TenantId, request: FailRequest) -> Result<ReportAnswer, Error> {
        if request.error_code.is_empty() {
            return Err(Error::invalid("`error_code` must not be empty"));
        }
        let code = Code::new(&request.error_code)?;
        let bytes_max = self.inner.settings.limits.payload_bytes;
        if request.details.as_ref().is_some_and(|details| details.size_bytes() > bytes_max) {
            return Err(Error::new(
                ErrorCode::PayloadTooLarge,
                format!("`details` may have at most {bytes_max} bytes"),
            ));
        }
        let delivery = self.delivery(tenant, &request.token)?;
        let message = request.error_message.unwrap_or_default();
        let mut failure = Failure::task(code, message, request.retryable.unwrap_or(true));
        failure.retry_after_ms = request.retry_after_ms;
        failure.details = request.details;
        self.report(delivery, Err(failure)).await
    }

    async fn report(&self, delivery: Delivery, outcome: Result<Payload, Failure>) -> Result<ReportAnswer, Error> {
        let app = &self.inner;
        let held = app.dispatch.held(&delivery.unit).filter(|held| held.delivery == delivery.id);
        let served = match &held {
            Some(held) => app.served_by(held),
            None => Served {
                worker_id: delivery.worker.clone(),
                dispatched_at_ms: Some(delivery.handed_at),
                finished_at_ms: Some(app.clock.now()),
                ..Served::default()
            },
        };
        if let Some(session) = &served.worker_session {
            app.dispatch.heard(session, app.clock.now());
        }
        let report = Report {
            unit: delivery.unit.unit.clone(),
            attempt: delivery.attempt,
            delivery: Some(delivery.id),
            served: Some(served),
            progress: held.and_then(|held| held.progress),
            outcome,
        };
        let run = &delivery.unit.run;
        let answer = app.ask(run.execution_key(), Some(run.run), Command::Report(report), None, Vec::new()).await;
        match answer {
            Ok(Answer::Reported { accepted: true }) => {
                app.dispatch.settle(&delivery.unit, delivery.id);
                Ok(ReportAnswer { accepted: true, stale: false })
            }
            Ok(_) => Ok(self.stale(&delivery)),
            // The run is not the present one, or the execution is gone.
            Err(error) if error.is_of_the_past() => Ok(self.stale(&delivery)),
            Err(error) => Err(error),
        }
    }

    fn stale(&self, delivery: &Delivery) -> ReportAnswer {
        count(&self.inner.counters.stale_reports);
        self.inner.dispatch.settle(&delivery.unit, delivery.id);
        ReportAnswer { accepted: false, stale: true }
    }

    /// Closes a session: what it holds is given back at once.
    pub async fn unregister_worker(&self, tenant: &TenantId, session: &str) -> Result<(), Error> {
        let id = self.session(tenant, session)?;
        let app = &self.inner;
        let session = app.dispatch.unregister(&id).ok_or_else(unknown_session)?;
        for unit in &session.held {
            if let Some(held) = app.dispatch.held(unit) {
                give_back(app, &held.ready.row, held.delivery);
            }
        }
        tracing::info!(worker = %session.worker, session = %session.id, "a worker unregistered");
        Ok(())
    }

    /// Every session of the tenant with what it serves and holds.
    pub async fn list_workers(&self, tenant: &TenantId) -> Vec<WorkerView> {
        let own = |session: &Session, polls| (session.tenant == *tenant).then(|| worker_view(session, polls));
        let mut workers: Vec<_> = self.inner.dispatch.sessions_with_polls(own).into_iter().flatten().collect();
        workers.sort_by(|a, b| (&a.worker_id, a.registered_at_ms).cmp(&(&b.worker_id, b.registered_at_ms)));
        workers
    }

    fn session(&self, tenant: &TenantId, session: &str) -> Result<SessionId, Error> {
        if session.is_empty() {
            return Err(Error::invalid("`worker_session_id` must not be empty"));
        }
        let id = SessionId::new(session)?;
        let own = self.inner.dispatch.with_session(&id, |session| session.tenant == *tenant);
        if own == Some(true) { Ok(id) } else { Err(unknown_session()) }
    }

    fn delivery(&self, tenant: &TenantId, token: &str) -> Result<Delivery, Error> {
        if token.is_empty() {
            return Err(Error::invalid("`token` must not be empty"));
        }
        let delivery = self.inner.tokens.open(token).filter(|delivery| delivery.unit.run.tenant == *tenant);
        delivery.ok_or_else(|| {
            Error::new(ErrorCode::TokenInvalid, "the token is not one of this server's, or not of this tenant")
        })
    }
}

impl Inner {
    /// The tokens of what a session holds and nobody wants any more.
    fn unwanted(&self, session: &SessionId) -> Vec<String> {
        let held = self.dispatch.with_session(session, |session| session.held.iter().cloned().collect::<Vec<_>>());
        let stopped =
            held.unwrap_or_default().into_iter().filter_map(|unit| self.dispatch.held(&unit)).filter(|held| held.stop);
        stopped.filter_map(|held| self.token_of(&held)).collect()
    }

    fn token_of(&self, held: &Held) -> Option<String> {
        let Holder::Session(_, worker) = &held.holder else { return None };
        let delivery = held.ready.delivery(held.delivery, Some(worker.clone()), held.handed_at, held.deadline);
        Some(self.tokens.seal(&delivery))
    }

    /// The progress that an earlier delivery or attempt of the unit recorded.
    pub(super) async fn last_progress(&self, row: &ReadyRow) -> Option<Payload> {
        if row.attempt == 1 && !row.redelivery {
            return None;
        }
        let run = &row.unit.run;
        let unit = row.unit.unit.clone();
        let read = self.read(&run.tenant, &run.execution, move |execution, definition| {
            let index = definition.plan.step_of(&unit)?;
            execution.unit(index).more().and_then(|more| more.progress.clone())
        });
        read.await.ok().flatten().flatten()
    }
}

fn unknown_session() -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no such session; register again")
}

fn said(text: String, name: &str) -> Result<String, Error> {
    let printable = !text.chars().any(char::is_control);
    if printable && text.len() <= SAID_BYTES_MAX {
        Ok(text)
    } else {
        Err(Error::invalid(format!("`{name}` must be at most {SAID_BYTES_MAX} bytes without control characters")))
    }
}

fn session_of(tenant: &TenantId, request: RegisterRequest, now: Timestamp) -> Result<Session, Error> {
    if request.worker_id.is_empty() {
        return Err(Error::invalid("`worker_id` must not be empty"));
    }
    if request.contracts.is_empty() {
        return Err(Error::invalid("`contracts` must name at least one task"));
    }
    let queues = request.queues.unwrap_or_else(|| vec![QueueName::default_queue().to_string()]);
    if request.contracts.len() > CONTRACTS_MAX || queues.len() > CONTRACTS_MAX || queues.is_empty() {
        return Err(Error::invalid(format!("a worker names 1 to {CONTRACTS_MAX} contracts and queues")));
    }
    if let Some(other) = request.tenants.iter().flatten().find(|name| name.as_str() != tenant.as_str()) {
        return Err(Error::invalid(format!("`tenants`: a worker serves its own tenant for now, not `{other}`")));
    }
    let contract = |contract: ContractRequest| -> Result<(TaskName, ContractVersion), Error> {
        Ok((TaskName::new(&contract.task_name)?, ContractVersion::new(&contract.version)?))
    };
    let queues: Result<Vec<QueueName>, _> = queues.iter().map(QueueName::new).collect();
    Ok(Session {
        id: SessionId::new(uuid::Uuid::now_v7().to_string())?,
        worker: WorkerId::new(&request.worker_id)?,
        tenant: tenant.clone(),
        runtime: said(request.runtime, "runtime")?,
        sdk: request.sdk.map(|text| said(text, "sdk")).transpose()?,
        identity: request.identity.map(|text| said(text, "identity")).transpose()?,
        queues: queues?,
        node: request.node.filter(|node| !node.is_empty()).map(NodeLabel::new).transpose()?,
        capacity: request.capacity.filter(|capacity| *capacity > 0),
        contracts: request.contracts.into_iter().map(contract).collect::<Result<_, _>>()?,
        registered_at: now,
        last_seen: now,
        names_active: false,
        held: std::collections::HashSet::new(),
    })
}

fn worker_view(session: &Session, waiting_polls: u32) -> WorkerView {
    let mut holds: Vec<String> =
        session.held.iter().map(|unit| format!("{}/{}", unit.run.execution, unit.unit)).collect();
    holds.sort();
    WorkerView {
        worker_id: session.worker.to_string(),
        worker_session_id: session.id.to_string(),
        runtime: session.runtime.clone(),
        sdk: session.sdk.clone(),
        identity: session.identity.clone(),
        queues: session.queues.iter().map(ToString::to_string).collect(),
        node: session.node.as_ref().map(ToString::to_string),
        capacity: session.capacity.unwrap_or(0),
        tasks: session.contracts.iter().map(|(task, version)| format!("{task}@{version}")).collect(),
        holds,
        waiting_polls,
        registered_at_ms: session.registered_at.0,
        last_seen_at_ms: session.last_seen.0,
    }
}

/// A poll in line. Dropping it leaves the line, and passes on a wake that it could not use.
struct ParkedPoll {
    app: Arc<Inner>,
    session: SessionId,
    id: u64,
    woken: tokio::sync::oneshot::Receiver<()>,
    was_woken: bool,
    satisfied: bool,
}

impl ParkedPoll {
    fn new(app: &Arc<Inner>, session: &SessionId) -> Option<Self> {
        let (id, woken) = app.dispatch.park(session)?;
        Some(Self { app: app.clone(), session: session.clone(), id, woken, was_woken: false, satisfied: false })
    }
}

impl Drop for ParkedPoll {
    fn drop(&mut self) {
        let woken = self.was_woken || self.woken.try_recv().is_ok();
        self.app.dispatch.leave(self.id, &self.session, woken && !self.satisfied);
    }
}

/// Tasks on their way to a worker. Unless [`Handed::sent`] is called, dropping it gives them back at once.
pub struct Handed {
    app: Arc<Inner>,
    deliveries: Vec<Taken>,
    tasks: Vec<TaskView>,
}

impl Handed {
    /// The tasks.
    pub fn tasks(&self) -> &[TaskView] {
        &self.tasks
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The answer was written.
    pub fn sent(mut self) {
        self.deliveries.clear();
    }

    fn leave_out(&mut self, taken: &Taken) {
        self.deliveries.retain(|other| other.delivery != taken.delivery);
    }
}

fn give_back(app: &Inner, row: &ReadyRow, delivery: DeliveryId) {
    let now = app.clock.now();
    let given_back = app.dispatch.give_back(&row.unit, delivery, now);
    if given_back == GivenBack::NotOut {
        return;
    }
    count(&app.counters.returns);
    if given_back == GivenBack::Stopped {
        let stopped = Command::Stopped { unit: row.unit.unit.clone(), attempt: row.attempt };
        return app.tell(&row.unit.run, stopped);
    }
    app.note(NotePut { unit: row.unit.clone(), attempt: row.attempt, noted: Noted::Back(now) });
    if row.timeouts.queue_ms.is_some() {
        app.queue_wake.notify_one();
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        for taken in self.deliveries.drain(..) {
            give_back(&self.app, &taken.ready.row, taken.delivery);
        }
    }
}
