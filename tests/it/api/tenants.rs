//! Tenants: each sees its own, whatever the names.

use serde_json::{Value, json};

use super::echo;
use crate::support::{Client, Server, Worker, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_made_once_and_outlive_a_restart() {
    let mut server = Server::start().await;
    let client = server.client();
    let made = client.call("POST", "/v1/tenants", Some(r#"{"tenant":"acme","display_name":"Acme \u00e9"}"#)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let again = client.call("POST", "/v1/tenants", Some(r#"{"tenant":"acme","display_name":"Acme \u00e9"}"#)).await;
    assert_eq!((again.status, again.json()), (200, made.json()));
    for (body, verdict) in [
        (r#"{"tenant":"acme"}"#, (409, "TENANT_CONFLICT")),
        (r#"{"tenant":"Acme"}"#, (400, "INVALID_REQUEST")),
        (r#"{"tenant":"a","display_name":"\u0000"}"#, (400, "INVALID_REQUEST")),
        (r#"{"tenant":"a","name":"x"}"#, (400, "INVALID_REQUEST")),
        ("{}", (400, "INVALID_REQUEST")),
    ] {
        let answer = client.call("POST", "/v1/tenants", Some(body)).await;
        assert_eq!(answer.verdict(), (verdict.0, verdict.1.to_owned()), "{body}");
    }
    server.stop().await;
    server.restart().await;
    let client = server.client();
    assert_eq!(client.get("/v1/tenants/acme").await, (200, made.json()));
    assert_eq!(client.get("/v1/tenants/other").await.0, 404);
    let (_, first) = client.get("/v1/tenants?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let (_, second) = client.get(&format!("/v1/tenants?limit=1&cursor={cursor}")).await;
    let names = [&first, &second].map(|page| page["tenants"][0]["tenant"].clone());
    assert_eq!(names, ["acme", "default"]);
    assert!(second["next_cursor"].is_null());
    let acme = client.for_tenant("other").await;
    assert_eq!(acme.get("/v1/executions").await.0, 200, "a new one is there at once");
}

/// The executions in a list.
fn ids(list: &Value) -> Vec<&str> {
    list["executions"].as_array().unwrap().iter().map(|row| row["execution_id"].as_str().unwrap()).collect()
}

async fn fill(client: &Client, said: &str) {
    client.push("hello").await;
    let mut document = echo("1");
    document["result"] = json!(said);
    client.register(&document).await;
    for id in ["one", "two"] {
        client.start("echo", id, json!({})).await;
        let state = client.wait(id).await;
        assert_eq!((&state["status"], &state["output"]), (&json!("COMPLETED"), &json!(said)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_with_the_same_names_see_only_their_own() {
    let server = Server::start().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    fill(&a, "of a").await;
    fill(&b, "of b").await;
    a.start("echo", "a-only", json!({})).await;
    for (client, said, listed) in [(&a, "of a", &["a-only", "two", "one"][..]), (&b, "of b", &["two", "one"])] {
        assert_eq!(client.state("one").await["output"], said);
        assert_eq!(ids(&client.get("/v1/executions").await.1), listed);
        assert_eq!(client.get("/v1/workflows/echo").await.1["result"], said);
        for path in ["/v1/modules", "/v1/workflows"] {
            let (_, list) = client.get(path).await;
            assert_eq!(list.as_object().unwrap().values().next().unwrap().as_array().unwrap().len(), 1, "{path}");
        }
    }
    let missing = a.get("/v1/executions/none").await;
    for path in ["/v1/executions/a-only", "/v1/executions/a-only/history", "/v1/executions/a-only/result"] {
        let (status, body) = b.get(path).await;
        assert_eq!((status, &body["error"]["code"]), (404, &missing.1["error"]["code"]), "{path}");
    }
    // Of one tenant alone: the default one has nothing of theirs.
    let default = server.client();
    for path in ["/v1/executions", "/v1/modules", "/v1/workflows"] {
        let (_, list) = default.get(path).await;
        let rows = list.as_object().unwrap().values().find_map(Value::as_array);
        assert_eq!(rows, Some(&Vec::new()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_one_tenant_is_refused_by_another() {
    let server = Server::start().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    fill(&a, "a").await;
    fill(&b, "b").await;
    let (_, page) = a.get("/v1/executions?limit=1").await;
    let next = format!("/v1/executions?limit=1&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(ids(&a.get(&next).await.1), ["one"]);
    let (status, body) = b.get(&next).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("INVALID_REQUEST")), "C098 {body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_serve_their_own_tenant_alone() {
    let server = Server::start().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    let document = workflow("pay", json!([{ "id": "a", "task": "pay.charge" }]));
    for client in [&a, &b] {
        client.register(&document).await;
        client.start("pay", "e", json!({})).await;
    }
    let (of_a, of_b) =
        (Worker::register(&a, "w", &["pay.charge"]).await, Worker::register(&b, "w", &["pay.charge"]).await);
    let task = of_a.take().await;
    assert_eq!(task["tenant"], "a");
    let poll = json!({ "worker_session_id": of_a.session, "wait_ms": 0 });
    assert_eq!(b.post("/v1/workers/poll", &poll).await.0, 404, "the session of another");
    let done = json!({ "token": task["token"], "output": 1 });
    let (status, body) = b.post("/v1/tasks/complete", &done).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("TOKEN_INVALID")));
    let (_, shown) = b.get("/v1/workers").await;
    assert_eq!(shown["workers"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["workers"][0]["worker_session_id"], of_b.session);
    assert_eq!(a.post("/v1/tasks/complete", &done).await.0, 200);
    assert_eq!(a.wait("e").await["status"], "COMPLETED");
    assert_eq!(b.state("e").await["status"], "RUNNING", "nobody did it");
}
