//! The life of the server: start, health, metrics, and the end.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    App, Error, Inner, Purpose, ServerKey, Settings, counters, cursor::Cursors, dispatch, doubt, lane, recovery, sweep,
    tenants::Tenants, timers, uploads, view::Health, writer,
};
use crate::{
    clock::Clock,
    model::{TenantId, facts::Builtin},
    sandbox::Sandbox,
    store::{Batch, System},
};

/// The version of the wire.
pub const API_VERSION: &str = "sandkeep-api/1";
/// The version of the document.
pub const IR_VERSION: &str = "sandkeep-ir/1";

impl App {
    /// Starts the server's own work on a store: recovers, then hands out.
    pub async fn start(
        store: Arc<dyn System>,
        sandbox: Sandbox,
        clock: Clock,
        key: &ServerKey,
        settings: Settings,
    ) -> Result<Self, Error> {
        let builtin = sandbox.inspect_own(&TenantId::default_tenant(), settings.builtin.clone()).await;
        let builtin =
            builtin.map_err(|rejected| Error::internal(format!("the built-in component is not good: {rejected}")))?;
        let builtin = Builtin { digest: builtin.module.digest().clone(), tasks: builtin.tasks.into() };
        let (lanes, lane_starts) = lane::Lanes::new(settings.lanes, settings.inbox);
        let (writer, jobs) = writer::Writer::new();
        let inner = Arc::new(Inner {
            dispatch: dispatch::Dispatcher::new(sandbox.slots()),
            tokens: dispatch::token::Tokens::new(&key.derive(Purpose::Tokens), store.epoch()),
            cursors: Cursors::new(&key.derive(Purpose::Cursors)),
            tenants: Tenants::new(Some(builtin), settings.limits.clone()),
            directory: Default::default(),
            store,
            sandbox,
            clock,
            settings,
            lanes,
            writer,
            definitions: Default::default(),
            default_versions: Default::default(),
            timers: Default::default(),
            waiters: Default::default(),
            counters: Default::default(),
            registering: Default::default(),
            uploads: Default::default(),
            stopping: watch::Sender::new(false),
            watch_wake: Default::default(),
            queue_wake: Default::default(),
            doubt: Default::default(),
            refill_wake: Default::default(),
        });
        tokio::spawn(writer::run(inner.clone(), jobs));
        for start in lane_starts {
            tokio::spawn(lane::run(inner.clone(), start));
        }
        recovery::run(&inner).await?;
        uploads::resume(&inner).await?;
        inner.dispatch.open();
        tokio::spawn(timers::run(inner.clone()));
        tokio::spawn(sweep::run(inner.clone()));
        tokio::spawn(doubt::run(inner.clone()));
        tokio::spawn(dispatch::watch::run(inner.clone()));
        tokio::spawn(dispatch::watch::run_queue_ends(inner.clone()));
        tokio::spawn(dispatch::watch::run_beginnings(inner.clone()));
        tokio::spawn(dispatch::watch::run_refills(inner.clone()));
        inner.refill_wake.notify_one();
        Ok(Self { inner })
    }

    /// Tells how the server is, to anyone.
    pub async fn health(&self) -> Health {
        let active = self.inner.store.active_executions().await;
        Health {
            status: if active.is_ok() { "ok" } else { "degraded" }.to_owned(),
            api_version: API_VERSION.to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            ir_versions: vec![IR_VERSION.to_owned()],
            active_executions: active.unwrap_or(0),
            worker_sessions: u64::try_from(self.inner.dispatch.session_count()).unwrap_or(u64::MAX),
        }
    }

    /// Returns why the server cannot serve now.
    pub async fn ready(&self) -> Result<(), String> {
        if self.inner.is_stopping() {
            return Err("the server is stopping".to_owned());
        }
        self.inner.store.active_executions().await.map(|_| ()).map_err(|_| "the database cannot be read".to_owned())
    }

    /// Returns metrics as Prometheus text.
    pub async fn metrics(&self) -> String {
        let inner = &self.inner;
        let mut text = inner.counters.text();
        let stats = inner.store.stats();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (compiled, found_compiled) = inner.sandbox.compiles();
        let rows: [(&str, &str, &str, u64); 14] = [
            ("sandkeep_modules_compiled_total", "counter", "Modules that were compiled.", compiled),
            ("sandkeep_artefacts_used_total", "counter", "Modules that were found compiled.", found_compiled),
            ("sandkeep_commits_total", "counter", "Transactions that were committed.", stats.commits),
            ("sandkeep_commit_microseconds_total", "counter", "How long commits took in all.", stats.commit_us),
            ("sandkeep_database_bytes", "gauge", "Size of the database.", stats.database_bytes),
            ("sandkeep_database_log_bytes", "gauge", "Size of the write-ahead log.", stats.log_bytes),
            ("sandkeep_requests_waiting", "gauge", "Commands that wait in lanes.", number(inner.lanes.waiting())),
            ("sandkeep_timers_loaded", "gauge", "Timers that are due soon.", number(inner.timers.len())),
            ("sandkeep_ready_units", "gauge", "Units that are ready and not handed out.", inner.dispatch.ready_count()),
            (
                "sandkeep_sandbox_running",
                "gauge",
                "Units that the sandbox has in hand.",
                number(inner.dispatch.held_by_sandbox()),
            ),
            (
                "sandkeep_sandbox_slots_free",
                "gauge",
                "Attempts that the sandbox could begin at once.",
                number(inner.sandbox.slots_free()),
            ),
            (
                "sandkeep_worker_sessions",
                "gauge",
                "Sessions of native workers.",
                number(inner.dispatch.session_count()),
            ),
            (
                "sandkeep_worker_deliveries",
                "gauge",
                "Units that native workers have in hand.",
                number(inner.dispatch.held_by_workers().len()),
            ),
            (
                "sandkeep_active_executions",
                "gauge",
                "Executions that are not terminal.",
                inner.store.active_executions().await.unwrap_or(0),
            ),
        ];
        for (metric, kind, help, value) in rows {
            counters::write_metric(&mut text, metric, kind, help, value);
        }
        text
    }

    /// Shows whether the server stops: polls and streams end then.
    pub fn draining(&self) -> watch::Receiver<bool> {
        self.inner.stopping.subscribe()
    }

    /// Compares executions with their rows now, as the sweep does by itself; returns how many were repaired.
    pub async fn sweep_now(&self) -> Result<usize, Error> {
        sweep::once(&self.inner).await
    }

    /// Ends the server: nothing more is handed out, running work has its time, the rest is given back. Ends also where the
    /// database is down.
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        inner.dispatch.close();
        inner.stopping.send_replace(true);
        let end = tokio::time::Instant::now() + std::time::Duration::from(inner.settings.drain);
        while inner.dispatch.held_by_sandbox() > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        inner.dispatch.cancel_sandboxed();
        let grace = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
        while inner.dispatch.held_by_sandbox() > 0 && tokio::time::Instant::now() < grace {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        inner.sandbox.shutdown();
        // What the writer still gathers goes first: notes of deliveries wait for company.
        let written =
            tokio::time::timeout(std::time::Duration::from_millis(500), inner.writer.write(Batch::default())).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!("the last notes of deliveries were not written");
        }
        let closed = tokio::time::timeout(std::time::Duration::from_millis(900), inner.store.close()).await;
        match closed {
            Ok(Ok(())) => tracing::info!("the server ended"),
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the database could not be closed")
            }
            Err(_) => tracing::warn!("the database did not close in time"),
        }
    }
}
