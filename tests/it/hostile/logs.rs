//! Guests that flood or forge the log: it stays bounded and inert, and says what is missing.

use serde_json::{Value, json};

use super::{Case, Guest, Harness, case::Act};
use crate::support::Client;

/// What may be kept of one attempt, with what each line costs in an answer.
const LOG_BYTES_MAX: usize = 2 << 20;
const FORGED: &str = "a\n2026-01-01T00:00:00Z ERROR sandkeep: forged\r\u{1b}[31mred\u{1b}[0m\u{0}\u{7}\u{202e}b";

/// Logs `bytes` from the middle of its memory without end.
fn flood(bytes: u32) -> Guest {
    let run = format!("(loop $l (call $say (i32.const 65536) (i32.const {bytes})) (br $l)) unreachable");
    Guest::new(&run).memory("400").define("(data (i32.const 65536) \"x\")")
}

pub(super) fn cases() -> Vec<Case> {
    let forged = Guest::new(&format!(
        "(call $say (i32.const 4096) (i32.const {})) (call $ok (i32.const 4090) (i32.const 2))",
        FORGED.len()
    ));
    let invalid = Guest::new("(call $say (i32.const 4096) (i32.const 2)) unreachable")
        .define("(data (i32.const 4096) \"\\ff\\fe\")");
    vec![
        Case::guest("gigabytes without a newline", flood(4 << 20), &["CPU_LIMIT"]),
        Case::guest("empty lines without end", flood(0), &["CPU_LIMIT"]),
        Case::task("100,000 lines of compiled Rust", "log_flood", json!({}), &["COMPLETED", "CPU_LIMIT"]),
        Case::guest("control characters and a forged line", forged.data(4096, FORGED).data(4090, "[]"), &["COMPLETED"]),
        Case::guest("a line that is not UTF-8", invalid, &["TRAP"]),
        Case::guest(
            "one line of 20 MB",
            Guest::new("(call $say (i32.const 0) (i32.const 20000000)) unreachable").memory("400"),
            &["PAYLOAD_TOO_LARGE"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_flood_the_log_are_bounded() {
    let mut harness = Harness::start("logs", &[]).await;
    for case in cases() {
        let name = case.name;
        assert!(matches!(case.act, Act::Run { .. }));
        let id = harness.run(case).await;
        let lines = lines(&harness.client, &id).await;
        let text = lines.iter().map(|line| line["message"].as_str().unwrap()).collect::<Vec<_>>();
        let bytes: usize = text.iter().map(|message| message.len()).sum();
        assert!(bytes <= LOG_BYTES_MAX, "{name}: {bytes} bytes, C063");
        let inert = |message: &&str| message.chars().all(|c| !c.is_control() && c != '\u{202e}');
        assert!(text.iter().all(inert), "{name}: {:?}", text.iter().find(|message| !inert(message)));
        let truncated = lines.iter().any(|line| line["fields"]["truncated"] == true);
        let floods = name.contains("without") || name.contains("100,000");
        assert_eq!(truncated, floods, "{name}: the gap is told where there is one");
    }
}

/// All lines of an execution's log.
async fn lines(client: &Client, id: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut after = String::new();
    loop {
        let (status, page) = client.get(&format!("/v1/executions/{id}/logs?limit=500{after}")).await;
        assert_eq!(status, 200, "{page}");
        lines.extend(page["lines"].as_array().unwrap().iter().cloned());
        match &page["next_cursor"] {
            Value::Null => return lines,
            next => after = format!("&after={}", next.as_str().map_or(next.to_string(), str::to_owned)),
        }
    }
}
