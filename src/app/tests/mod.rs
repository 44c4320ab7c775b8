//! The operations on a store in memory whose commits can be made to fail.

mod faults;
mod fuzz;
mod stops;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    App, CompleteRequest, ContractRequest, Error, ExecutionStarted, ExecutionView, Handed, HistoryRequest, PollRequest,
    RegisterRequest, ServerKey, Settings, SignalAccepted, StartRequest,
};
use crate::{
    clock::Clock,
    model::{Millis, Payload, TenantId, facts::Limits},
    sandbox::{self, Sandbox, tests::guest::Guest},
    store::memory::Memory,
};

/// The generous end of everything that is waited for.
const PATIENCE: Duration = Duration::from_secs(8);

/// One sandbox serves the servers of all tests; each of them still runs its own attempts.
fn sandbox() -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    let make = || Sandbox::new(sandbox::Config { threads: 1, max_concurrent: Some(4), ..sandbox::Config::default() });
    SANDBOX.get_or_init(|| make().unwrap()).clone()
}

/// Settings with a built-in component that does the task `test`: it answers its input.
fn settings() -> Settings {
    Settings {
        lanes: 2,
        inbox: 1_000,
        cache_bytes: 1 << 20,
        heartbeat_interval: Millis(5_000),
        session_timeout: Millis(30_000),
        sweep: Millis(3_600_000),
        drain: Millis(1_000),
        limits: Limits::default(),
        builtin: Bytes::from(Guest::echo().build()),
    }
}

/// A server in this process.
struct Server(App);

impl Server {
    async fn on(store: &Memory) -> Self {
        Self::with(store, settings()).await
    }

    async fn with(store: &Memory, settings: Settings) -> Self {
        let key = ServerKey::from_secret("a secret of the tests, long enough").unwrap();
        Self(App::start(Arc::new(store.clone()), sandbox(), Clock::system(), &key, settings).await.unwrap())
    }

    /// Registers a document under a name.
    async fn register(&self, name: &str, steps: Value) {
        let document = json!({
            "ir_version": "sandkeep-ir/1", "name": name, "version": "1", "signals": { "go": {} }, "steps": steps,
        });
        self.0.register_workflow(&tenant(), document.to_string().as_bytes(), true).await.unwrap();
    }

    async fn start(&self, workflow: &str, id: &str) -> Result<ExecutionStarted, Error> {
        let request =
            StartRequest { workflow: workflow.into(), execution_id: Some(id.into()), ..StartRequest::default() };
        self.0.start_execution(&tenant(), request, None).await
    }

    async fn state(&self, id: &str) -> ExecutionView {
        self.0.find_execution(&tenant(), id).await.unwrap()
    }

    /// Sends the signal `go`.
    async fn signal(&self, id: &str, key: Option<&str>) -> Result<SignalAccepted, Error> {
        self.0.signal_execution(&tenant(), id, "go", Payload::null(), key).await
    }

    /// Waits until the execution is terminal; returns its state.
    async fn ended(&self, id: &str) -> ExecutionView {
        let wait = async { self.0.wait_execution(&tenant(), id, Some(60_000)).await };
        let state = tokio::time::timeout(PATIENCE, wait).await.expect("it ends").unwrap();
        assert_ne!(state.status, "RUNNING", "{id}: {:?}", state.waiting_for);
        state
    }

    /// The events of an execution; their seqs are dense.
    async fn events(&self, id: &str) -> Vec<Value> {
        let page = self.0.history(&tenant(), id, HistoryRequest::default()).await.unwrap();
        let seqs: Vec<u64> = page.events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        page.events.iter().map(|event| serde_json::from_str(&event.json).unwrap()).collect()
    }

    /// The types of the events of an execution, with their units.
    async fn history(&self, id: &str) -> Vec<String> {
        let unit = |event: &Value| event["unit"].as_str().map(|unit| format!(" {unit}")).unwrap_or_default();
        let events = self.events(id).await;
        events.iter().map(|event| format!("{}{}", event["type"].as_str().unwrap(), unit(event))).collect()
    }

    /// Registers a worker for `native.work`; returns its session.
    async fn worker(&self, id: &str) -> String {
        let contract =
            ContractRequest { task_name: "native.work".into(), version: "1.0".into(), ..ContractRequest::default() };
        let request = RegisterRequest { worker_id: id.into(), contracts: vec![contract], ..RegisterRequest::default() };
        self.0.register_worker(&tenant(), request).await.unwrap().worker_session_id
    }

    async fn poll(&self, session: &str, wait_ms: u64) -> Handed {
        let request = PollRequest { worker_session_id: session.into(), wait_ms: Some(wait_ms), max_tasks: None };
        self.0.poll_worker(&tenant(), request).await.unwrap()
    }

    /// Polls until there is a task; returns its token and whether it is a redelivery.
    async fn take(&self, session: &str) -> (String, bool) {
        let handed = tokio::time::timeout(PATIENCE, async {
            loop {
                let handed = self.poll(session, 1_000).await;
                if !handed.is_empty() {
                    return handed;
                }
            }
        });
        let handed = handed.await.expect("there is a task");
        let task = (handed.tasks()[0].token.clone(), handed.tasks()[0].redelivery);
        handed.sent();
        task
    }

    async fn complete(&self, token: &str) -> Result<bool, Error> {
        let request = CompleteRequest { token: token.into(), output: None };
        self.0.complete_task(&tenant(), request).await.map(|answer| answer.accepted)
    }
}

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Asks as clients do: again while the server says that it cannot do it now.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T, Error>) -> T {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient() && tokio::time::Instant::now() < end, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
