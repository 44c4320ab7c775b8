//! A failed attempt brought home: recorded on a server, run again without one, and stepped with other inputs.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    cli::{Ran, dist, file, run},
    egress::{call, open, server, set, site},
};

/// Where nobody listens: what runs without a server needs none.
const NOBODY: &str = "http://127.0.0.1:1";

#[track_caller]
fn ended(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{} {}", ran.out, ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "`{part}` is not in: {}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_runs_again_offline_to_the_same_end() {
    let mut server = server().await;
    let client = server.client();
    let (origin, asked) = site().await;
    open(&client, "default", &origin).await;
    client.push("fetch").await;
    let gone = json!({ "url": format!("{origin}/gone") });
    call(&client, "before", "fetch.json", 1, gone.clone()).await;
    let typo = json!({ "record": ["fetch.jsn"] }).to_string();
    let settings = client.at("/v1/modules/fetch/settings");
    let request = client.http().put(settings).header("content-type", "application/json").body(typo);
    let (status, refused) = client.send(request).await.unwrap();
    assert!(status == 400 && refused.to_string().contains("did you mean `fetch.json`?"), "{status} {refused}");
    set(&client, "/v1/modules/fetch/settings", json!({ "record": ["fetch.json"] })).await;
    let state = call(&client, "after", "fetch.json", 1, gone).await;
    assert_eq!(state["error"]["code"], "NOT_FOUND", "{state}");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("attempt.json");
    let to = to.to_str().unwrap();
    ended(&run(server.url(), &["attempt", "pull", "before", "a"]).await, 3, &["no recording of attempt 1", "record"]);
    ended(&run(server.url(), &["attempt", "pull", "after", "b"]).await, 3, &["UNIT_NOT_FOUND"]);
    let pulled = run(server.url(), &["attempt", "pull", "after", "a", "--to", to]).await;
    ended(&pulled, 0, &["attempt 1", "NOT_FOUND", "--replay"]);
    assert_eq!(pulled.out.trim(), to);
    ended(&run(server.url(), &["attempt", "pull", "after", "a", "--to", to]).await, 2, &["is there already"]);
    for path in ["attempts/2/bundle", "attempts/0/bundle", "attempts/x/bundle"] {
        let (status, _) = client.get(&format!("/v1/executions/after/units/a/{path}")).await;
        assert_eq!(status, if path.contains('2') { 404 } else { 400 }, "{path}");
    }
    let other = client.for_tenant("other").await;
    assert_eq!(other.get("/v1/executions/after/units/a/attempts/1/bundle").await.0, 404);
    server.kill();

    let before = asked.load(Ordering::SeqCst);
    let again = run(NOBODY, &["module", "run", "--replay", to]).await;
    ended(&again, 1, &["NOT_FOUND: the answer was 404", "it ended as it was recorded", "attempt 1"]);
    let elsewhere = format!(r#"{{"url": "{origin}/json"}}"#);
    let stepped = run(NOBODY, &["module", "run", "--replay", to, "--input", &elsewhere]).await;
    ended(&stepped, 1, &["/json` is not in the recording", "it ended otherwise than it was recorded"]);
    assert_eq!(asked.load(Ordering::SeqCst), before, "nothing leaves the machine");

    // The recording can be changed by hand: here to see what the module makes of a better answer.
    let mut bundle: Value = serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap();
    let answer = &mut bundle["recording"]["http"][0]["answer"]["response"];
    answer["status"] = 200.into();
    answer["body"] = json!(["{\"n\":", "1}"]);
    answer["headers"] = json!([]);
    let mended = file(folder.path(), "mended.json", bundle.to_string());
    let better = run(NOBODY, &["module", "run", "--replay", &mended]).await;
    ended(&better, 0, &["it ended otherwise than it was recorded: then it failed: NOT_FOUND"]);
    assert_eq!(serde_json::from_str::<Value>(&better.out).unwrap()["document"], json!({ "n": 1 }));

    // Another build of the module takes the place of the recorded one; a damaged file is told.
    ended(&run(NOBODY, &["module", "run", &dist("fetch"), "--replay", to]).await, 1, &["as it was recorded"]);
    bundle["module"]["content"] = "AAAA".into();
    let damaged = file(folder.path(), "damaged.json", bundle.to_string());
    ended(&run(NOBODY, &["module", "run", "--replay", &damaged]).await, 2, &["damaged"]);
    bundle["format"] = 9.into();
    let newer = file(folder.path(), "newer.json", bundle.to_string());
    ended(&run(NOBODY, &["module", "run", "--replay", &newer]).await, 2, &["form is 9"]);
    ended(&run(NOBODY, &["module", "run", "--replay", &dist("fetch")]).await, 2, &["is not a recorded attempt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_run_has_its_requests_answered_from_a_file_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let stubs = file(
        folder.path(),
        "http.json",
        r#"[{"url": "https://shop.example/7", "body": {"n": 7}, "headers": {"etag": "\"a\""}},
            {"url": "https://down.example/", "error": "connection-refused"}]"#,
    );
    let (module, url) = (dist("fetch"), |url: &str| format!(r#"{{"url": "{url}"}}"#));
    let args =
        |input: &str| ["module", "run", &module, "fetch.json", "--http", &stubs, "--input", input].map(str::to_owned);
    for (address, code, parts) in [
        ("https://shop.example/7", 0, &[][..]),
        ("https://down.example/", 1, &["HTTP_UNREACHABLE"]),
        ("https://shop.example/8", 1, &["EGRESS_DENIED", "no stub answers `GET https://shop.example/8`"]),
    ] {
        let args = args(&url(address));
        let ran = run(NOBODY, &args.each_ref().map(String::as_str)).await;
        ended(&ran, code, parts);
        if code == 0 {
            let fetched: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(fetched, json!({ "document": { "n": 7 }, "etag": "\"a\"" }));
        }
    }
    let alone = run(NOBODY, &["module", "run", &module, "fetch.json", "-i", &url("https://shop.example/7")]).await;
    ended(&alone, 1, &["EGRESS_DENIED", "https://shop.example"]);
    let wrong = file(folder.path(), "wrong.json", r#"[{"url": "shop.example"}]"#);
    ended(&run(NOBODY, &["module", "run", &module, "fetch.json", "--http", &wrong]).await, 2, &["/0/url"]);
}
