//! Tenants: each sees its own, whatever the names.

use serde_json::{Value, json};

use super::echo;
use crate::{
    hostile::{guest::Guest, named},
    support::{Client, Server, Worker, count, guest, until, workflow},
};

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
            assert_eq!(list.as_object().unwrap().values().find_map(Value::as_array).unwrap().len(), 1, "{path}");
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

/// A workflow of one step that runs `task` once.
fn once(name: &str, task: &str) -> Value {
    workflow(name, json!([{ "id": "a", "task": task, "input": "${ input }", "retry": { "max_attempts": 1 } }]))
}

async fn put(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    let request = client.http().put(client.at(path)).header("content-type", "application/json");
    client.send(request.body(body.to_string())).await.expect("the server answers")
}

/// Sets a part of a tenant's policy.
async fn grant(client: &Client, tenant: &str, body: Value) -> Value {
    let (status, value) = put(client, &format!("/v1/tenants/{tenant}/policy"), &body).await;
    assert_eq!(status, 200, "{value}");
    value
}

/// The places that an answer says are wrong.
fn places(answer: &Value) -> Vec<&str> {
    let problems = answer["error"]["details"]["problems"].as_array().unwrap_or_else(|| panic!("{answer}"));
    problems.iter().map(|problem| problem["pointer"].as_str().unwrap()).collect()
}

async fn upload(client: &Client, name: &str, bytes: Vec<u8>) -> (u16, Value) {
    let request = client.http().post(client.at(&format!("/v1/modules/{name}")));
    client.send(request.header("content-type", "application/wasm").body(bytes)).await.expect("the server answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_has_two_halves_and_outlives_a_restart() {
    let mut server = Server::with(&[("SANDBOX__MAX_CONCURRENT", "8")]).await;
    let client = server.client();
    client.for_tenant("a").await;
    let (_, fresh) = client.get("/v1/tenants/a/policy").await;
    assert_eq!((&fresh["revision"], &fresh["effective"]["egress"]), (&json!(0), &json!([])));
    assert_eq!((&fresh["effective"]["instances"], &fresh["effective"]["weight"]), (&json!(4), &json!(1)));
    let granted = json!({
        "egress": ["https://*.a.example"], "private": ["10.0.0.0/8"], "limits": { "cpu_ms": 500, "weight": 3 },
        "quotas": { "modules": 5 }, "shadow_builtins": true,
    });
    let set = grant(&client, "a", json!({ "granted": granted })).await;
    assert_eq!(set["revision"], 1);
    let own = json!({ "egress": ["https://x.a.example"], "limits": { "cpu_ms": 400, "instances": 2 } });
    let set = grant(&client, "a", json!({ "own": own })).await;
    let effective = json!({
        "egress": ["https://x.a.example:443"], "private": ["10.0.0.0/8"], "memory_bytes": 67_108_864, "cpu_ms": 400,
        "instances": 2, "weight": 3, "modules": 5, "module_bytes": 4_294_967_296_u64, "shadow_builtins": true,
    });
    assert_eq!((&set["revision"], &set["effective"]), (&json!(2), &effective));
    assert_eq!(grant(&client, "a", json!({ "own": own })).await["revision"], 2, "the same again");
    for (body, wrong) in [
        (
            json!({ "own": { "egress": ["https://b.example"], "limits": { "cpu_ms": 501 } } }),
            &["/own/egress/0", "/own/limits/cpu_ms"][..],
        ),
        (
            json!({ "granted": { "egress": ["a"], "limits": { "weight": 0 } } }),
            &["/granted/egress/0", "/granted/limits/weight"],
        ),
        (json!({ "grants": {} }), &["/grants"]),
    ] {
        let (status, answer) = put(&client, "/v1/tenants/a/policy", &body).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("INVALID_REQUEST")), "{body}");
        assert_eq!(places(&answer), wrong, "{answer}");
    }
    assert_eq!(put(&client, "/v1/tenants/none/policy", &json!({})).await.0, 404);
    server.kill();
    server.restart().await;
    assert_eq!(server.client().get("/v1/tenants/a/policy").await, (200, set));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_policy_hold_at_the_next_attempt() {
    let server = Server::with(&[("SANDBOX__CPU_MS", "60000")]).await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    grant(&server.client(), "a", json!({ "granted": { "limits": { "cpu_ms": 60, "memory_bytes": 2_097_152 } } })).await;
    a.push("hostile").await;
    b.push("hostile").await;
    for (task, code, limit) in [("spin", "CPU_LIMIT", "60ms"), ("eat", "MEMORY_LIMIT", "2097152")] {
        let state = a.run(&once(task, &format!("hostile.{task}")), task, json!({})).await;
        assert_eq!(state["error"]["code"], code, "{state}");
        assert!(state["error"]["message"].as_str().unwrap().contains(limit), "{state}");
    }
    let state = b.run(&once("eat", "hostile.eat"), "eat", json!({})).await;
    assert!(state["error"]["message"].as_str().unwrap().contains("67108864"), "its neighbour has what it had: {state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_the_settings_that_it_first_used() {
    let mut server = Server::with(&[("SANDBOX__CPU_MS", "60000")]).await;
    let client = server.client();
    let path = "/v1/modules/hostile/settings";
    assert_eq!(put(&client, path, &json!({})).await.0, 404, "there is no such module yet");
    client.push("hostile").await;
    assert_eq!(client.get(path).await.1["revision"], 0);
    let cpu = |ms: u64| json!({ "environment": { "REGION": "eu" }, "limits": { "cpu_ms": ms } });
    assert_eq!(put(&client, path, &cpu(50)).await.1["revision"], 1);
    let document = workflow(
        "two",
        json!([
            { "id": "first", "task": "hostile.output_large", "input": { "bytes": 10 }, "retry": { "max_attempts": 1 } },
            { "id": "wait", "await": "go", "after": ["first"] },
            { "id": "second", "task": "hostile.spin", "input": {}, "after": ["wait"], "retry": { "max_attempts": 1 } },
        ]),
    );
    client.register(&document).await;
    client.start("two", "pinned", json!({})).await;
    until("the first step", async || {
        (client.state("pinned").await["units"]["first"]["status"] == "SUCCEEDED").then_some(())
    })
    .await;
    assert_eq!(put(&client, path, &cpu(90)).await.1["revision"], 2);
    assert_eq!(put(&client, path, &cpu(90)).await.1["revision"], 2, "the same again");
    server.kill();
    server.restart().await;
    let client = server.client();
    assert_eq!(client.get(path).await.1["environment"], json!({ "REGION": "eu" }));
    client.start("two", "fresh", json!({})).await;
    for (id, revision, limit) in [("pinned", 1, "50ms"), ("fresh", 2, "90ms")] {
        let (status, answer) = client.post(&format!("/v1/executions/{id}/signals/go"), &json!({})).await;
        assert!(matches!(status, 200..=202), "{answer}");
        let state = client.wait(id).await;
        assert_eq!(state["error"]["code"], "CPU_LIMIT", "{state}");
        assert!(state["error"]["message"].as_str().unwrap().contains(limit), "{id}: {state}");
        let history = client.history(id).await;
        for event in history.iter().filter(|event| event["type"] == "StepScheduled" && event["module"].is_object()) {
            assert_eq!(event["module"]["settings"], revision, "{id}: {event}");
        }
    }
    let (status, answer) =
        put(&client, path, &json!({ "limits": { "cpu_ms": 60_001 }, "egress": ["https://a"], "secrets": ["a"] })).await;
    assert_eq!((status, places(&answer)), (400, vec!["/secrets"]), "what is not there yet is refused first");
    let (status, answer) =
        put(&client, path, &json!({ "limits": { "cpu_ms": 60_001 }, "egress": ["https://a"] })).await;
    assert_eq!((status, places(&answer)), (400, vec!["/egress/0", "/limits/cpu_ms"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_loops_leaves_slots_to_others() {
    let server = Server::with(&[("SANDBOX__CPU_MS", "60000"), ("SANDBOX__MAX_CONCURRENT", "4")]).await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    a.push("hostile").await;
    a.register(&once("spin", "hostile.spin")).await;
    b.register(&echo("1")).await;
    for number in 0..6 {
        a.start("spin", &format!("spin-{number}"), json!({})).await;
    }
    let free = async |wanted: u64| {
        until("the slots", async || (a.metric("sandkeep_sandbox_slots_free").await == wanted).then_some(())).await;
    };
    free(2).await;
    for number in 0..3 {
        b.start("echo", &format!("e-{number}"), json!({})).await;
        assert_eq!(b.wait(&format!("e-{number}")).await["status"], "COMPLETED", "C070");
    }
    free(2).await;
    grant(&server.client(), "a", json!({ "granted": { "limits": { "instances": 3 } } })).await;
    free(1).await;
    for number in 0..6 {
        let (status, answer) = a.post(&format!("/v1/executions/spin-{number}/cancel"), &json!({})).await;
        assert!(matches!(status, 200 | 202), "{answer}");
    }
    free(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_bounds_the_modules_of_its_tenant_alone() {
    let server = Server::start().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    grant(&server.client(), "a", json!({ "granted": { "quotas": { "modules": 1 } } })).await;
    a.push("hello").await;
    assert_eq!(upload(&a, "hello", guest("hello")).await.0, 200, "the same is no more");
    let (status, answer) = upload(&a, "orders", guest("orders")).await;
    assert_eq!((status, &answer["error"]["code"]), (429, &json!("RESOURCE_EXHAUSTED")), "{answer}");
    b.push("orders").await;
    let bytes = guest("hello").len() + 10;
    grant(&server.client(), "a", json!({ "granted": { "quotas": { "module_bytes": bytes } } })).await;
    let (status, answer) = upload(&a, "orders", guest("orders")).await;
    assert_eq!((status, &answer["error"]["code"]), (429, &json!("RESOURCE_EXHAUSTED")), "{answer}");
    let (_, list) = a.get("/v1/modules").await;
    assert_eq!(list["modules"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn built_ins_are_shadowed_only_where_the_policy_says_so() {
    let server = Server::start().await;
    let (a, b) = (server.client().for_tenant("a").await, server.client().for_tenant("b").await);
    // It answers `[]`, whatever it is asked.
    let own = named(Guest::new("(call $ok (i32.const 4096) (i32.const 2))").data(4096, "[]"), "core.echo").build();
    let (status, answer) = upload(&a, "mine", own.clone()).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("TASK_AMBIGUOUS")), "{answer}");
    grant(&server.client(), "a", json!({ "granted": { "shadow_builtins": true } })).await;
    assert_eq!(upload(&a, "mine", own).await.0, 200, "it was kept, and is live now");
    let mut document = once("say", "core.echo");
    document["result"] = json!("${ steps.a.output }");
    for (client, output) in [(&a, json!([])), (&b, json!({ "n": 1 }))] {
        let state = client.run(&document, "e", json!({ "n": 1 })).await;
        assert_eq!((&state["status"], &state["output"]), (&json!("COMPLETED"), &output), "{state}");
        assert_eq!(count(&client.history("e").await, "StepSucceeded"), 1);
    }
}
