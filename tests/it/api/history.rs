//! Histories and logs: pages, order, and streams that resume.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::register_gate;
use crate::support::{Client, PATIENCE, Server, workflow};

/// An execution of eight computes, which has ended.
async fn ended(client: &Client) -> Vec<Value> {
    let steps: Vec<Value> = (0..8).map(|at| json!({ "id": format!("s{at}"), "compute": at })).collect();
    client.run(&workflow("eight", json!(steps)), "x", json!({})).await;
    client.history("x").await
}

fn seqs(events: &Value) -> Vec<u64> {
    events.as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_dense_and_paged_both_ways() {
    let server = Server::start().await;
    let client = server.client();
    let all = ended(&client).await;
    let count = all.len() as u64;
    assert_eq!(seqs(&json!(all)), (1..=count).collect::<Vec<_>>());
    assert_eq!(
        (&all[0]["type"], &all[all.len() - 1]["type"]),
        (&json!("WorkflowCreated"), &json!("WorkflowCompleted"))
    );
    for event in &all {
        assert!(event["run"] == 1 && event["at_ms"].is_i64() && event["type"].is_string(), "{event}");
    }
    for reverse in [false, true] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let after_seq = after.map(|seq: u64| format!("&after_seq={seq}")).unwrap_or_default();
            let path = format!("/v1/executions/x/history?limit=3&reverse={reverse}{after_seq}");
            let (status, page) = client.get(&path).await;
            assert_eq!((status, &page["execution_id"]), (200, &json!("x")));
            let some = seqs(&page["events"]);
            assert!((1..=3).contains(&some.len()), "{page}");
            found.extend(some);
            match page["next_cursor"].as_u64() {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let mut wanted: Vec<_> = (1..=count).collect();
        if reverse {
            wanted.reverse();
        }
        assert_eq!(found, wanted, "reverse={reverse}");
    }
    assert_eq!(seqs(&client.get("/v1/executions/x/history?run=1").await.1["events"]).len() as u64, count);
    let past = client.get("/v1/executions/x/history?after_seq=1000").await.1;
    assert_eq!((&past["events"], &past["next_cursor"]), (&json!([]), &Value::Null));
    let one = client.get("/v1/executions/x/history?limit=0").await.1;
    assert_eq!(seqs(&one["events"]), [1]);
}

/// Reads a stream until it ends or `enough` says so; returns the ids that came.
async fn follow(client: &Client, path: &str, last: Option<u64>, enough: impl Fn(&[u64]) -> bool) -> (u16, Vec<u64>) {
    let request = client.http().get(client.at(path));
    let request = last.iter().fold(request, |request, last| request.header("last-event-id", last.to_string()));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["x-sandkeep-api-version"], "sandkeep-api/1");
    let status = answer.status().as_u16();
    if status == 200 {
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
    }
    let (mut chunks, mut text) = (answer.bytes_stream(), String::new());
    let ids = |text: &str| -> Vec<u64> {
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
        whole.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
    };
    let read = async {
        while !enough(&ids(&text)) {
            match chunks.next().await {
                Some(chunk) => text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap()),
                None => break,
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the stream goes on or ends");
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        serde_json::from_str::<Value>(line).unwrap();
    }
    (status, ids(&text))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_what_is_there_then_what_comes_and_resumes() {
    let server = Server::start().await;
    let client = server.client();
    register_gate(&client).await;
    client.start("gate", "x", json!({})).await;
    let path = "/v1/executions/x/history?follow=true";
    let (status, first) = follow(&client, path, None, |ids| ids.len() >= 3).await;
    assert_eq!((status, &first[..3]), (200, &[1, 2, 3][..]));
    let rest = {
        let (client, last) = (client.clone(), first[first.len() - 1]);
        tokio::spawn(async move { follow(&client, path, Some(last), |_| false).await })
    };
    client.post("/v1/executions/x/signals/go", &json!(1)).await;
    let (_, rest) = rest.await.unwrap();
    let count = client.history("x").await.len() as u64;
    assert_eq!([first, rest].concat(), (1..=count).collect::<Vec<_>>(), "nothing is missed, nothing comes twice");
    assert_eq!(follow(&client, path, Some(count), |_| false).await, (204, vec![]), "nothing is left");
    let (_, tail) = follow(&client, &format!("{path}&after_seq={}", count - 1), None, |_| false).await;
    assert_eq!(tail, [count]);
    let bad = client.http().get(client.at(path)).header("last-event-id", "x");
    assert_eq!(client.ask(bad).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_paged_and_followed() {
    let server = Server::start().await;
    let client = server.client();
    client.push("hostile").await;
    let steps = json!([
        { "id": "a", "task": "hostile.log_flood", "input": { "lines": 7, "bytes": 10 } },
        { "id": "b", "task": "hostile.log_flood", "after": ["a"], "input": { "lines": 5, "bytes": 20 } },
    ]);
    client.run(&workflow("logging", steps), "x", json!({})).await;
    let (status, all) = client.get("/v1/executions/x/logs").await;
    let lines = all["lines"].as_array().unwrap();
    assert_eq!((status, &all["execution_id"], lines.len()), (200, &json!("x"), 12), "{all}");
    for line in lines {
        assert!(line["level"] == "info" && line["attempt"] == 1 && line["at_ms"].is_i64(), "{line}");
    }
    assert_eq!((&lines[0]["unit"], &lines[11]["unit"]), (&json!("a"), &json!("b")));
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let (_, page) = client.get(&format!("/v1/executions/x/logs?limit=5&after={after}")).await;
        found.extend(page["lines"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(&found, lines);
    let ids: Vec<_> = lines.iter().map(|line| line["id"].as_u64().unwrap()).collect();
    let path = "/v1/executions/x/logs?follow=true";
    assert_eq!(follow(&client, path, None, |_| false).await, (200, ids.clone()));
    assert_eq!(follow(&client, path, Some(ids[8]), |_| false).await, (200, ids[9..].to_vec()));
}
