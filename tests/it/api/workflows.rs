//! Documents: registered, listed, shown, replaced as the default, deleted.

use serde_json::{Value, json};

use super::{echo, keys, register_echo};
use crate::support::{Server, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_registered_once_and_shown_as_sent() {
    let server = Server::start().await;
    let client = server.client();
    let document = echo("1");
    let (status, new) = client.post("/v1/workflows", &document).await;
    assert_eq!((status, keys(&new)), (201, vec!["created", "definition_hash", "name", "version"]));
    assert_eq!((&new["name"], &new["version"], &new["created"]), (&json!("echo"), &json!("1"), &json!(true)));
    let (status, same) = client.post("/v1/workflows", &document).await;
    assert_eq!((status, &same["created"]), (200, &json!(false)));
    assert_eq!(same["definition_hash"], new["definition_hash"]);
    let mut other = document.clone();
    other["steps"][0]["input"] = json!(1);
    let (status, refused) = client.post("/v1/workflows", &other).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("WORKFLOW_CONFLICT")));
    for path in ["/v1/workflows/echo", "/v1/workflows/echo/1"] {
        assert_eq!(client.get(path).await, (200, document.clone()));
    }
    // Any content type is taken.
    let request = client.http().post(client.at("/v1/workflows")).header("content-type", "text/plain");
    assert_eq!(client.ask(request.body(document.to_string())).await.status, 200);
    let (_, list) = client.get("/v1/workflows").await;
    let row = &list["workflows"][0];
    assert_eq!(keys(row), ["definition_hash", "name", "steps", "tasks", "version"]);
    assert_eq!((&row["steps"], &row["tasks"]), (&json!(["a"]), &json!(["core.echo"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_problems_are_listed_at_once_with_their_places() {
    let server = Server::start().await;
    let document = json!({
        "ir_version": "sandkeep-ir/1", "name": "Bad Name", "version": "1", "stesp": [],
        "steps": [
            { "id": "a", "task": "core.echo", "input": "${ steps.none.output }" },
            { "id": "a", "task": "core.echo" },
            { "id": "b", "sleep": "soon" },
            { "id": "c", "await": "undeclared" },
            { "id": "d", "task": "core.echo", "after": ["e"] },
            { "id": "e", "task": "core.echo", "after": ["d"] },
            { "id": "f", "switch": [] },
        ],
    });
    let answer = server.client().call("POST", "/v1/workflows", Some(&document.to_string())).await;
    assert_eq!(answer.verdict(), (400, "INVALID_IR".to_owned()));
    let body = answer.json();
    let problems = body["error"]["details"]["problems"].as_array().unwrap();
    let places: Vec<_> = problems.iter().map(|problem| problem["pointer"].as_str().unwrap()).collect();
    for place in ["/name", "/stesp", "/steps/0/input", "/steps/1/id", "/steps/2/sleep", "/steps/3/await"] {
        assert!(places.contains(&place), "{place} is not in {problems:#?}");
    }
    for problem in problems {
        assert_eq!(keys(problem), ["code", "message", "pointer"], "{problem}");
    }
    assert!(body["error"]["message"].as_str().unwrap().contains(&problems.len().to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_later_versions_are_refused_clearly() {
    let server = Server::start().await;
    for step in [json!({ "id": "a", "workflow": "other" }), json!({ "id": "a", "task": "core.echo", "compensate": {} })]
    {
        let document = workflow("later", json!([step]));
        let answer = server.client().call("POST", "/v1/workflows", Some(&document.to_string())).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text.contains("not supported yet"), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_version_is_what_a_start_uses() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    let started = async |id: &str| -> Value {
        let (status, started) = client.post("/v1/executions", &json!({ "workflow": "echo", "execution_id": id })).await;
        assert_eq!(status, 201, "{started}");
        started["version"].clone()
    };
    assert_eq!(started("a").await, "1");
    client.register(&echo("2")).await;
    assert_eq!(started("b").await, "2");
    let quiet = client.post("/v1/workflows?default=false", &echo("3")).await;
    assert_eq!(quiet.0, 201);
    assert_eq!(started("c").await, "2");
    let put = async |version: &str| {
        let body = json!({ "version": version }).to_string();
        client.call("PUT", "/v1/workflows/echo/default", Some(&body)).await
    };
    let back = put("1").await;
    assert_eq!((back.status, back.json()), (200, json!({ "name": "echo", "version": "1" })));
    assert_eq!(started("d").await, "1");
    for id in ["a", "b", "c", "d"] {
        client.wait(id).await;
    }
    // The default cannot be deleted while there are others; what is not the default can.
    assert_eq!(client.call("DELETE", "/v1/workflows/echo/1", None).await.status, 409);
    assert_eq!(client.call("DELETE", "/v1/workflows/echo/2", None).await.status, 204);
    assert_eq!(client.get("/v1/workflows/echo/2").await.0, 404);
    assert_eq!(client.get("/v1/executions/b").await.0, 200, "what ran on it can still be read");
    assert_eq!(put("2").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_paged_newest_first() {
    let server = Server::start().await;
    let client = server.client();
    for version in 1..=7 {
        client.register(&echo(&version.to_string())).await;
    }
    let (mut path, mut seen) = ("/v1/workflows?limit=3".to_owned(), Vec::new());
    loop {
        let (_, page) = client.get(&path).await;
        let rows = page["workflows"].as_array().unwrap();
        assert!((1..=3).contains(&rows.len()));
        seen.extend(rows.iter().map(|row| row["version"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/workflows?limit=3&cursor={cursor}");
    }
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["1", "2", "3", "4", "5", "6", "7"], "each once: {seen:?}");
}
