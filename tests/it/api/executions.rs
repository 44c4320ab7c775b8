//! Executions: lists with their filters and pages, states, units, wait, cancel, query, result.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{echo, keys, register_echo, register_gate};
use crate::support::{Client, Server, scale, until, workflow};

/// Follows the cursors from `path` on; returns the ids of every page.
async fn pages(client: &Client, path: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let more = cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (status, page) = client.get(&format!("{path}{more}")).await;
        assert_eq!(status, 200, "{page}");
        let rows = page["executions"].as_array().unwrap().iter();
        pages.push(rows.map(|row| row["execution_id"].as_str().unwrap().to_owned()).collect());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return pages,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_every_old_row_once_while_rows_come() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    let count = scale(1_000, 200);
    let starts = (0..count).map(|at| {
        let client = client.clone();
        async move { client.start("gate", &format!("old-{at:04}"), json!({})).await }
    });
    futures_util::future::join_all(starts).await;
    let (_, first) = client.get("/v1/executions?limit=7").await;
    let mut cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let mut seen: Vec<_> = first["executions"].as_array().unwrap().clone();
    for at in 0.. {
        client.start("gate", &format!("new-{at:04}"), json!({})).await;
        let (status, page) = client.get(&format!("/v1/executions?limit=7&cursor={cursor}")).await;
        assert_eq!(status, 200, "{page}");
        seen.extend(page["executions"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = next.to_owned();
    }
    let ids: HashSet<_> = seen.iter().map(|row| row["execution_id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), seen.len()), (count, count), "C098");
    assert!(ids.iter().all(|id| id.starts_with("old-")), "C098");
    assert!(seen.is_sorted_by_key(|row| -row["created_at_ms"].as_i64().unwrap()), "newest first");
    assert_eq!(keys(&seen[0]), ["created_at_ms", "execution_id", "status", "updated_at_ms", "version", "workflow"]);
    for (limit, rows) in
        [("0", 1), ("1", 1), ("1000000000", 500.min(count)), ("99999999999999999999999", 500.min(count))]
    {
        let (status, page) = client.get(&format!("/v1/executions?limit={limit}")).await;
        let found = page["executions"].as_array().unwrap().len();
        assert!(status == 200 && found >= rows && found <= 500, "C098 {limit}: {found}");
    }
    // A cursor that was changed, is of another list, or of another server.
    let (_, workflows) = (client.register(&echo("1")).await, client.get("/v1/workflows?limit=1").await.1);
    let of_workflows = workflows["next_cursor"].as_str().unwrap();
    let changed = format!("{}{}", if cursor.starts_with('A') { "B" } else { "A" }, &cursor[1..]);
    let elsewhere = Server::start().await;
    register_gate(&elsewhere.client()).await;
    for id in ["a", "b"] {
        elsewhere.client().start("gate", id, json!({})).await;
    }
    let (_, page) = elsewhere.client().get("/v1/executions?limit=1").await;
    let foreign = page["next_cursor"].as_str().unwrap();
    for bad in [of_workflows, &changed, foreign, &cursor[..cursor.len() - 1], "", "x"] {
        let answer = client.call("GET", &format!("/v1/executions?cursor={bad}"), None).await;
        assert_eq!(answer.verdict(), (400, "INVALID_REQUEST".to_owned()), "C098 {bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    register_echo(&client).await;
    client.register(&echo("2")).await;
    for (id, request) in [
        ("g1", json!({ "workflow": "gate", "labels": { "shop": "north", "a.b": "c=d" } })),
        ("g2", json!({ "workflow": "gate", "labels": { "shop": "south" } })),
        ("e1", json!({ "workflow": "echo", "version": "1", "labels": { "shop": "north" } })),
        ("e2", json!({ "workflow": "echo" })),
    ] {
        let mut request = request;
        request["execution_id"] = id.into();
        assert_eq!(client.post("/v1/executions", &request).await.0, 201);
    }
    client.wait("e1").await;
    client.wait("e2").await;
    assert_eq!(client.post("/v1/executions/g2/cancel", &json!({})).await.0, 200);
    client.wait("g2").await;
    let first = client.state("g1").await["created_at_ms"].as_i64().unwrap();
    let all = "e1 e2 g1 g2";
    for (filter, wanted) in [
        ("", all),
        ("&status=running", "g1"),
        ("&status=Completed,cancelled", "e1 e2 g2"),
        ("&status=COMPLETED&status=RUNNING", "e1 e2 g1"),
        ("&workflow=echo", "e1 e2"),
        ("&workflow=echo&version=2", "e2"),
        ("&workflow=none", ""),
        ("&label.shop=north", "e1 g1"),
        ("&label.shop=north&label.a.b=c%3Dd", "g1"),
        ("&label.shop=north&status=running", "g1"),
        ("&label.shop=", ""),
        (&format!("&created_after={}", first - 1), all),
        ("&created_after=2100-01-01T00:00:00Z", ""),
        ("&created_before=2100-01-01T00:00:00Z", all),
        ("&created_before=1", ""),
    ] {
        for limit in [1, 3, 50] {
            let mut ids = pages(&client, &format!("/v1/executions?limit={limit}{filter}")).await.concat();
            ids.sort_unstable();
            assert_eq!(ids.join(" "), wanted, "{filter}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_has_the_fields_of_the_table() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    client.start("gate", "x", json!({ "n": 1 })).await;
    let live = client.state("x").await;
    let always = [
        "compensation_order",
        "created_at_ms",
        "definition_hash",
        "execution_id",
        "id",
        "input",
        "labels",
        "last_seq",
        "pins",
        "run",
        "status",
        "truncated",
        "units",
        "units_total",
        "updated_at_ms",
        "version",
        "waiting_for",
        "workflow",
    ];
    assert_eq!(keys(&live), always);
    assert_eq!((&live["id"], &live["run"], &live["status"]), (&json!("x"), &json!(1), &json!("RUNNING")));
    assert!(live["waiting_for"].as_str().unwrap().contains("go"), "{live}");
    let query = client.call("GET", "/v1/executions/x/queries/stage", None).await.json();
    assert_eq!((keys(&query), &query["value"]), (vec!["execution_id", "query", "value"], &json!("WAITING")));
    // A wait whose time is up answers the state, too.
    let (status, waited) = client.get("/v1/executions/x/wait?timeout_ms=0").await;
    assert_eq!((status, &waited["status"]), (200, &json!("RUNNING")));
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { client.get("/v1/executions/x/wait?timeout_ms=99999999999").await })
    };
    client.post("/v1/executions/x/signals/go", &json!("done")).await;
    let (status, ended) = waiting.await.unwrap();
    assert_eq!((status, &ended["status"], &ended["output"]), (200, &json!("COMPLETED"), &json!("done")));
    assert!(ended["finished_at_ms"].as_i64() >= ended["created_at_ms"].as_i64());
    assert!(ended.get("waiting_for").is_none() && ended.get("error").is_none(), "{ended}");
    assert_eq!(client.get("/v1/executions/x/result").await, (200, json!("done")));
    assert_eq!(client.get("/v1/executions/x/queries/stage").await.1["value"], "SUCCEEDED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_execution_says_why_and_has_no_result() {
    let server = Server::start().await;
    let client = server.client();
    let fail = json!({ "code": "NO_STOCK", "message": "none left", "details": { "sku": 7 } });
    let document = workflow("failing", json!([{ "id": "a", "task": "core.fail", "input": fail }]));
    let ended = client.run(&document, "x", json!({})).await;
    assert_eq!(ended["status"], "FAILED");
    let error = json!({ "code": "NO_STOCK", "message": "none left", "origin": "task", "details": { "sku": 7 } });
    assert_eq!((&ended["error"], &ended["units"]["a"]["error"]), (&error, &error), "{ended}");
    assert_eq!(keys(&ended["abort"]), ["at_ms", "cause", "code", "message"]);
    assert_eq!(ended["abort"]["cause"], "failure");
    assert_eq!(client.call("GET", "/v1/executions/x/result", None).await.verdict(), (409, "NOT_FINISHED".to_owned()));
    let unit = client.get("/v1/executions/x/units/a").await.1;
    for field in [
        "status",
        "attempt",
        "redelivery",
        "target",
        "module",
        "input",
        "error",
        "idempotency_key",
        "scheduled_at_ms",
        "finished_at_ms",
    ] {
        assert!(unit.get(field).is_some(), "{field}: {unit}");
    }
    assert_eq!((&unit["status"], &unit["attempt"], &unit["target"]), (&json!("FAILED"), &json!(1), &json!("module")));
}

#[tokio::test(flavor = "multi_thread")]
async fn units_past_the_first_two_hundred_and_large_payloads_have_routes_of_their_own() {
    let server = Server::start().await;
    let client = server.client();
    let large = "x".repeat(5_000);
    let steps: Vec<Value> = (0..230).map(|at| json!({ "id": format!("s{at}"), "compute": at })).collect();
    let mut document = workflow("wide", json!(steps));
    document["steps"][3]["compute"] = json!(large);
    let state = client.run(&document, "x", json!({})).await;
    assert_eq!(state["units"].as_object().unwrap().len(), 200);
    assert_eq!((&state["units_total"], &state["truncated"]), (&json!(230), &json!(true)));
    assert!(state["units"]["s3"].get("output").is_none());
    assert_eq!(client.get("/v1/executions/x/units/s3").await.1["output"], json!(large));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = client.get(&format!("/v1/executions/x/units?limit=50{cursor}")).await;
        assert_eq!(status, 200, "{page}");
        let units = page["units"].as_object().unwrap();
        assert!(units.len() <= 50);
        seen.extend(units.iter().map(|(key, unit)| (key.clone(), unit["output"].clone())));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 230);
    let outputs: std::collections::BTreeMap<_, _> = seen.into_iter().collect();
    assert_eq!((&outputs["s3"], &outputs["s229"]), (&json!(large), &json!(229)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_holds_once_and_says_so_again() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    register_echo(&client).await;
    for id in ["plain", "reason"] {
        client.start("gate", id, json!({})).await;
    }
    let (status, state) = client.send(client.http().post(client.at("/v1/executions/plain/cancel"))).await.unwrap();
    assert_eq!(status, 200, "{state}");
    assert_eq!((&state["abort"]["cause"], &state["abort"]["message"]), (&json!("cancel"), &json!("requested via API")));
    let (_, state) = client.post("/v1/executions/reason/cancel", &json!({ "reason": "customer called" })).await;
    assert_eq!(state["abort"]["message"], "customer called");
    for id in ["plain", "reason"] {
        assert_eq!(client.wait(id).await["status"], "CANCELLED");
        let seq = client.state(id).await["last_seq"].clone();
        let (status, again) = client.post(&format!("/v1/executions/{id}/cancel"), &json!({ "reason": "again" })).await;
        assert_eq!((status, &again["status"], &again["last_seq"]), (200, &json!("CANCELLED"), &seq));
    }
    client.start("echo", "done", json!({})).await;
    client.wait("done").await;
    let answer = client.call("POST", "/v1/executions/done/cancel", None).await;
    assert_eq!(answer.verdict(), (409, "EXECUTION_CLOSED".to_owned()));
    let reason = json!({ "reason": "x".repeat(2_000) }).to_string();
    client.start("gate", "long", json!({})).await;
    assert_eq!(client.call("POST", "/v1/executions/long/cancel", Some(&reason)).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_with_what_they_do_and_hold() {
    let server = Server::start().await;
    let client = server.client();
    assert_eq!(client.get("/v1/workers").await, (200, json!({ "workers": [] })));
    let steps = json!([{ "id": "a", "task": "native.work", "target": "worker" }]);
    client.register(&workflow("native", steps)).await;
    let worker = crate::support::Worker::register(&client, "till-1", &["native.work"]).await;
    client.start("native", "x", json!({})).await;
    let task = worker.take().await;
    let fields = [
        "attempt",
        "contract_version",
        "deadline_ms",
        "execution_id",
        "idempotency_key",
        "input",
        "redelivery",
        "run",
        "step_id",
        "task_name",
        "tenant",
        "timeout_ms",
        "token",
        "workflow",
        "workflow_version",
    ];
    assert_eq!(keys(&task), fields);
    let (_, list) = client.get("/v1/workers").await;
    let row = &list["workers"][0];
    assert_eq!((&row["worker_id"], &row["holds"]), (&json!("till-1"), &json!(["x/a"])), "{row}");
    assert_eq!(client.state("x").await["units"]["a"]["status"], "RUNNING");
    let leave = json!({ "worker_session_id": worker.session });
    assert_eq!(client.post("/v1/workers/unregister", &leave).await, (200, json!({ "accepted": true })));
    until("the session is gone", async || {
        (client.get("/v1/workers").await.1 == json!({ "workers": [] })).then_some(())
    })
    .await;
}
