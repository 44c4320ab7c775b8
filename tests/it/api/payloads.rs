//! Payloads: kept exactly or refused at the door, by one rule at every entrance.

use serde_json::{Value, json};

use super::{register_echo, register_gate};
use crate::support::{Client, Server, Worker, workflow};

/// Starts `echo` with `input`, written out, and returns the text of its result.
async fn through_echo(client: &Client, id: &str, input: &str) -> String {
    let body = format!(r#"{{"workflow":"echo","execution_id":"{id}","input":{input}}}"#);
    let answer = client.call("POST", "/v1/executions", Some(&body)).await;
    assert_eq!(answer.status, 201, "{input}: {}", answer.text);
    assert_eq!(client.wait(id).await["status"], "COMPLETED", "{input}");
    client.call("GET", &format!("/v1/executions/{id}/result"), None).await.text
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_texts_come_back_byte_for_byte() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    let texts = [
        "[9007199254740993,18446744073709551615,-9223372036854775808,0.1,1.0,-0.0,1e308,1E-7,0]",
        r#"{"s":"a\u0000b","k\u0000":1}"#,
        r#"{"z":1,"a":{"z":1,"a":2},"":null}"#,
        "\"\\ud83d\\ude00 \u{1f600} \\/ \u{2028}\"",
        "[18446744073709551616,1E-400]",
        "null",
    ];
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(through_echo(&client, &format!("exact-{at}"), text).await, *text, "C076 C084");
    }
    // The same through a step that reads a part of it, a native worker, and a signal.
    let mut document =
        workflow("parts", json!([{ "id": "a", "task": "native.same", "target": "worker", "input": "${ input.x }" }]));
    document["result"] = "${ steps.a.output }".into();
    client.register(&document).await;
    let worker = Worker::register(&client, "w", &["native.same"]).await;
    let body = format!(r#"{{"workflow":"parts","execution_id":"parts","input":{{"x":{}}}}}"#, texts[0]);
    assert_eq!(client.call("POST", "/v1/executions", Some(&body)).await.status, 201);
    let poll = format!(r#"{{"worker_session_id":"{}","wait_ms":30000}}"#, worker.session);
    let task = client.call("POST", "/v1/workers/poll", Some(&poll)).await;
    assert!(task.text.contains(&format!(r#""input":{}"#, texts[0])), "{}", task.text);
    let body = format!(r#"{{"token":{},"output":{}}}"#, task.json()["token"], texts[0]);
    assert_eq!(client.call("POST", "/v1/tasks/complete", Some(&body)).await.status, 200);
    client.wait("parts").await;
    assert_eq!(client.call("GET", "/v1/executions/parts/result", None).await.text, texts[0], "C084");
    register_gate(&client).await;
    client.start("gate", "gate", json!({})).await;
    assert_eq!(client.call("POST", "/v1/executions/gate/signals/go", Some(texts[1])).await.status, 200);
    client.wait("gate").await;
    assert_eq!(client.call("GET", "/v1/executions/gate/result", None).await.text, texts[1], "C076");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_parsers_could_read_in_two_ways_is_refused() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    register_gate(&client).await;
    client.start("gate", "gate", json!({})).await;
    let bad: &[&[u8]] = &[
        br#"{"role":"user","role":"admin"}"#,
        br#"{"a":{"b":1,"\u0062":2}}"#,
        br#""\ud800""#,
        b"NaN",
        b"Infinity",
        b"1e400",
        b"01",
        b"\"\xff\"",
        b"{} {}",
        b"[1,]",
    ];
    for text in bad {
        let shown = String::from_utf8_lossy(text);
        for (path, before, after) in [
            ("/v1/executions", &br#"{"workflow":"echo","input":"#[..], &b"}"[..]),
            ("/v1/executions/gate/signals/go", b"", b""),
            ("/v1/tasks/complete", br#"{"token":"x","output":"#, b"}"),
            (
                "/v1/workflows",
                br#"{"ir_version":"sandkeep-ir/1","name":"n","version":"1","steps":[],"source_map":"#,
                b"}",
            ),
        ] {
            let request = client.http().post(client.at(path)).header("content-type", "application/json");
            let answer = client.ask(request.body([before, text, after].concat())).await;
            assert_eq!(answer.status, 400, "C108 {path} {shown}: {}", answer.text);
        }
    }
    let twice = r#"{"workflow":"echo","workflow":"gate"}"#;
    assert_eq!(client.call("POST", "/v1/executions", Some(twice)).await.status, 400, "C108");
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_ends_at_one_depth() {
    let server = Server::start().await;
    let client = server.client();
    register_echo(&client).await;
    register_gate(&client).await;
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    // A payload within a message counts with the message around it.
    for (depth, status) in [(126, 201), (127, 201), (128, 400), (129, 400), (100_000, 400)] {
        let body = format!(r#"{{"workflow":"echo","execution_id":"deep-{depth}","input":{}}}"#, nested(depth));
        let answer = client.call("POST", "/v1/executions", Some(&body)).await;
        assert_eq!(answer.status, status, "C099 {depth}");
        if status == 400 {
            assert!(answer.message().contains("nested deeper than 128 levels"), "{}", answer.text);
            continue;
        }
        client.start("echo", &format!("deep-{depth}-beside"), json!({})).await;
        let path = format!("/v1/executions/deep-{depth}/wait");
        assert!(client.call("GET", &path, None).await.text.contains(r#""status":"COMPLETED""#));
        let result = client.call("GET", &format!("/v1/executions/deep-{depth}/result"), None).await;
        assert_eq!(result.text, nested(depth), "what is taken can be read back");
    }
    for (depth, status) in [(127, 200), (128, 200), (129, 400), (100_000, 400)] {
        let id = format!("signalled-{depth}");
        client.start("gate", &id, json!({})).await;
        let answer = client.call("POST", &format!("/v1/executions/{id}/signals/go"), Some(&nested(depth))).await;
        assert_eq!(answer.status, status, "C099 {depth}: {}", answer.text);
        if status == 200 {
            let ended = client.call("GET", &format!("/v1/executions/{id}/wait"), None).await;
            assert!(ended.text.contains(r#""status":"COMPLETED""#), "{}", ended.text);
            let result = client.call("GET", &format!("/v1/executions/{id}/result"), None).await;
            assert_eq!(result.text, nested(depth), "what is taken can be read back");
        }
    }
    let document = client.call("POST", "/v1/workflows", Some(&nested(100_000))).await;
    assert_eq!(document.verdict(), (400, "INVALID_IR".to_owned()), "C099");
    let schema = format!(
        r#"{{"ir_version":"sandkeep-ir/1","name":"deep","version":"1","steps":[],"input":{}{{}}{}}}"#,
        r#"{"not":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    assert_eq!(client.call("POST", "/v1/workflows", Some(&schema)).await.status, 400, "C099");
    let output = format!(r#"{{"token":"x","output":{}}}"#, nested(100_000));
    assert_eq!(client.call("POST", "/v1/tasks/complete", Some(&output)).await.status, 400, "C099");
    assert_eq!(client.get("/livez").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_is_kept_in_data_and_refused_in_names() {
    let server = Server::start().await;
    let client = server.client();
    for (path, body) in [
        ("/v1/executions", r#"{"workflow":"echo","execution_id":"a\u0000"}"#),
        ("/v1/executions", r#"{"workflow":"e\u0000"}"#),
        ("/v1/executions", r#"{"workflow":"echo","labels":{"a":"b\u0000"}}"#),
        ("/v1/workers/register", r#"{"worker_id":"w","runtime":"x","queues":["q\u0000"]}"#),
        ("/v1/workers/register", r#"{"worker_id":"w","contracts":[{"task_name":"a.b\u0000","version":"1.0"}]}"#),
    ] {
        assert_eq!(client.call("POST", path, Some(body)).await.status, 400, "C076 {body}");
    }
    let steps = json!([{ "id": "a", "task": "native.fail", "target": "worker", "retry": { "max_attempts": 1 } }]);
    client.register(&workflow("failing", steps)).await;
    client.start("failing", "failing", json!({})).await;
    assert_eq!(client.call("POST", "/v1/executions/failing/signals/go%00", None).await.status, 404, "C076");
    let worker = Worker::register(&client, "w", &["native.fail"]).await;
    let task = worker.take().await;
    for code in ["", "A\0", "A B"] {
        let fail = json!({ "token": task["token"], "error_code": code });
        assert_eq!(client.post("/v1/tasks/fail", &fail).await.0, 400, "C076 {code:?}");
    }
    let fail =
        json!({ "token": task["token"], "error_code": "X", "error_message": "a\0b", "details": { "k\0": "\0" } });
    assert_eq!(client.post("/v1/tasks/fail", &fail).await.0, 200, "C076");
    let ended = client.wait("failing").await;
    assert_eq!(ended["status"], "FAILED");
    let error = &ended["units"]["a"]["error"];
    assert_eq!((&error["message"], &error["details"]), (&Value::from("a\0b"), &json!({ "k\0": "\0" })), "C076");
}
