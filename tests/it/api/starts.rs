//! Starts and signals: what a repeat means.

use serde_json::{Value, json};

use super::{keys, register_echo, register_gate};
use crate::support::{Answer, Client, Server};

async fn keyed(client: &Client, path: &str, key: &str, body: &Value) -> Answer {
    client.ask(client.http().post(client.at(path)).header("idempotency-key", key).json(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_the_same_by_its_id_and_content() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    let body = json!({ "workflow": "gate", "execution_id": "x", "input": { "n": 1 }, "labels": { "shop": "north" } });
    let (status, started) = client.post("/v1/executions", &body).await;
    assert_eq!((status, keys(&started)), (201, vec!["created", "execution_id", "status", "version", "workflow"]));
    assert_eq!(started["status"], "RUNNING");
    let (status, again) = client.post("/v1/executions", &body).await;
    assert_eq!((status, &again["created"], &again["execution_id"]), (200, &json!(false), &json!("x")));
    for (key, value) in
        [("input", json!({ "n": 2 })), ("labels", json!({})), ("version", json!("1")), ("workflow", json!("gate2"))]
    {
        let mut other = body.clone();
        other[key] = value;
        let (status, refused) = client.post("/v1/executions", &other).await;
        match key {
            "workflow" => assert_eq!(status, 404, "{refused}"),
            _ => assert_eq!((status, &refused["error"]["code"]), (409, &json!("EXECUTION_CONFLICT")), "{key}"),
        }
    }
    // It holds when it is over, too.
    assert_eq!(client.post("/v1/executions/x/signals/go", &json!(1)).await.0, 200);
    client.wait("x").await;
    let (status, again) = client.post("/v1/executions", &body).await;
    assert_eq!((status, &again["status"]), (200, &json!("COMPLETED")));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_starts_with_one_key_are_one_execution() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    let body = json!({ "workflow": "echo", "input": { "n": 1 } });
    let starts = (0..50).map(|_| {
        let (client, body) = (client.clone(), body.clone());
        tokio::spawn(async move { keyed(&client, "/v1/executions", "checkout-7", &body).await })
    });
    let mut created = 0;
    let mut ids = std::collections::HashSet::new();
    for start in futures_util::future::join_all(starts).await {
        let answer = start.unwrap();
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
        created += usize::from(answer.status == 201);
        ids.insert(answer.json()["execution_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((created, ids.len()), (1, 1));
    let (_, list) = client.get("/v1/executions").await;
    assert_eq!(list["executions"].as_array().unwrap().len(), 1);
    let other =
        keyed(&client, "/v1/executions", "checkout-7", &json!({ "workflow": "echo", "input": { "n": 2 } })).await;
    assert_eq!(other.status, 409, "{}", other.text);
    assert_eq!(keyed(&client, "/v1/executions", "checkout-8", &body).await.status, 201);
    for key in ["", &"k".repeat(256)] {
        assert_eq!(keyed(&client, "/v1/executions", key, &body).await.status, 400, "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_with_a_key_counts_once() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    client.start("gate", "x", json!({})).await;
    let path = "/v1/executions/x/signals/strict";
    let first = keyed(&client, path, "k", &json!({ "by": "kim" })).await;
    assert_eq!((first.status, keys(&first.json())), (200, vec!["accepted", "execution_id", "seq", "signal"]));
    let sends = (0..20).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { keyed(&client, path, "k", &json!({ "by": "kim" })).await })
    });
    for answer in futures_util::future::join_all(sends).await {
        assert_eq!(answer.unwrap().json(), first.json(), "the same answer again");
    }
    let other = keyed(&client, path, "k", &json!({ "by": "ann" })).await;
    assert_eq!(other.verdict(), (409, "IDEMPOTENCY_CONFLICT".to_owned()), "{}", other.text);
    assert_eq!(keyed(&client, path, "other", &json!({ "by": "kim" })).await.status, 200);
    let story = client.story("x").await;
    assert_eq!(story.iter().filter(|kind| *kind == "SignalReceived").count(), 2, "{story:?}");
    // No body means `{}`.
    let (status, bare) = client.send(client.http().post(client.at("/v1/executions/x/signals/go"))).await.unwrap();
    assert_eq!((status, &bare["accepted"]), (200, &json!(true)));
    client.wait("x").await;
    assert_eq!(client.get("/v1/executions/x/result").await, (200, json!({})));
    let late = client.call("POST", "/v1/executions/x/signals/go", None).await;
    assert_eq!(late.verdict(), (409, "EXECUTION_CLOSED".to_owned()));
    // The answer that was given under a key is given again, also after the end.
    let again = keyed(&client, path, "k", &json!({ "by": "kim" })).await;
    assert_eq!((again.status, again.json()), (200, first.json()), "{}", again.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_checked_and_its_defaults_filled_in() {
    let server = Server::start().await;
    let client = server.client();
    let mut document = super::echo("1");
    document["input"] = json!({
        "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer" }, "currency": { "type": "string", "default": "EUR" } },
    });
    client.register(&document).await;
    for input in [json!({}), json!({ "n": "x" }), json!(null), json!([])] {
        let body = json!({ "workflow": "echo", "input": input }).to_string();
        let answer = client.call("POST", "/v1/executions", Some(&body)).await;
        assert_eq!(answer.verdict(), (400, "INPUT_CONTRACT_VIOLATION".to_owned()), "{input}");
    }
    client.start("echo", "x", json!({ "n": 1 })).await;
    client.wait("x").await;
    assert_eq!(client.get("/v1/executions/x/result").await.1, json!({ "n": 1, "currency": "EUR" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_start_begins_later() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    for (id, delay) in [("far", "1h"), ("near", "300ms")] {
        let body = json!({ "workflow": "echo", "execution_id": id, "start_delay": delay });
        assert_eq!(client.post("/v1/executions", &body).await.0, 201);
    }
    assert_eq!(client.wait("near").await["status"], "COMPLETED");
    assert_eq!(client.state("far").await["status"], "RUNNING");
    assert!(!client.story("far").await.contains(&"WorkflowStarted".to_owned()));
}
