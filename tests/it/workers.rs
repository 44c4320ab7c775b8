//! Native workers: deliveries, their ends of every kind, and who may take what.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::support::{Client, Server, Worker, audit, count, of_type, signal, until, workflow};

/// A task step for native workers; `more` is merged into it.
fn step(id: &str, more: Value) -> Value {
    let mut step = json!({ "id": id, "task": "native.work" });
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    step
}

/// Registers a document of these steps under the execution's id, and starts it.
async fn begin(client: &Client, id: &str, steps: Value) -> Value {
    let document = workflow(id, steps);
    client.register(&document).await;
    client.start(id, id, json!({})).await;
    document
}

async fn worker(client: &Client, id: &str) -> Worker {
    Worker::register(client, id, &["native.work"]).await
}

/// Registers a worker that says more of itself.
async fn worker_with(client: &Client, id: &str, version: &str, more: Value) -> Worker {
    let contracts = json!([{ "task_name": "native.work", "version": version }]);
    let mut request = json!({ "worker_id": id, "runtime": "test", "contracts": contracts });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Worker::with(client, request).await
}

fn token(task: &Value) -> &str {
    task["token"].as_str().unwrap()
}

fn accepted() -> Value {
    json!({ "accepted": true, "stale": false })
}

fn stale() -> Value {
    json!({ "accepted": false, "stale": true })
}

/// Waits until a delivery is noted in its row; its worker lives meanwhile.
async fn noted(server: &Server, worker: &Worker, task: &Value) {
    until("the note of a delivery", async || {
        worker.heartbeat(&[token(task)]).await;
        let select = "SELECT count(*) FROM ready WHERE note_delivery IS NOT NULL";
        let count: i64 = server.sql().query_row(select, [], |row| row.get(0)).unwrap();
        (count > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_held_is_redelivered_and_only_one_result_counts() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "dies", json!([step("a", json!({ "input": 7 })), { "id": "b", "await": "go", "after": ["a"] }]))
        .await;
    let dead = worker(&client, "w-dead").await;
    let first = dead.take().await;
    assert_eq!((&first["attempt"], &first["redelivery"], &first["input"]), (&json!(1), &json!(false), &json!(7)));

    let second = worker(&client, "w-2").await.take().await;
    let third = worker(&client, "w-3").await;
    for field in ["attempt", "idempotency_key", "execution_id", "run", "step_id", "input"] {
        assert_eq!(first[field], second[field], "{field}");
    }
    assert_eq!(second["redelivery"], true, "{second}");
    assert_ne!(first["token"], second["token"]);

    assert_eq!(third.complete(&second, json!("done")).await, accepted());
    assert_eq!(third.complete(&second, json!("done")).await, accepted(), "C053: the same delivery again");
    assert_eq!(third.fail(&second, "BUSY", true).await, stale(), "its other outcome");
    for _ in 0..2 {
        assert_eq!(third.complete(&first, json!("late")).await, stale());
    }
    let history = client.history("dies").await;
    assert_eq!(of_type(&history, "StepSucceeded", "a").len(), 1, "{history:#?}");
    assert_eq!(of_type(&history, "StepAttemptUncertain", "a").len(), 1, "{history:#?}");
    assert_eq!(of_type(&history, "StaleResultIgnored", "a").len(), 2, "once for each delivery: {history:#?}");
    assert_eq!(client.state("dies").await["units"]["a"]["output"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_counts_from_whichever_delivery_is_first() {
    let server = Server::start().await;
    let client = server.client();
    for (id, late) in [("late", true), ("first", false)] {
        let document = begin(&client, id, json!([step("a", json!({}))])).await;
        let slow = worker(&client, "w-slow").await;
        let of_slow = slow.take().await;
        let other = worker(&client, "w-other").await;
        let of_other = other.take().await;
        if late {
            assert_eq!(other.complete(&of_other, json!("other")).await, accepted(), "C044");
        }
        // It wakes, and says what it works on.
        assert_eq!(slow.heartbeat(&[token(&of_slow)]).await["cancel"], json!([of_slow["token"]]), "it is told to stop");
        assert_eq!(slow.complete(&of_slow, json!("slow")).await, if late { stale() } else { accepted() });
        if !late {
            let cancel = other.heartbeat(&[token(&of_other)]).await["cancel"].clone();
            assert_eq!(cancel, json!([of_other["token"]]), "what was decided is not wanted any more");
            assert_eq!(other.complete(&of_other, json!("other")).await, stale(), "C044");
        }
        let state = client.wait(id).await;
        let history = client.history(id).await;
        assert_eq!(state["units"]["a"]["output"], if late { "other" } else { "slow" });
        assert_eq!((count(&history, "StepAttemptUncertain"), count(&history, "StepSucceeded")), (1, 1), "{history:#?}");
        audit(&document, &state, &history);
        slow.unregister().await;
        other.unregister().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_kills_its_worker_each_time_is_given_up() {
    let server = Server::with(&[("WORKER__HEARTBEAT_INTERVAL_MS", "100"), ("WORKER__SESSION_TIMEOUT_MS", "300")]).await;
    let client = server.client();
    let retry = json!({ "retry": { "max_attempts": 3, "max_redeliveries": 2, "initial": "10ms" } });
    let document = begin(&client, "poison", json!([step("a", retry)])).await;
    let mut deliveries: Vec<(u64, bool)> = Vec::new();
    let state = until("the end of the execution", async || {
        // Restarts itself, takes the task, and is gone.
        if let Some(task) = worker(&client, "w-restarts").await.poll(100).await {
            deliveries.push((task["attempt"].as_u64().unwrap(), task["redelivery"].as_bool().unwrap()));
        }
        let state = client.state("poison").await;
        (state["status"] != "RUNNING").then_some(state)
    })
    .await;
    let expected: Vec<(u64, bool)> =
        (1..=3).flat_map(|attempt| [(attempt, false), (attempt, true), (attempt, true)]).collect();
    assert_eq!(deliveries, expected, "C048");
    assert_eq!((&state["status"], &state["error"]["code"]), (&json!("FAILED"), &json!("WORKER_LOST")), "C048: {state}");
    let history = client.history("poison").await;
    assert_eq!((count(&history, "StepAttemptUncertain"), count(&history, "StepAttemptFailed")), (9, 3), "{history:#?}");
    audit(&document, &state, &history);
}

/// Sends a poll by hand and never reads the answer.
async fn poll_by_hand(server: &Server, session: &str) -> TcpStream {
    let body = json!({ "worker_session_id": session, "wait_ms": 60_000 }).to_string();
    let mut stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /v1/workers/poll HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let client = server.client();
    until("the poll stands in line", async || {
        let (_, workers) = client.get("/v1/workers").await;
        let of = workers["workers"].as_array().unwrap().iter().find(|worker| worker["worker_session_id"] == session)?;
        (of["waiting_polls"] == 1).then_some(())
    })
    .await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_for_a_poller_that_has_gone_reaches_another() {
    let server = Server::with(&[("WORKER__SESSION_TIMEOUT_MS", "60000")]).await;
    let client = server.client();
    client.register(&workflow("work", json!([step("a", json!({}))]))).await;
    // Reset, closed, and silent for ever.
    for (id, how) in [("reset", 0), ("closed", 1), ("silent", 2)] {
        let gone = worker(&client, "w-gone").await;
        let stream = poll_by_hand(&server, &gone.session).await;
        let kept = match how {
            0 => {
                stream.set_zero_linger().unwrap();
                drop(stream);
                None
            }
            1 => {
                drop(stream);
                None
            }
            _ => Some(stream),
        };
        client.start("work", id, json!({})).await;
        let other = worker(&client, "w-other").await;
        let task = other.take().await;
        assert_eq!((&task["execution_id"], &task["attempt"]), (&json!(id), &json!(1)), "C036 {task}");
        other.complete(&task, json!(1)).await;
        assert_eq!(client.wait(id).await["status"], "COMPLETED");
        let lost = count(&client.history(id).await, "StepAttemptUncertain");
        assert!(lost <= usize::from(how > 0), "C036: only what a socket took can be lost: {id}");
        drop(kept);
        other.unregister().await;
        gone.unregister().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_never_holds_more_than_it_has_room_for() {
    let server = Server::start().await;
    let client = server.client();
    let steps: Vec<Value> = (0..6).map(|number| step(&format!("s{number}"), json!({}))).collect();
    begin(&client, "many", json!(steps)).await;
    let two = worker_with(&client, "w-two", "1.0", json!({ "capacity": 2 })).await;
    let first = two.take().await;
    let (a, b, c) = tokio::join!(two.take_many(10, 300), two.take_many(10, 300), two.take_many(10, 300));
    let rest: Vec<Value> = [a, b, c].concat();
    assert_eq!(rest.len(), 1, "one is taken already: {rest:#?}");
    two.complete(&first, json!(1)).await;
    let again = two.take_many(10, 1_000).await;
    assert_eq!(again.len(), 1, "a result makes room: {again:#?}");
    let any = worker(&client, "w-any").await;
    assert_eq!(any.take_many(2, 1_000).await.len(), 2, "`max_tasks` bounds a poll");
    assert_eq!(any.take_many(9, 1_000).await.len(), 1, "what is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_goes_only_to_a_worker_that_fits() {
    let server = Server::start().await;
    let client = server.client();
    let mut versioned = workflow("versioned", json!([step("a", json!({}))]));
    versioned["contracts"] = json!({ "native.work": { "version": "1.2" } });
    let rows: [(Value, &str, Value, bool); 11] = [
        (versioned.clone(), "1.1", json!({}), false),
        (versioned.clone(), "2.0", json!({}), false),
        (versioned.clone(), "0.9", json!({}), false),
        (versioned.clone(), "1.2", json!({}), true),
        (versioned, "1.4.0", json!({}), true),
        (workflow("queued", json!([step("a", json!({ "queue": "slow" }))])), "1.0", json!({}), false),
        (
            workflow("queued", json!([step("a", json!({ "queue": "slow" }))])),
            "1.0",
            json!({ "queues": ["slow", "x"] }),
            true,
        ),
        (workflow("plain", json!([step("a", json!({}))])), "1.0", json!({ "queues": ["slow"] }), false),
        (workflow("pinned", json!([step("a", json!({ "node": "gpu" }))])), "1.0", json!({}), false),
        (workflow("pinned", json!([step("a", json!({ "node": "gpu" }))])), "1.0", json!({ "node": "cpu" }), false),
        (workflow("pinned", json!([step("a", json!({ "node": "gpu" }))])), "1.0", json!({ "node": "gpu" }), true),
    ];
    for (number, (document, version, more, fits)) in rows.into_iter().enumerate() {
        let id = format!("e-{number}");
        client.register(&document).await;
        client.start(document["name"].as_str().unwrap(), &id, json!({})).await;
        let worker = worker_with(&client, "w", version, more.clone()).await;
        if fits {
            let task = worker.take().await;
            assert_eq!(task["execution_id"], id, "{version} {more}");
            worker.complete(&task, json!(1)).await;
        } else {
            assert_eq!(worker.poll(100).await, None, "{version} {more} for {document}");
        }
        worker.unregister().await;
        let (status, _) = client.post(&format!("/v1/executions/{id}/cancel"), &json!({})).await;
        assert_eq!(status, if fits { 409 } else { 200 });
        client.wait(&id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_priority_is_served_first() {
    let server = Server::start().await;
    let client = server.client();
    let steps: Vec<Value> =
        [3, 9, 0, 6].map(|priority| step(&format!("p{priority}"), json!({ "priority": priority }))).into();
    // Once from the rows that waited for a worker, once from memory.
    for id in ["rows", "memory"] {
        let early = match id {
            "memory" => Some(worker_with(&client, "w-busy", "1.0", json!({ "capacity": 1 })).await),
            _ => None,
        };
        begin(&client, id, json!(steps)).await;
        let worker = worker(&client, "w").await;
        let mut order = Vec::new();
        for _ in 0..4 {
            let task = worker.take().await;
            order.push(task["step_id"].as_str().unwrap().to_owned());
            worker.complete(&task, json!(1)).await;
        }
        assert_eq!(order, ["p9", "p6", "p3", "p0"], "{id}");
        drop(early);
        worker.unregister().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_too_long_times_out() {
    let server = Server::start().await;
    let client = server.client();
    let once = |timeouts: Value| json!([step("a", json!({ "timeouts": timeouts, "retry": { "max_attempts": 1 } }))]);

    begin(&client, "attempt", once(json!({ "attempt": "300ms" }))).await;
    let busy = worker(&client, "w").await;
    let task = busy.take().await;
    let state = until("the time-out", async || {
        busy.heartbeat(&[token(&task)]).await;
        let state = client.state("attempt").await;
        (state["status"] == "FAILED").then_some(state)
    })
    .await;
    assert_eq!((&state["error"]["code"], &state["error"]["origin"]), (&json!("TIMEOUT"), &json!("engine")), "{state}");
    assert_eq!(busy.heartbeat(&[token(&task)]).await["cancel"], json!([task["token"]]));
    assert_eq!(busy.complete(&task, json!(1)).await, stale());

    // The session lives, and is silent about the task alone.
    begin(&client, "heartbeat", once(json!({ "heartbeat": "500ms" }))).await;
    let task = busy.take().await;
    busy.heartbeat(&[token(&task)]).await;
    let state = until("the end of the execution", async || {
        busy.heartbeat(&[]).await;
        let state = client.state("heartbeat").await;
        (state["status"] == "FAILED").then_some(state)
    })
    .await;
    assert_eq!(state["error"]["code"], "HEARTBEAT_TIMEOUT", "{state}");

    // The whole session is silent: a loss, which costs no attempt.
    begin(&client, "silence", once(json!({ "heartbeat": "500ms" }))).await;
    let task = busy.take().await;
    busy.heartbeat(&[token(&task)]).await;
    let other = worker(&client, "w-other").await;
    let again = other.take().await;
    assert_eq!((&again["attempt"], &again["redelivery"]), (&json!(1), &json!(true)), "{again}");
    other.complete(&again, json!(1)).await;
    assert_eq!(client.wait("silence").await["status"], "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_nobody_takes_in_time_times_out() {
    let server = Server::start().await;
    let client = server.client();
    let retry = json!({ "max_attempts": 1 });
    begin(&client, "queue", json!([step("a", json!({ "timeouts": { "queue": "200ms" }, "retry": retry }))])).await;
    assert_eq!(client.wait("queue").await["error"]["code"], "QUEUE_TIMEOUT");
    begin(&client, "total", json!([step("a", json!({ "timeouts": { "total": "200ms" } }))])).await;
    assert_eq!(client.wait("total").await["error"]["code"], "TOTAL_TIMEOUT");
    let worker = worker(&client, "w").await;
    assert_eq!(worker.poll(100).await, None, "what timed out is not handed out");

    // What was taken cannot time out in the queue.
    begin(&client, "taken", json!([step("a", json!({ "timeouts": { "queue": "1500ms" }, "retry": retry }))])).await;
    let task = worker.take().await;
    let taken_at = client.state("taken").await["units"]["a"]["dispatched_at_ms"].as_i64().unwrap();
    until("the time in the queue is over", async || {
        worker.heartbeat(&[token(&task)]).await;
        let state = client.state("taken").await;
        assert_eq!(state["status"], "RUNNING", "{state}");
        (now_ms() > taken_at + 1_800).then_some(())
    })
    .await;
    assert_eq!(worker.complete(&task, json!(1)).await, accepted());
    assert_eq!(client.wait("taken").await["status"], "COMPLETED");

    // What is given back has its whole time again.
    begin(&client, "back", json!([step("a", json!({ "timeouts": { "queue": "1500ms" }, "retry": retry }))])).await;
    let task = worker.take().await;
    let taken_at = now_ms();
    until("the time in the queue is over", async || {
        worker.heartbeat(&[token(&task)]).await;
        (now_ms() > taken_at + 1_800).then_some(())
    })
    .await;
    worker.unregister().await;
    assert_eq!(client.wait("back").await["error"]["code"], "QUEUE_TIMEOUT");
    let waited = client.state("back").await["finished_at_ms"].as_i64().unwrap() - taken_at;
    assert!(waited >= 1_800 + 1_500, "{waited} ms");
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_when_to_try_again() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "later", json!([step("a", json!({ "retry": { "initial": "1h", "max_attempts": 2 } }))])).await;
    let worker = worker(&client, "w").await;
    let task = worker.take().await;
    let body = json!({ "token": task["token"], "error_code": "BUSY", "retry_after_ms": 50, "details": { "a": [1] } });
    assert_eq!(client.post("/v1/tasks/fail", &body).await, (200, accepted()));
    let again = worker.take().await;
    assert_eq!((&again["attempt"], &again["redelivery"]), (&json!(2), &json!(false)), "{again}");
    assert_eq!(again["idempotency_key"], task["idempotency_key"]);
    assert_eq!(worker.fail(&task, "BUSY", true).await, accepted(), "the same again, after the retry began");
    assert_eq!(worker.fail(&again, "GONE", false).await, accepted());
    let state = client.wait("later").await;
    assert_eq!(
        (&state["status"], &state["error"]["code"], &state["error"]["origin"]),
        (&json!("FAILED"), &json!("GONE"), &json!("task"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_worker_with_its_heartbeat() {
    let server = Server::with(&[("ENGINE__CANCEL_GRACE_MS", "60000")]).await;
    let client = server.client();
    begin(&client, "cancelled", json!([step("a", json!({})), step("b", json!({ "after": ["a"] }))])).await;
    let worker = worker(&client, "w").await;
    let task = worker.take().await;
    assert_eq!(worker.heartbeat(&[token(&task)]).await["cancel"], json!([]));
    let (status, answer) = client.post("/v1/executions/cancelled/cancel", &json!({ "reason": "enough" })).await;
    assert_eq!(status, 200, "{answer}");
    until("the cancel", async || {
        (worker.heartbeat(&[token(&task)]).await["cancel"] == json!([task["token"]])).then_some(())
    })
    .await;
    assert_eq!(client.state("cancelled").await["status"], "COMPENSATING", "the worker has its time");
    assert_eq!(worker.fail(&task, "STOPPED", true).await, accepted());
    let state = client.wait("cancelled").await;
    assert_eq!(
        (&state["status"], &state["units"]["a"]["status"]),
        (&json!("CANCELLED"), &json!("CANCELLED")),
        "{state}"
    );
    assert_eq!(worker.poll(100).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_held_when_it_left_is_ready_at_once() {
    let server = Server::with(&[("WORKER__SESSION_TIMEOUT_MS", "60000")]).await;
    let client = server.client();
    begin(&client, "left", json!([step("a", json!({}))])).await;
    let leaving = worker(&client, "w-leaving").await;
    let other = worker(&client, "w-other").await;
    let first = leaving.take().await;
    leaving.unregister().await;
    let again = other.take().await;
    assert_eq!((&again["attempt"], &again["redelivery"]), (&json!(1), &json!(true)), "{again}");
    assert_ne!(first["token"], again["token"]);
    other.complete(&again, json!(1)).await;
    client.wait("left").await;
    assert_eq!(count(&client.history("left").await, "StepAttemptUncertain"), 0, "given back, not lost");
    assert_eq!(client.metric("sandkeep_returned_deliveries_total").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_comes_back_after_a_restart_keeps_its_task() {
    let mut server = Server::start().await;
    begin(&server.client(), "kept", json!([step("a", json!({}))])).await;
    let living = worker(&server.client(), "w-living").await;
    let task = living.take().await;
    noted(&server, &living, &task).await;
    // Once killed, once stopped, with the same delivery out.
    for clean in [false, true] {
        if clean {
            server.stop().await;
        } else {
            server.kill();
        }
        server.restart().await;
        let client = server.client();
        let living = worker(&client, "w-living").await;
        let other = worker(&client, "w-other").await;
        let began = now_ms();
        until("more than a session time-out", async || {
            let answer = living.heartbeat(&[token(&task)]).await;
            assert_eq!(answer["cancel"], json!([]), "it may go on");
            assert_eq!(other.poll(50).await, None, "nobody else has it");
            (now_ms() > began + 2_000).then_some(())
        })
        .await;
        let unit = client.state("kept").await["units"]["a"].clone();
        assert_eq!(
            (&unit["status"], &unit["worker_id"], &unit["attempt"]),
            (&json!("RUNNING"), &json!("w-living"), &json!(1))
        );
        if clean {
            assert_eq!(living.complete(&task, json!("kept")).await, accepted());
        }
    }
    let client = server.client();
    assert_eq!(client.wait("kept").await["output"], Value::Null);
    assert_eq!(count(&client.history("kept").await, "StepAttemptUncertain"), 0);

    // One that stays away loses it.
    begin(&client, "lost", json!([step("a", json!({}))])).await;
    let dead = worker(&client, "w-dead").await;
    let task = dead.take().await;
    noted(&server, &dead, &task).await;
    server.kill();
    server.restart().await;
    let other = worker(&server.client(), "w-other").await;
    let again = other.take().await;
    assert_eq!((&again["attempt"], &again["redelivery"]), (&json!(1), &json!(true)), "{again}");
    other.complete(&again, json!(1)).await;
    server.client().wait("lost").await;
    assert_eq!(count(&server.client().history("lost").await, "StepAttemptUncertain"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_just_before_the_end_of_the_server_is_not_forgotten() {
    let mut server = Server::start().await;
    begin(&server.client(), "last", json!([step("a", json!({}))])).await;
    let task = worker(&server.client(), "w").await.take().await;
    assert_eq!(server.stop().await, Some(0));
    server.restart().await;
    let client = server.client();
    let living = worker(&client, "w").await;
    assert_eq!(living.heartbeat(&[token(&task)]).await["cancel"], json!([]), "its note was written before the end");
    assert_eq!(living.complete(&task, json!(1)).await, accepted());
    assert_eq!(client.wait("last").await["status"], "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_or_session_that_is_not_ours_is_refused() {
    let mut server = Server::start().await;
    let client = server.client();
    begin(&client, "tokens", json!([step("a", json!({}))])).await;
    let worker = worker(&client, "w").await;
    let task = worker.take().await;
    let good = token(&task);
    let mut forged = good.to_owned().into_bytes();
    forged[20] = if forged[20] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for (bad, status, code) in [
        ("", 400, "INVALID_REQUEST"),
        (&good[..good.len() - 2], 403, "TOKEN_INVALID"),
        (&good[..10], 403, "TOKEN_INVALID"),
        (&forged, 403, "TOKEN_INVALID"),
        ("not a token", 403, "TOKEN_INVALID"),
    ] {
        for (path, body) in [
            ("/v1/tasks/complete", json!({ "token": bad, "output": 1 })),
            ("/v1/tasks/fail", json!({ "token": bad, "error_code": "X" })),
            ("/v1/workers/heartbeat", json!({ "worker_session_id": worker.session, "active": [{ "token": bad }] })),
        ] {
            let (found, answer) = client.post(path, &body).await;
            assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{path} {bad}: {answer}");
        }
    }
    let (status, answer) = client.post("/v1/tasks/fail", &json!({ "token": good, "error_code": "" })).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("INVALID_REQUEST")), "{answer}");
    for path in ["/v1/workers/poll", "/v1/workers/heartbeat", "/v1/workers/unregister"] {
        for (session, status, code) in [("", 400, "INVALID_REQUEST"), ("nobody", 404, "SESSION_NOT_FOUND")] {
            let (found, answer) = client.post(path, &json!({ "worker_session_id": session })).await;
            assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{path} `{session}`: {answer}");
        }
    }
    // A token outlives its session and its server.
    worker.unregister().await;
    server.kill();
    server.restart().await;
    assert_eq!(
        server.client().post("/v1/tasks/complete", &json!({ "token": good, "output": 1 })).await,
        (200, accepted())
    );
    assert_eq!(server.client().wait("tokens").await["status"], "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_and_outlives_its_worker() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "progress", json!([step("a", json!({}))])).await;
    let first = worker(&client, "w-1").await;
    let task = first.take().await;
    assert_eq!(task.get("last_progress").filter(|progress| !progress.is_null()), None, "{task}");
    first.progress(&task, json!({ "done": 3 })).await;
    let unit = client.state("progress").await["units"]["a"].clone();
    assert_eq!((&unit["status"], &unit["progress"]), (&json!("RUNNING"), &json!({ "done": 3 })), "{unit}");
    let second = worker(&client, "w-2").await;
    let again = second.take().await;
    assert_eq!((&again["last_progress"], &again["redelivery"]), (&json!({ "done": 3 }), &json!(true)), "{again}");
    second.progress(&again, json!({ "done": 5 })).await;
    second.fail(&again, "BUSY", true).await;
    let third = second.take().await;
    assert_eq!((&third["last_progress"], &third["attempt"]), (&json!({ "done": 5 }), &json!(2)), "{third}");
    second.complete(&third, json!(1)).await;
    client.wait("progress").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_are_checked_before_and_after_a_worker() {
    let server = Server::start().await;
    let client = server.client();
    let mut document = workflow("contracts", json!([step("a", json!({ "input": "${ input.value }" }))]));
    document["contracts"] = json!({ "native.work": {
        "version": "1.0", "input": { "type": "string" }, "output": { "type": "object", "required": ["n"] },
    } });
    client.register(&document).await;
    let worker = worker(&client, "w").await;
    // Both stand in the queue before the poll looks: the bad one must not keep the good one.
    client.start("contracts", "bad", json!({ "value": 7 })).await;
    client.start("contracts", "good", json!({ "value": "seven" })).await;
    let task = worker.poll(60_000).await.expect("one can be handed out");
    assert_eq!((&task["execution_id"], &task["input"]), (&json!("good"), &json!("seven")));
    let bad = client.wait("bad").await;
    assert_eq!(bad["error"]["code"], "INPUT_CONTRACT_VIOLATION", "{bad}");
    for _ in 0..2 {
        assert_eq!(worker.complete(&task, json!({ "m": 1 })).await, accepted(), "the report itself is taken");
    }
    let good = client.wait("good").await;
    assert_eq!(
        (&good["status"], &good["error"]["code"]),
        (&json!("FAILED"), &json!("OUTPUT_CONTRACT_VIOLATION")),
        "{good}"
    );
    audit(&document, &good, &client.history("good").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_in_worker_messages_are_ignored() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "newer", json!([step("a", json!({ "retry": { "initial": "10ms" } }))])).await;
    let worker = worker_with(&client, "w", "1.0", json!({ "newer": { "a": 1 }, "sdk": "test/9" })).await;
    let session = &worker.session;
    let (status, answer) =
        client.post("/v1/workers/heartbeat", &json!({ "worker_session_id": session, "load": 0.5 })).await;
    assert_eq!((status, &answer["accepted"], &answer["drain"]), (200, &json!(true), &json!(false)), "{answer}");
    for (path, more) in
        [("/v1/tasks/fail", json!({ "error_code": "BUSY" })), ("/v1/tasks/complete", json!({ "output": 1 }))]
    {
        let poll = json!({ "worker_session_id": session, "wait_ms": 60_000, "newer": [] });
        let (status, task) = client.post("/v1/workers/poll", &poll).await;
        assert_eq!(status, 200, "{task}");
        let mut body = json!({ "token": task["token"], "newer": null });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(client.post(path, &body).await, (200, accepted()));
    }
    assert_eq!(client.wait("newer").await["status"], "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_whose_answer_was_lost_is_repeated_without_harm() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "twice", json!([step("a", json!({}))])).await;
    let worker = worker(&client, "w").await;
    let task = worker.take().await;
    let body = json!({ "token": task["token"], "output": 1 }).to_string();
    let mut stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /v1/tasks/complete HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    drop(stream);
    assert_eq!(worker.complete(&task, json!(1)).await, accepted(), "C053");
    client.wait("twice").await;
    assert_eq!(worker.complete(&task, json!(1)).await, accepted(), "C053: also after the end");
    assert_eq!(count(&client.history("twice").await, "StepSucceeded"), 1, "C053");
}

/// A process that is stopped and goes on: nothing runs in it meanwhile, the server's clock does.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_suspended_goes_on() {
    let server = Server::start().await;
    let client = server.client();
    begin(&client, "suspended", json!([step("a", json!({})), { "id": "nap", "sleep": "200ms" }])).await;
    let task = worker(&client, "w").await.take().await;
    signal(server.pid(), "STOP");
    // Longer than the session may be silent.
    tokio::time::sleep(Duration::from_millis(1_800)).await;
    signal(server.pid(), "CONT");
    assert_eq!(
        client.post("/v1/tasks/complete", &json!({ "token": task["token"], "output": 1 })).await,
        (200, accepted())
    );
    assert_eq!(client.wait("suspended").await["status"], "COMPLETED");
}
