//! `kill -9` at any moment, and modules that take the server down: nothing acknowledged is lost, nothing happens twice.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Client, PATIENCE, Server, audit, count, of_type, scale, until, workflow};

/// The message at which a server under test aborts.
const LAST_WORDS: &str = "xxxxxxx";

/// Where the server is now: it has another port after each start.
#[derive(Clone)]
struct Present(Arc<Mutex<Client>>);

impl Present {
    fn of(server: &Server) -> Self {
        Self(Arc::new(Mutex::new(server.client())))
    }

    fn client(&self) -> Client {
        self.0.lock().unwrap().clone()
    }

    fn moved(&self, server: &Server) {
        *self.0.lock().unwrap() = server.client();
    }

    /// Posts until there is an answer, as a careful client does; 503 is none.
    async fn post(&self, path: &str, body: &Value, key: Option<&str>) -> (u16, Value) {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let client = self.client();
            let mut request = client.http().post(client.at(path)).json(body).timeout(Duration::from_secs(10));
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(answer) = client.send(request).await.filter(|(status, _)| *status != 503) {
                return answer;
            }
            assert!(tokio::time::Instant::now() < end, "{path} was not answered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Documents of each sort, by name.
fn documents() -> Vec<Value> {
    let echo = |id: &str, input: Value| json!({ "id": id, "task": "core.echo", "input": input });
    let native = |id: &str, input: Value| json!({ "id": id, "task": "native.work", "input": input, "retry": { "max_redeliveries": 50 } });
    let retried = |id: &str| {
        json!({
            "id": id, "task": "core.fail", "input": { "until_attempt": 3, "retryable": true },
            "retry": { "initial": "20ms", "max": "50ms", "max_attempts": 3, "max_redeliveries": 50 },
        })
    };
    let wait = json!({ "id": "wait", "await": "go", "timeout": "1h" });
    let nap = json!({ "id": "nap", "sleep": "${ input.nap }" });
    let chain = json!([
        echo("a", json!("${ input.n }")),
        echo("b", json!("${ steps.a.output + 1 }")),
        echo("c", json!("${ steps.b.output + 1 }")),
        echo("d", json!("${ steps.c.output + 1 }")),
        echo("e", json!("${ steps.d.output + 1 }")),
    ]);
    let work = json!([
        native("a", json!("${ input.n }")),
        native("b", json!("${ steps.a.output }")),
        echo("c", json!("${ steps.b.output }"))
    ]);
    let all = json!([
        echo("a", json!("${ input.n }")),
        nap,
        retried("again"),
        native("work", json!("${ steps.a.output }")),
        wait,
        echo(
            "z",
            json!([
                "${ steps.nap.status }",
                "${ steps.again.output }",
                "${ steps.work.output }",
                "${ steps.wait.output }"
            ])
        ),
    ]);
    [
        workflow("chain", chain),
        workflow("retried", json!([retried("again"), echo("z", json!("${ steps.again.output }"))])),
        workflow("naps", json!([nap, { "id": "more", "sleep": "50ms", "after": ["nap"] }])),
        workflow("waits", json!([wait, echo("z", json!("${ steps.wait.output }"))])),
        workflow("work", work),
        workflow("all", all),
    ]
    .into()
}

/// A native worker that outlives the servers: it registers again with each, and repeats a result until it is answered.
async fn native_worker(present: Present, id: &'static str, ended: Arc<AtomicBool>) {
    let mut session = String::new();
    while !ended.load(Ordering::Relaxed) {
        let client = present.client();
        let register = json!({
            "worker_id": id, "runtime": "test", "capacity": 4,
            "contracts": [{ "task_name": "native.work", "version": "1.0" }],
        });
        let poll = json!({ "worker_session_id": session, "wait_ms": 300 });
        match client.try_post("/v1/workers/poll", &poll).await {
            Some((200, task)) => {
                tokio::time::sleep(Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 4)).await;
                let result = json!({ "token": task["token"], "output": task["input"] });
                let (status, answer) = present.post("/v1/tasks/complete", &result, None).await;
                assert!(status == 200 && answer["accepted"] != answer["stale"], "{status} {answer}");
            }
            Some((204, _)) => {}
            Some((400 | 404, _)) => {
                if let Some((200, answer)) = client.try_post("/v1/workers/register", &register).await {
                    answer["worker_session_id"].as_str().unwrap().clone_into(&mut session);
                }
            }
            Some((503, _)) | None => tokio::time::sleep(Duration::from_millis(20)).await,
            Some((status, answer)) => panic!("{status} {answer}"),
        }
    }
}

/// Starts an execution until it is acknowledged, and signals it where it waits.
async fn start(present: Present, document: Value, number: usize) {
    let id = format!("e-{number}");
    let input = json!({ "n": number, "nap": format!("{}ms", 50 + number * 37 % 450) });
    let body = json!({ "workflow": document["name"], "execution_id": id, "input": input });
    let (status, answer) = present.post("/v1/executions", &body, None).await;
    assert!(matches!(status, 200 | 201), "{status} {answer}");
    if waits(&document) {
        let path = format!("/v1/executions/{id}/signals/go");
        let (status, answer) = present.post(&path, &json!({ "n": number }), Some(&id)).await;
        assert!(matches!(status, 200 | 202), "{status} {answer}");
    }
}

fn waits(document: &Value) -> bool {
    document["steps"].as_array().unwrap().iter().any(|step| step["id"] == "wait")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_when_the_server_is_killed_again_and_again() {
    // 200 more before each kill, as most of those before have ended by then.
    let (kills, executions) = scale((20, 4_000), (6, 60));
    let mut server = Server::start().await;
    let present = Present::of(&server);
    let documents = documents();
    for document in &documents {
        server.client().register(document).await;
    }
    let ended = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> =
        ["w-1", "w-2"].map(|id| tokio::spawn(native_worker(present.clone(), id, ended.clone()))).into_iter().collect();

    let mut starts = Vec::new();
    for kill in 0..kills {
        let of_this = (kill * executions / kills)..((kill + 1) * executions / kills);
        starts.extend(
            of_this.map(|number| {
                tokio::spawn(start(present.clone(), documents[number % documents.len()].clone(), number))
            }),
        );
        // The moment is what is drawn.
        tokio::time::sleep(Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 2)).await;
        server.kill();
        server.restart().await;
        present.moved(&server);
    }
    for start in join_all(starts).await {
        start.unwrap();
    }
    let client = server.client();
    for number in 0..executions {
        let id = format!("e-{number}");
        let state = client.wait(&id).await;
        let history = client.history(&id).await;
        let document = &documents[number % documents.len()];
        assert_eq!(state["status"], "COMPLETED", "{state} {history:#?}");
        audit(document, &state, &history);
        check_story(document, &state, &history, number);
    }
    ended.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(client.metric("sandkeep_repairs_total").await, 0, "rows and states agree");
}

/// What is special of each sort of document.
fn check_story(document: &Value, state: &Value, history: &[Value], number: usize) {
    let has = |id: &str| document["steps"].as_array().unwrap().iter().any(|step| step["id"] == id);
    if has("again") {
        assert_eq!(of_type(history, "StepAttemptFailed", "again").len(), 2, "C007: {history:#?}");
        assert_eq!(state["units"]["again"]["output"], json!({ "attempt": 3 }), "C007");
    }
    if waits(document) {
        let received: Vec<&Value> = history.iter().filter(|event| event["type"] == "SignalReceived").collect();
        assert_eq!(received.len(), 1, "the signal was acknowledged, and sent with a key: {history:#?}");
        assert_eq!(received[0]["payload"], json!({ "n": number }));
        assert_eq!(state["units"]["wait"]["output"], json!({ "n": number }));
    }
    if has("nap") {
        let fired =
            history.iter().filter(|event| event["type"] == "TimerFired" && event.to_string().contains("nap")).count();
        assert_eq!(fired, 1, "C002: {history:#?}");
    }
    if document["name"] == "chain" {
        assert_eq!(state["units"]["e"]["output"], json!(number + 4));
    }
}

/// A step of a module, which logs `bytes` bytes in each of `lines` lines.
fn logs(bytes: usize, lines: usize) -> Value {
    json!([{
        "id": "a", "task": "hostile.log_flood", "input": { "bytes": bytes, "lines": lines },
        "retry": { "max_attempts": 1, "max_redeliveries": 2 },
    }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_takes_the_server_down_is_found_out_and_others_are_not_blamed() {
    let mut server = Server::with(&[("TEST_ABORT_ON_LOG", LAST_WORDS)]).await;
    let client = server.client();
    client.push("hostile").await;
    let (poison, innocent) = (workflow("poison", logs(LAST_WORDS.len(), 1)), workflow("innocent", logs(20, 50_000)));
    let chain = workflow(
        "chain",
        json!([
            { "id": "a", "task": "core.echo", "input": 1 }, { "id": "b", "task": "core.echo", "input": "${ steps.a.output }" },
        ]),
    );
    for document in [&poison, &innocent, &chain] {
        client.register(document).await;
    }
    let present = Present::of(&server);
    let mut starts = Vec::new();
    for number in 0..6 {
        for (name, id) in [("innocent", format!("i-{number}")), ("chain", format!("c-{number}"))] {
            let present = present.clone();
            let body = json!({ "workflow": name, "execution_id": id });
            starts.push(tokio::spawn(async move { present.post("/v1/executions", &body, None).await }));
        }
    }
    let body = json!({ "workflow": "poison", "execution_id": "poison" });
    let to_start = present.clone();
    starts.push(tokio::spawn(async move { to_start.post("/v1/executions", &body, None).await }));

    let mut deaths = 0;
    let state = until("the end of the poisoned execution", async || {
        if server.has_ended() {
            deaths += 1;
            while !server.try_restart().await {
                deaths += 1;
            }
            present.moved(&server);
        }
        let (status, state) = server.client().try_get("/v1/executions/poison").await?;
        (status == 200 && state["status"] == "FAILED").then_some(state)
    })
    .await;
    for start in join_all(starts).await {
        let (status, answer) = start.unwrap();
        assert!(matches!(status, 200 | 201), "{status} {answer}");
    }
    assert_eq!(deaths, 3, "one more than the redeliveries that are forgiven");
    assert_eq!(state["error"]["code"], "WORKER_LOST", "{state}");
    let client = server.client();
    let history = client.history("poison").await;
    assert_eq!((count(&history, "StepAttemptUncertain"), count(&history, "StepScheduled")), (3, 1), "{history:#?}");
    audit(&poison, &state, &history);
    for number in 0..6 {
        for (document, id) in [(&innocent, format!("i-{number}")), (&chain, format!("c-{number}"))] {
            let state = client.wait(&id).await;
            let history = client.history(&id).await;
            assert_eq!(state["status"], "COMPLETED", "{history:#?}");
            assert!(
                count(&history, "StepAttemptUncertain") <= 2,
                "losses gather on the one that causes them: {history:#?}"
            );
            audit(document, &state, &history);
        }
    }
}
