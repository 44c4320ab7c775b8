//! Holds a case to the rules that all cases share.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    case::{self, Act, Case, Made, named},
    machine,
    neighbour::Neighbour,
    record::Row,
};
use crate::support::{Client, Server, count, guest, scale, until};

/// An attempt ends at most so long after its limit.
const LATENESS_MAX_MS: u64 = 10_000;
/// How much more than before a case a process may hold: descriptors of kept connections, and memory that its allocator and
/// its caches keep.
const DESCRIPTORS_KEPT: usize = 24;
const MEMORY_KEPT_BYTES: u64 = 384 << 20;

/// A server under attack, and what it held before.
pub(super) struct Harness {
    pub(super) server: Server,
    pub(super) client: Client,
    kind: &'static str,
    neighbour: Neighbour,
    before: Held,
    number: usize,
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    pid: u32,
    descriptors: usize,
    memory_bytes: u64,
    slots_free: u64,
}

/// What came of an upload.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) status: u16,
    /// Whether it may be used; else why it was refused.
    pub(super) refused: Option<String>,
    pub(super) code: String,
}

/// How a case ended.
pub(super) struct Seen {
    pub(super) ended: String,
    pub(super) late_ms: Option<u64>,
    /// The execution that was run.
    pub(super) execution: String,
}

/// The lowered limits, or the default ones in a soak.
pub(super) fn cpu_ms() -> u64 {
    scale(10_000, 300)
}

pub(super) fn attempt_ms() -> u64 {
    scale(30_000, 2_000)
}

impl Harness {
    pub(super) async fn start(kind: &'static str, settings: &[(&str, &str)]) -> Self {
        let cpu_ms = cpu_ms().to_string();
        let mut all = vec![("SANDBOX__CPU_MS", &*cpu_ms), ("SANDBOX__MAX_CONCURRENT", "8")];
        all.extend(settings);
        let server = Server::with(&all).await;
        let client = server.client();
        client.push("hostile").await;
        let neighbour = Neighbour::settle(server.client()).await;
        let before = held(&server, &client).await;
        Self { server, client, kind, neighbour, before, number: 0 }
    }

    /// Acts a case out beside the neighbour and holds it to the rules.
    pub(super) async fn run(&mut self, case: Case) -> String {
        let required = case.required();
        let slug = case.slug();
        self.number += 1;
        let id = format!("h{}-{slug}", self.number);
        let client = self.client.clone();
        match case.act {
            Act::Run { guest, attempts, ends } => {
                self.beside(case.name, &required, async |_: &Server| {
                    let seen = attack(&client, &id, guest, attempts).await;
                    assert!(ends.contains(&&*seen.ended), "{}: {} instead of {ends:?}", case.name, seen.ended);
                    seen
                })
                .await
            }
            Act::Refuse { bytes, part } => {
                self.beside(case.name, &required, async |_: &Server| {
                    let answer = upload(&client, &slug, bytes).await;
                    let refused = answer.refused.as_deref().unwrap_or_else(|| panic!("{}: it was taken", case.name));
                    assert!((400..500).contains(&answer.status) || answer.status == 200, "{}: {answer:?}", case.name);
                    assert!(refused.contains(part), "{}: `{part}` is not in: {refused}", case.name);
                    Seen { ended: format!("refused ({})", answer.code), late_ms: None, execution: String::new() }
                })
                .await
            }
            Act::Own { .. } => panic!("{} is acted out by its kind", case.name),
        }
    }

    /// Acts a case out in a way of its own, under the same rules.
    pub(super) async fn own(&mut self, case: Case, act: impl AsyncFnOnce(&Server) -> String) {
        let required = case.required();
        self.beside(case.name, &required, async |server: &Server| {
            let ended = act(server).await;
            Seen { ended, late_ms: None, execution: String::new() }
        })
        .await;
    }

    /// Returns the execution that the case ran.
    async fn beside(&mut self, name: &str, required: &str, act: impl AsyncFnOnce(&Server) -> Seen) -> String {
        let beside = self.neighbour.begin();
        let seen = act(&self.server).await;
        let beside_ms = self.neighbour.end(beside).await;
        self.settles(name).await;
        let row = Row {
            kind: self.kind,
            case: name,
            required,
            seen: &seen.ended,
            late_ms: seen.late_ms,
            alone_ms: self.neighbour.alone_ms,
            beside_ms,
        };
        row.write();
        seen.execution
    }

    /// The process lives, and what the case held comes back.
    async fn settles(&mut self, name: &str) {
        assert!(!self.server.has_ended(), "{name}: the process ended");
        let (status, health) = self.client.get("/v1/health").await;
        assert_eq!((status, &health["status"]), (200, &json!("ok")), "{name}");
        let before = self.before;
        let mut last = before;
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let now = held(&self.server, &self.client).await;
            let back = now.slots_free == before.slots_free
                && now.descriptors <= before.descriptors + DESCRIPTORS_KEPT
                && now.memory_bytes <= before.memory_bytes + MEMORY_KEPT_BYTES;
            assert_eq!(now.pid, before.pid, "{name}");
            if back {
                return;
            }
            last = if last.slots_free == 0 { last } else { now };
            assert!(Instant::now() < end, "{name}: {last:?} does not go back to {before:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn held(server: &Server, client: &Client) -> Held {
    Held {
        pid: server.pid(),
        descriptors: machine::descriptors(server.pid()),
        memory_bytes: machine::memory_bytes(server.pid()),
        slots_free: client.metric("sandkeep_sandbox_slots_free").await,
    }
}

/// Uploads bytes under a name, and waits until it is known what comes of them.
pub(super) async fn upload(client: &Client, name: &str, bytes: impl Into<reqwest::Body>) -> Uploaded {
    let path = format!("/v1/modules/{name}");
    let request = client.http().post(client.at(&path)).header("content-type", "application/wasm");
    let (status, mut value) = client.send(request.body(bytes)).await.expect("the server answers");
    if status == 202 {
        let path = format!("{path}/{}", value["digest"].as_str().expect("what is compiled has a digest"));
        value = until("the end of a compile", async || {
            let (_, value) = client.get(&path).await;
            (value["state"] != "compiling").then_some(value)
        })
        .await;
    }
    let code = value["error"]["code"].as_str().unwrap_or_default().to_owned();
    let refused = status >= 400 || value["state"] == "rejected";
    Uploaded { status, refused: refused.then(|| value.to_string()), code }
}

/// Makes a module of `guest`, and names its task. A task of `guests/hostile` is there already.
pub(super) async fn push(client: &Client, id: &str, guest: super::Guest) -> String {
    let task = format!("t.{id}");
    let uploaded = upload(client, id, named(guest, &task).build()).await;
    assert!(uploaded.refused.is_none(), "{id}: {uploaded:?}");
    task
}

/// Runs a guest once as a step of a workflow; checks that its history tells of one end, with its usage.
pub(super) async fn attack(client: &Client, id: &str, made: Made, attempts: u32) -> Seen {
    let (task, input) = match made {
        Made::Text(guest) => (push(client, id, guest).await, json!({ "n": 1 })),
        Made::Task(task, input) => (format!("hostile.{task}"), input),
        Made::Builtin(task, input) => (task.to_owned(), input),
    };
    client.register(&case::workflow(id, &task, attempts, attempt_ms())).await;
    client.start(id, id, input).await;
    let state = client.wait(id).await;
    let (ended, late_ms) = judge(id, &state, &client.history(id).await);
    Seen { ended, late_ms, execution: id.to_owned() }
}

/// Checks that a history tells of one end, with its usage. Returns that end, and how long after its limit it came.
pub(super) fn judge(id: &str, state: &Value, history: &[Value]) -> (String, Option<u64>) {
    let ends = ["WorkflowCompleted", "WorkflowFailed", "WorkflowCancelled", "WorkflowTimedOut"];
    let ended: usize = ends.iter().map(|kind| count(history, kind)).sum();
    assert_eq!(ended, 1, "{id}: {history:#?}");
    assert!(ends.contains(&history.last().unwrap()["type"].as_str().unwrap()), "{id}: {history:#?}");
    let of = |kind: &'static str| history.iter().filter(move |event| event["type"] == kind && event["unit"] == "a");
    let last = of("StepScheduled").next_back().expect("the step was scheduled");
    let served = of("StepAttemptFailed").chain(of("StepSucceeded")).max_by_key(|event| event["seq"].as_u64());
    let served = served.unwrap_or_else(|| panic!("{id}: no attempt ended: {history:#?}"));
    let usage = &served["served"]["usage"];
    assert!(usage["wall_ms"].is_u64() && usage["cpu_ms"].is_u64(), "{id}: no usage in {served}");
    assert_eq!(of("StepFailed").count() + of("StepSucceeded").count(), 1, "{id}: {history:#?}");
    let took_ms = served["at_ms"].as_u64().unwrap() - last["at_ms"].as_u64().unwrap();
    assert!(took_ms < attempt_ms() + LATENESS_MAX_MS, "{id}: it took {took_ms} ms");
    if state["status"] == "COMPLETED" {
        return ("COMPLETED".to_owned(), None);
    }
    assert_eq!(state["status"], "FAILED", "{id}: {state}");
    let code = state["error"]["code"].as_str().unwrap_or_default().to_owned();
    let late_ms = match &*code {
        "CPU_LIMIT" => usage["wall_ms"].as_u64().map(|wall| wall.saturating_sub(cpu_ms())),
        "TIMEOUT" => Some(took_ms.saturating_sub(attempt_ms())),
        _ => None,
    };
    (code, late_ms)
}

/// Returns the bytes of a real guest.
pub(super) fn real(name: &str) -> Vec<u8> {
    guest(name)
}
