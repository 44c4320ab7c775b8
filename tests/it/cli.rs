//! The command line as scripts meet it: exit codes, what is on standard output, and what is not.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{PATIENCE, Server, guest, until, workflow};

/// What a command left.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }
}

/// Runs a command against `server`.
pub async fn run(server: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandkeep"));
    command.args(arguments).env("SANDKEEP_SERVER", server).stdin(Stdio::null());
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Writes a file into a folder and returns its path.
pub fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

pub fn dist(name: &str) -> String {
    format!("{}/guests/dist/{name}.wasm", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_outcome_has_its_exit_code_and_json_stays_json() {
    let server = Server::start().await;
    let client = server.client();
    let echo = workflow("echo", json!([{ "id": "a", "task": "core.echo", "input": "${ input }" }]));
    let mut echo = echo;
    echo["result"] = "${ steps.a.output }".into();
    client.register(&echo).await;
    let failing = json!([{ "id": "a", "task": "core.fail", "input": { "code": "NO" } }]);
    client.register(&workflow("failing", failing)).await;
    let mut late = workflow("late", json!([{ "id": "a", "await": "go" }]));
    late["timeout"] = "100ms".into();
    client.register(&late).await;
    client.register(&workflow("gate", json!([{ "id": "a", "await": "go" }]))).await;
    client.start("gate", "cancelled", json!({})).await;
    client.post("/v1/executions/cancelled/cancel", &json!({})).await;
    client.start("gate", "waiting", json!({})).await;
    let url = server.url();
    // Nothing listens on a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    for (server, arguments, code) in [
        (url, &["start", "echo", "--input", r#"{"n":1.0}"#, "--wait"][..], 0),
        (url, &["start", "echo", "--id", "twice"], 0),
        (url, &["start", "echo", "--id", "twice"], 0),
        (url, &["start", "echo", "--id", "twice", "--input", "2"], 3),
        (url, &["start", "failing", "--wait"], 1),
        (url, &["start", "late", "--wait"], 1),
        (url, &["wait", "cancelled"], 1),
        (url, &["wait", "waiting", "--timeout", "50ms"], 1),
        (url, &["wait", "none"], 3),
        (url, &["show", "waiting"], 0),
        (url, &["show", "none"], 3),
        (url, &["list"], 0),
        (url, &["list", "--status", "odd"], 3),
        (url, &["history", "waiting"], 0),
        (url, &["logs", "waiting"], 0),
        (url, &["why", "waiting"], 0),
        (url, &["result", "waiting"], 3),
        (url, &["signal", "waiting", "none"], 3),
        (url, &["query", "waiting", "none"], 3),
        (url, &["cancel", "none"], 3),
        (url, &["worker", "list"], 0),
        (url, &["module", "list"], 0),
        (url, &["workflow", "list"], 0),
        (url, &["workflow", "show", "echo"], 0),
        (url, &["workflow", "show", "none"], 3),
        (url, &["start", "none"], 3),
        (url, &["start", "echo", "--input", "{nothing"], 2),
        (url, &["start", "echo", "--input", "@/no/such/file"], 2),
        (url, &["start"], 2),
        (url, &["strat", "echo"], 2),
        (url, &["list", "--limit", "many"], 2),
        (url, &["workflow", "apply", "/no/such/file.json"], 2),
        ("not a url", &["list"], 2),
        (&nobody, &["list"], 4),
        (&nobody, &["start", "echo", "--wait"], 4),
        (&nobody, &["module", "push", &dist("hello")], 4),
    ] {
        for format in ["table", "json"] {
            let ran = run(server, &[arguments, &["--output", format]].concat()).await;
            assert_eq!(ran.code, Some(code), "C112 {arguments:?} {format}: {} {}", ran.out, ran.err);
            assert!(code == 0 || !ran.err.is_empty(), "C112 {arguments:?} says what is wrong");
            assert!(code == 0 || !ran.out.to_lowercase().contains("success"), "C112 {arguments:?}");
            if format == "json" && !ran.out.is_empty() {
                ran.json();
            }
            if format == "json" && code == 0 {
                assert!(!ran.out.is_empty(), "{arguments:?} prints data");
            }
        }
    }
    let waited = run(url, &["start", "echo", "--input", r#"{"n":1.0}"#, "--wait", "--output", "json"]).await;
    assert_eq!(waited.json()["status"], "COMPLETED");
    assert!(waited.out.replace([' ', '\n'], "").contains(r#""output":{"n":1.0}"#), "{}", waited.out);
    let failed = run(url, &["start", "failing", "--wait", "--output", "json"]).await;
    assert_eq!((&failed.json()["status"], &failed.json()["error"]["code"]), (&json!("FAILED"), &json!("NO")));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_checked_and_applied() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let good = workflow(
        "good",
        json!([
            { "id": "a", "task": "core.echo", "input": 1 },
            { "id": "b", "compute": "${ steps.a.output }" },
        ]),
    );
    let good = file(folder.path(), "good.json", good.to_string());
    let bad = workflow("bad", json!([{ "id": "a", "task": "core.echo", "inputs": 1 }, { "id": "b", "sleep": "soon" }]));
    let bad = file(folder.path(), "bad.json", bad.to_string());
    let yaml =
        "ir_version: sandkeep-ir/1\nname: yaml\nversion: '1'\nsteps:\n  - id: a\n    compute: 9007199254740993\n";
    let yaml = file(folder.path(), "yaml.yaml", yaml);
    let checked = run("http://127.0.0.1:1", &["workflow", "check", &good, "--output", "json"]).await;
    assert_eq!((checked.code, &checked.json()["steps"][1]["after"]), (Some(0), &json!(["a"])), "{}", checked.err);
    let refused = run("http://127.0.0.1:1", &["workflow", "check", &bad, "--output", "json"]).await;
    let problems = refused.json()["problems"].as_array().unwrap().len();
    assert_eq!((refused.code, problems), (Some(3), 2), "{}", refused.out);
    for place in ["/steps/0/inputs", "/steps/1/sleep", "did you mean"] {
        assert!(refused.err.contains(place), "{place}: {}", refused.err);
    }
    let url = server.url();
    assert_eq!(run(url, &["workflow", "apply", &bad]).await.code, Some(3));
    for _ in 0..2 {
        let applied = run(url, &["workflow", "apply", &good, &yaml, "--output", "json"]).await;
        assert_eq!((applied.code, applied.json().as_array().map(Vec::len)), (Some(0), Some(2)), "{}", applied.err);
    }
    let shown = run(url, &["workflow", "show", "yaml"]).await;
    assert!(shown.out.contains("9007199254740993"), "{}", shown.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_inspected_and_run_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = "http://127.0.0.1:1";
    let found = run(nobody, &["module", "inspect", &dist("hello"), "--output", "json"]).await;
    assert_eq!(found.code, Some(0), "{}", found.err);
    let tasks = found.json()["tasks"].as_array().unwrap().clone();
    assert!(tasks.iter().any(|task| task["name"] == "greet.hello"), "{tasks:?}");
    let greeted = run(nobody, &["module", "run", &dist("hello"), "greet.hello", "--input", r#"{"name":"Ada"}"#]).await;
    assert_eq!(greeted.code, Some(0), "{}", greeted.err);
    assert!(greeted.json().to_string().contains("Ada"), "{}", greeted.out);
    for (task, code) in
        [("spin", "CPU_LIMIT"), ("eat", "MEMORY_LIMIT"), ("panic", "TRAP"), ("output_invalid", "OUTPUT_INVALID")]
    {
        let task = format!("hostile.{task}");
        let arguments = ["module", "run", &dist("hostile"), &task, "--cpu", "200ms", "--output", "json"];
        let ran = run(nobody, &arguments).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{task}");
        assert!(ran.err.contains(code), "{task}: {}", ran.err);
    }
    let text = file(folder.path(), "text.wasm", "(component)");
    for arguments in [&["module", "inspect", &text][..], &["module", "run", &text, "a.b"]] {
        let refused = run(nobody, arguments).await;
        assert_eq!((refused.code, refused.out.as_str()), (Some(3), ""), "{}", refused.err);
    }
    assert_eq!(run(nobody, &["module", "run", &dist("hello"), "no.such"]).await.code, Some(2));
    assert_eq!(run(nobody, &["module", "inspect", "/no/such.wasm"]).await.code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_what_would_help_and_follow_ends_with_the_execution() {
    let server = Server::start().await;
    let client = server.client();
    let url = server.url().to_owned();
    let steps = json!([{ "id": "charge", "task": "payments.charge", "target": "worker" }, { "id": "ok", "await": "go", "after": ["charge"] }]);
    client.register(&workflow("order", steps)).await;
    client.start("order", "x", json!({})).await;
    let why = run(&url, &["why", "x"]).await;
    assert_eq!(why.code, Some(0));
    assert!(
        why.out.contains("charge") && why.out.contains("payments.charge") && why.out.contains("worker"),
        "{}",
        why.out
    );
    let following = tokio::spawn(async move { run(&url, &["history", "x", "--follow", "--output", "jsonl"]).await });
    let worker = crate::support::Worker::register(&client, "w", &["payments.charge"]).await;
    let task = worker.take().await;
    worker.complete(&task, json!({ "paid": true })).await;
    until("the await", async || client.state("x").await["waiting_for"].as_str()?.contains("go").then_some(())).await;
    let why = run(server.url(), &["why", "x"]).await;
    assert!(why.out.contains("signal"), "{}", why.out);
    assert_eq!(run(server.url(), &["signal", "x", "go", "--input", "{}"]).await.code, Some(0));
    let followed = following.await.unwrap();
    assert_eq!(followed.code, Some(0), "{}", followed.err);
    let kinds: Vec<_> =
        followed.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(json!(kinds), json!(client.story("x").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shown_without_secrets_and_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "a secret that is longer than thirty-two characters";
    let config =
        file(folder.path(), "config.toml", format!("[key]\nsecret = \"{secret}\"\n[log]\nfilter = \"warn\"\n"));
    let shown = run("x", &["server", "--config", &config, "--listen", "127.0.0.1:0", "--print-config"]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(!shown.out.contains(secret) && !shown.err.contains(secret), "{}", shown.out);
    assert!(shown.out.contains("filter = \"warn\"") && shown.out.contains("sweep_ms = 60000"), "{}", shown.out);
    let slip = file(folder.path(), "slip.toml", "[worker]\nheartbeat_intervall_ms = 5\n");
    for arguments in [&["server", "--config", &slip][..], &["server", "--set", "worker.heartbeat_intervall_ms=5"]] {
        let refused = run("x", arguments).await;
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{arguments:?} {}", refused.err);
        assert!(refused.err.contains("heartbeat_interval_ms"), "{}", refused.err);
    }
    for (key, value) in [("server.listen", "0.0.0.0:0"), ("database.url", "postgres://x")] {
        let refused = run("x", &["server", "--set", &format!("{key}={value}")]).await;
        assert!(
            matches!(refused.code, Some(1 | 2)) && refused.out.is_empty(),
            "{key} {:?} {}",
            refused.code,
            refused.err
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_brings_a_folder_to_its_server_and_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let document = |output: u32| {
        let mut document = workflow("greet", json!([{ "id": "a", "task": "greet.hello", "input": { "name": "Ada" } }]));
        document["result"] = json!(output);
        document.to_string()
    };
    file(folder.path(), "modules/hello.wasm", guest("hello"));
    let path = file(folder.path(), "workflows/greet.json", document(1));
    let server = Server::dev(folder.path()).await;
    let client = server.client();
    until("the folder is registered", async || (client.get("/v1/workflows/greet").await.0 == 200).then_some(())).await;
    assert_eq!(client.get("/v1/modules/hello").await.0, 200, "modules come first");
    client.start("greet", "first", json!({})).await;
    assert_eq!(client.wait("first").await["output"], json!(1));
    std::fs::write(&path, document(22)).unwrap();
    let edited = until("the edit is registered", async || {
        let (_, document) = client.get("/v1/workflows/greet").await;
        document["version"].as_str().filter(|version| *version != "1").map(str::to_owned)
    })
    .await;
    let hash = edited.strip_prefix("1+dev.").unwrap_or_else(|| panic!("{edited}"));
    assert!(hash.len() == 8 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{edited}");
    client.start("greet", "second", json!({})).await;
    assert_eq!(client.wait("second").await["output"], json!(22));
    assert!(folder.path().join(".sandkeep/sandkeep.db").exists());
    // A document that is wrong is said, and the server goes on.
    std::fs::write(&path, "{").unwrap();
    let other = "ir_version: sandkeep-ir/1\nname: other\nversion: '1'\nsteps:\n  - id: a\n    compute: 1\n";
    file(folder.path(), "workflows/other.yaml", other);
    until("the other file is seen", async || (client.get("/v1/workflows/other").await.0 == 200).then_some(())).await;
    assert_eq!(client.get("/v1/workflows/greet").await.1["version"], json!(edited), "what was good stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_moved_compared_and_removed() {
    let server = Server::start().await;
    let client = server.client();
    let url = server.url();
    let one = client.push("hello").await["digest"].as_str().unwrap().to_owned();
    client.register(&workflow("greets", json!([{ "id": "a", "task": "greet.hello" }]))).await;
    let pushed = run(url, &["module", "push", &dist("orders"), "--name", "hello"]).await;
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    assert!(pushed.err.contains("greets 1, step a, task greet.hello"), "{}", pushed.err);
    let two = client.get("/v1/modules/hello").await.1["digest"].as_str().unwrap().to_owned();
    let (short_one, short_two) = (&one[..15], &two[..15]);
    let split = format!("{short_one}=100");
    for (arguments, code, out) in [
        (&["module", "alias", "hello", "beta", short_two][..], 0, "hello@beta is"),
        (&["module", "alias", "hello", "beta", "--split", &split], 0, "hello@beta is"),
        (&["module", "alias", "hello", "beta", "sha256:zz"], 3, ""),
        (&["module", "alias", "hello", "beta", "sha256:0000000000000000000"], 2, ""),
        (&["module", "alias", "hello", "beta"], 2, ""),
        (&["module", "rm", "hello", short_one], 3, ""),
        (&["module", "alias", "hello", "beta", "--delete"], 0, "removed"),
        (&["module", "rm", "hello", short_two], 3, ""),
        (&["module", "diff", "hello", short_one, "live"], 0, "greet.hello"),
        (&["module", "rollback", "hello", "--repin"], 0, "0 executions moved along"),
        (&["module", "rollback", "hello"], 3, ""),
        (&["module", "rm", "hello", short_two], 0, "removed"),
    ] {
        let ran = run(url, arguments).await;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {} {}", ran.out, ran.err);
        assert!(ran.out.contains(out), "{arguments:?}: {}", ran.out);
    }
}
