//! A database that is full, is not ours, or is in use: clear errors, no damage, and a server that goes on when it can.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::json;

use crate::support::{Server, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_refuses_starts_and_loses_nothing() {
    let mut server = Server::with(&[("DATABASE__MAX_BYTES", "1500000")]).await;
    let client = server.client();
    let document = workflow(
        "echo",
        json!([
            { "id": "a", "task": "core.echo", "input": "${ input }" },
            { "id": "b", "await": "go" },
        ]),
    );
    client.register(&document).await;
    let mut acknowledged = Vec::new();
    let refusal = loop {
        let id = format!("x-{:04}", acknowledged.len());
        let body = json!({ "workflow": "echo", "execution_id": id, "input": "x".repeat(20_000) });
        let answer = client.call("POST", "/v1/executions", Some(&body.to_string())).await;
        match answer.status {
            201 => acknowledged.push(id),
            _ => break answer,
        }
        assert!(acknowledged.len() < 1_000, "the limit holds");
    };
    assert_eq!(refusal.verdict(), (503, "UNAVAILABLE".to_owned()));
    assert!(refusal.message().contains("full"), "{}", refusal.text);
    assert!(refusal.headers.contains_key("retry-after"));
    assert!(acknowledged.len() > 5);
    // It lives, and what there is can be read.
    for path in ["/livez", "/readyz", "/v1/health", "/v1/workflows/echo", "/v1/executions?limit=500"] {
        assert_eq!(client.call("GET", path, None).await.status, 200, "{path}");
    }
    for id in &acknowledged {
        assert_eq!(client.state(id).await["status"], "RUNNING");
        client.history(id).await;
    }
    let refused = client.get(&format!("/v1/executions/x-{:04}", acknowledged.len())).await;
    assert_eq!(refused.0, 404, "what was refused is not there");
    // With room again everything goes on where it was.
    server.stop().await;
    server.set("DATABASE__MAX_BYTES", "1000000000");
    server.restart().await;
    let client = server.client();
    for id in &acknowledged {
        let (status, answer) = client.post(&format!("/v1/executions/{id}/signals/go"), &json!({})).await;
        assert_eq!(status, 200, "{answer}");
    }
    for id in &acknowledged {
        assert_eq!(client.wait(id).await["status"], "COMPLETED");
        let seqs: Vec<_> = client.history(id).await.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    }
}

/// Runs a server that is expected to end by itself.
async fn refused(database: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandkeep"));
    command.args(["server", "--listen", "127.0.0.1:0", "--database"]).arg(format!("sqlite:{}", database.display()));
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    tokio::time::timeout(crate::support::PATIENCE, ended).await.expect("it ends by itself").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("notes.txt"), "Buy milk. ".repeat(100)).unwrap();
    std::fs::write(at("short"), "x").unwrap();
    let other = rusqlite::Connection::open(at("other.db")).unwrap();
    other.execute_batch("CREATE TABLE cats (name TEXT); INSERT INTO cats VALUES ('Minka');").unwrap();
    drop(other);
    std::fs::create_dir(at("folder")).unwrap();
    for name in ["notes.txt", "short", "other.db", "folder"] {
        let before = std::fs::read(at(name)).ok();
        let output = refused(&at(name)).await;
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(output.stdout.is_empty(), "{name} is never ready");
        let story = String::from_utf8(output.stderr).unwrap();
        assert!(story.contains("is not a Sandkeep database") && story.contains(name), "{story}");
        assert_eq!(std::fs::read(at(name)).ok(), before, "{name}");
    }
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["folder", "notes.txt", "other.db", "short"], "nothing is left beside them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_one_database_is_told_who_has_it() {
    let server = Server::start().await;
    let output = refused(&server.database()).await;
    assert_eq!(output.status.code(), Some(1));
    let story = String::from_utf8(output.stderr).unwrap();
    assert!(story.contains(&server.pid().to_string()) && story.contains(".lock"), "{story}");
    assert_eq!(server.client().get("/readyz").await.0, 200);
}
