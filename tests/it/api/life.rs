//! The life of modules: aliases, rollbacks, shares, repins, removal, and what runs meanwhile.

use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, guest, until, workflow};

/// Another module that does the same: a custom section changes the digest and nothing else.
fn version(name: &str, mark: u8) -> Vec<u8> {
    let mut bytes = guest(name);
    bytes.extend([0, 3, 1, b'v', mark]);
    bytes
}

async fn upload(client: &Client, name: &str, bytes: Vec<u8>) -> Answer {
    let request = client.http().post(client.at(&format!("/v1/modules/{name}")));
    client.ask(request.header("content-type", "application/wasm").body(bytes)).await
}

/// Uploads two versions of `hello`; the second is live.
async fn two_versions(client: &Client) -> (String, String) {
    let mut digests = Vec::new();
    for mark in [1, 2] {
        let answer = upload(client, "hello", version("hello", mark)).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        digests.push(answer.json()["digest"].as_str().unwrap().to_owned());
    }
    (digests[0].clone(), digests[1].clone())
}

async fn put(client: &Client, path: &str, body: Value) -> Answer {
    client.call("PUT", path, Some(&body.to_string())).await
}

async fn rollback(client: &Client, body: Value) -> Answer {
    client.call("POST", "/v1/modules/hello/rollback", Some(&body.to_string())).await
}

/// Greets, waits for `go`, greets again; a second greeting fails once by its contract and is tried again.
fn greetings() -> Value {
    let again = json!({ "max_attempts": 2, "initial": "50ms", "retryable": ["NAME_MISSING"] });
    workflow(
        "greetings",
        json!([
            { "id": "a", "task": "greet.hello", "input": { "name": "Ada" } },
            { "id": "gate", "await": "go", "after": ["a"] },
            { "id": "b", "task": "greet.hello", "input": { "name": "${ input.name }" }, "after": ["gate"], "retry": again },
        ]),
    )
}

/// Starts an execution and waits until it waits for `go`.
async fn at_the_gate(client: &Client, id: &str, name: &str) {
    client.start("greetings", id, json!({ "name": name })).await;
    until("the gate", async || (client.state(id).await["units"]["gate"]["status"] == "WAITING").then_some(())).await;
}

async fn go(client: &Client, id: &str) -> Value {
    let answer = client.call("POST", &format!("/v1/executions/{id}/signals/go"), None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    client.wait(id).await
}

/// The digests of every attempt, in order.
async fn digests(client: &Client, id: &str) -> Vec<String> {
    let events = client.history(id).await;
    let digest = |event: &Value| event["module"]["digest"].as_str().map(str::to_owned);
    events.iter().filter(|event| event["type"] == "StepScheduled").filter_map(digest).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_moves_and_goes_back() {
    let server = Server::start().await;
    let client = server.client();
    let (one, two) = two_versions(&client).await;
    let live = "/v1/modules/hello/aliases/live";
    let (status, alias) = client.get(live).await;
    assert_eq!((status, &alias["digest"], &alias["previous"][0]["digest"]), (200, &json!(two), &json!(one)));
    let back = rollback(&client, json!({})).await.json();
    assert_eq!((&back["digest"], back.get("previous")), (&json!(one), None));
    let nothing = rollback(&client, json!({})).await;
    assert_eq!(nothing.verdict(), (404, "MODULE_NOT_FOUND".to_owned()));
    assert!(nothing.message().contains("nothing else before"), "{}", nothing.text);
    for digest in [&two, &one, &two] {
        assert_eq!(put(&client, live, json!({ "digest": digest })).await.json()["digest"], json!(digest));
    }
    for digest in [&one, &two, &one] {
        assert_eq!(rollback(&client, json!({ "alias": "live" })).await.json()["digest"], json!(digest), "further back");
    }

    let beta = "/v1/modules/hello/aliases/beta";
    assert_eq!(client.get(beta).await.0, 404);
    assert_eq!(put(&client, beta, json!({ "digest": two })).await.status, 200);
    let listed = client.get("/v1/modules/hello/aliases").await.1;
    let names: Vec<_> = listed["aliases"].as_array().unwrap().iter().map(|alias| &alias["alias"]).collect();
    assert_eq!(names, ["beta", "live"]);
    assert_eq!(client.get(&format!("/v1/modules/hello/{two}")).await.1["aliases"], json!(["beta"]));
    assert_eq!(client.call("DELETE", live, None).await.status, 400, "`live` stays");
    assert_eq!(client.call("DELETE", beta, None).await.status, 204);
    assert_eq!(client.call("DELETE", beta, None).await.verdict(), (404, "MODULE_NOT_FOUND".to_owned()));

    let unknown = format!("sha256:{}", "0".repeat(64));
    let share = |digest: &str, percent: u32| json!({ "digest": digest, "percent": percent });
    for (body, status) in [
        (json!({ "digest": unknown }), 404),
        (json!({ "digest": "one" }), 400),
        (json!({}), 400),
        (json!({ "digest": one, "split": [share(&one, 100)] }), 400),
        (json!({ "split": [] }), 400),
        (json!({ "split": [share(&one, 50), share(&two, 49)] }), 400),
        (json!({ "split": [share(&one, 50), share(&one, 50)] }), 400),
        (json!({ "split": [share(&one, 100), share(&two, 0)] }), 400),
        (json!({ "split": [share(&one, 300)] }), 400),
        (json!({ "split": [share(&one, 50), share(&unknown, 50)] }), 404),
        (json!({ "digset": one }), 400),
    ] {
        let answer = put(&client, beta, body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
    }
    assert_eq!(put(&client, "/v1/modules/none/aliases/live", json!({ "digest": one })).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_never_leaves_a_task_ambiguous() {
    let server = Server::start().await;
    let client = server.client();
    client.push("hello").await;
    let other = upload(&client, "other", version("hello", 7)).await;
    assert_eq!(other.verdict(), (409, "TASK_AMBIGUOUS".to_owned()));
    let shadow = upload(&client, "shadow", guest("builtin")).await;
    for (name, answer) in [("other", other), ("shadow", shadow)] {
        let digest = answer.json()["error"]["details"]["digest"].clone();
        let moved = put(&client, &format!("/v1/modules/{name}/aliases/live"), json!({ "digest": digest })).await;
        assert_eq!(moved.verdict(), (409, "TASK_AMBIGUOUS".to_owned()), "{name}");
        // Another alias takes nobody's work.
        let beta = put(&client, &format!("/v1/modules/{name}/aliases/beta"), json!({ "digest": digest })).await;
        assert_eq!(beta.status, 200, "{}", beta.text);
    }
    let state = client
        .run(
            &workflow(
                "beta",
                json!([{ "id": "a", "task": "greet.hello", "module": "other@beta", "input": { "name": "Ada" } }]),
            ),
            "beta-1",
            json!({}),
        )
        .await;
    assert_eq!(state["status"], "COMPLETED", "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_with_the_digest_it_began_with() {
    let mut server = Server::start().await;
    let client = server.client();
    client.register(&greetings()).await;
    let one = upload(&client, "hello", version("hello", 1)).await.json()["digest"].as_str().unwrap().to_owned();
    // The name is missing: its second greeting fails, and is tried again.
    at_the_gate(&client, "old", "").await;
    let two = upload(&client, "hello", version("hello", 2)).await.json()["digest"].as_str().unwrap().to_owned();
    at_the_gate(&client, "new", "Grace").await;
    server.kill();
    server.restart().await;
    let client = server.client();
    at_the_gate(&client, "newer", "Mary").await;
    let path = format!("/v1/modules/hello/{one}");
    let refused = client.call("DELETE", &path, None).await;
    assert_eq!(refused.verdict(), (409, "MODULE_IN_USE".to_owned()), "C074");
    assert_eq!(refused.json()["error"]["details"]["executions"], json!(["old"]), "C074 it says which");
    let live = client.call("DELETE", &format!("/v1/modules/hello/{two}"), None).await;
    assert_eq!(live.json()["error"]["details"]["aliases"], json!(["live"]), "{}", live.text);

    let old = go(&client, "old").await;
    assert_eq!(old["error"]["code"], "NAME_MISSING", "{old}");
    assert_eq!(digests(&client, "old").await, vec![one.clone(); 3], "C074 also when it is tried again");
    for id in ["new", "newer"] {
        assert_eq!(go(&client, id).await["status"], "COMPLETED");
        assert_eq!(digests(&client, id).await, vec![two.clone(); 2], "C074 {id}");
    }
    assert_eq!(client.call("DELETE", &path, None).await.status, 204, "nothing needs it");
    assert_eq!(client.call("DELETE", &path, None).await.verdict(), (404, "MODULE_NOT_FOUND".to_owned()));
    assert_eq!(client.get(&format!("{path}/content")).await.0, 404);
    assert_eq!(rollback(&client, json!({})).await.status, 404, "there is no way back to what is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_takes_live_runs_along_where_asked() {
    let server = Server::start().await;
    let client = server.client();
    client.register(&greetings()).await;
    let (one, two) = two_versions(&client).await;
    let ids: Vec<String> = (0..5).map(|at| format!("e-{at}")).collect();
    for id in &ids {
        at_the_gate(&client, id, "Ada").await;
    }
    let back = rollback(&client, json!({ "repin": true })).await.json();
    assert_eq!((&back["digest"], &back["repinned"]), (&json!(one), &json!(5)), "{back}");
    // Nothing needs the second version any more, though five live runs used it.
    let path = format!("/v1/executions/{}/repin", ids[4]);
    let body = json!({ "module": "hello", "digest": two }).to_string();
    let state = client.call("POST", &path, Some(&body)).await.json();
    assert_eq!(state["pins"]["hello@live"], json!(two), "{state}");
    let refused = client.call("DELETE", &format!("/v1/modules/hello/{two}"), None).await;
    assert_eq!(refused.json()["error"]["details"]["executions"], json!([ids[4]]), "{}", refused.text);
    for id in &ids {
        let expected = if *id == ids[4] { &two } else { &one };
        assert_eq!(go(&client, id).await["status"], "COMPLETED");
        assert_eq!(digests(&client, id).await, [two.clone(), expected.clone()], "{id}");
        assert!(client.story(id).await.contains(&"Repinned".to_owned()));
    }
    for (id, body, status) in [
        ("e-0", json!({ "module": "hello", "digest": two }), 409),
        ("none", json!({ "module": "hello", "digest": two }), 404),
        ("e-0", json!({ "module": "hello" }), 400),
        ("e-0", json!({ "module": "hello", "digest": two, "alias": "live" }), 400),
    ] {
        let answer = client.call("POST", &format!("/v1/executions/{id}/repin"), Some(&body.to_string())).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_divide_executions_for_good() {
    let server = Server::start().await;
    let client = server.client();
    client.register(&greetings()).await;
    let (one, two) = two_versions(&client).await;
    let split = json!({ "split": [{ "digest": one, "percent": 50 }, { "digest": two, "percent": 50 }] });
    let alias = put(&client, "/v1/modules/hello/aliases/live", split.clone()).await.json();
    assert_eq!((&alias["split"], alias.get("digest")), (&split["split"], None));
    let mut used = std::collections::BTreeSet::new();
    for at in 0..12 {
        let id = format!("e-{at}");
        at_the_gate(&client, &id, "Ada").await;
        if at == 6 {
            assert_eq!(put(&client, "/v1/modules/hello/aliases/live", json!({ "digest": two })).await.status, 200);
            assert_eq!(rollback(&client, json!({})).await.json()["split"], split["split"]);
        }
        assert_eq!(go(&client, &id).await["status"], "COMPLETED");
        let digests = digests(&client, &id).await;
        assert_eq!(digests[0], digests[1], "{id}");
        used.insert(digests[0].clone());
    }
    assert_eq!(used, [one.clone(), two].into());
    let refused = client.call("DELETE", &format!("/v1/modules/hello/{one}"), None).await;
    assert_eq!(refused.verdict(), (409, "MODULE_IN_USE".to_owned()), "a share needs it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_that_breaks_a_workflow_is_told() {
    let server = Server::start().await;
    let client = server.client();
    client.register(&greetings()).await;
    let hello = upload(&client, "shop", guest("hello")).await.json();
    assert!(hello.get("warnings").is_none(), "{hello}");
    let orders = upload(&client, "shop", guest("orders")).await;
    assert_eq!(orders.status, 201, "{}", orders.text);
    let orders = orders.json();
    let told = |answer: &Value| {
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        let told = warnings.iter().map(|told| format!("{} {} {}", told["workflow"], told["step"], told["task"]));
        told.collect::<Vec<_>>()
    };
    let both = [r#""greetings" "a" "greet.hello""#, r#""greetings" "b" "greet.hello""#];
    assert_eq!(told(&orders), both, "{orders}");
    let live = "/v1/modules/shop/aliases/live";
    assert_eq!(told(&put(&client, live, json!({ "digest": hello["digest"] })).await.json()), [""; 0]);
    assert_eq!(told(&put(&client, live, json!({ "digest": orders["digest"] })).await.json()), both);

    let from = hello["digest"].as_str().unwrap();
    let (status, diff) = client.get(&format!("/v1/modules/shop/diff?from={from}&to=live")).await;
    assert_eq!(status, 200, "{diff}");
    assert_eq!(diff["tasks_removed"], json!(["greet.hello@1.0.0", "greet.everybody@1.0.0"]));
    assert_eq!(diff["to"], orders["digest"]);
    assert_eq!(diff["from_size_bytes"], hello["size_bytes"]);
    for (query, status) in [("from=live", 400), ("from=live&to=none", 400), ("from=live&to=live&at=1", 400)] {
        assert_eq!(client.get(&format!("/v1/modules/shop/diff?{query}")).await.0, status, "{query}");
    }
}
