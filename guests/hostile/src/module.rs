//! The tasks. What the sandbox makes of each is said in its comment.

use std::hint::black_box;

use sandkeep_sdk::bindings::sandkeep::task::log;
use sandkeep_sdk::bindings::{Guest, TaskError, TaskSpec, export_module};
use sandkeep_sdk::guest;
use sandkeep_sdk::http::Request;
use serde_json::Value;

/// The tasks, each with what it does.
const TASKS: &[(&str, &str)] = &[
    ("hostile.spin", "Loops for ever: CPU_LIMIT."),
    ("hostile.eat", "Takes memory until there is none: MEMORY_LIMIT."),
    ("hostile.panic", "Panics, with a message of `message_bytes` if that is given: TRAP."),
    ("hostile.stack", "Recurses for ever: TRAP."),
    ("hostile.output_invalid", "Returns a text that is not JSON: OUTPUT_INVALID."),
    ("hostile.output_large", "Returns a JSON string of `bytes`, 2 MiB if not given: PAYLOAD_TOO_LARGE."),
    ("hostile.log_flood", "Logs `lines` (100,000) lines of `bytes` (100) bytes, then succeeds: the log is cut."),
    ("hostile.count", "Counts to `turns` (10,000,000), then succeeds: a piece of honest work."),
    ("hostile.requests", "Gets `url` until that is refused, and fails with what refused it: EGRESS_DENIED."),
    ("hostile.error_invalid", "Fails with an empty code and details that are not JSON."),
];

/// How much memory is taken at a time.
const CHUNK_BYTES: usize = 1 << 20;

struct Module;

export_module!(Module with_types_in sandkeep_sdk::bindings);

impl Guest for Module {
    fn describe() -> Vec<TaskSpec> {
        TASKS.iter().map(|&(name, description)| task_spec(name, description)).collect()
    }

    fn run(task: String, input: String) -> Result<String, TaskError> {
        guest::log_panics();
        let input = serde_json::from_str(&input).unwrap_or(Value::Null);
        match task.as_str() {
            "hostile.spin" => spin(),
            "hostile.eat" => eat(),
            "hostile.panic" => panic!("on purpose{}", "!".repeat(number(&input, "message_bytes", 0))),
            "hostile.stack" => Ok(recurse(0).to_string()),
            "hostile.output_invalid" => Ok("{\"not\": JSON".to_owned()),
            "hostile.output_large" => Ok(format!("\"{}\"", "x".repeat(number(&input, "bytes", 2 << 20)))),
            "hostile.log_flood" => Ok(log_flood(number(&input, "lines", 100_000), number(&input, "bytes", 100))),
            "hostile.count" => Ok(count(number(&input, "turns", 10_000_000)).to_string()),
            "hostile.requests" => Err(requests(input["url"].as_str().unwrap_or_default())),
            "hostile.error_invalid" => Err(failure("", "", Some("{not JSON"))),
            _ => Err(failure("UNKNOWN_TASK", "this module has no such task", None)),
        }
    }
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn count(turns: usize) -> usize {
    (0..turns).fold(0, |count, _| black_box(count + 1))
}

fn eat() -> ! {
    loop {
        // Written to, because memory that was never touched may cost the host nothing.
        black_box(vec![1_u8; CHUNK_BYTES].leak());
    }
}

#[expect(unconditional_recursion, reason = "it is what this task is for")]
fn recurse(depth: u64) -> u64 {
    // The addition after the call keeps the compiler from making a loop of it.
    black_box(recurse(black_box(depth + 1))) + 1
}

fn log_flood(lines: usize, bytes: usize) -> String {
    let line = "x".repeat(bytes);
    for _ in 0..lines {
        log::write(log::Level::Info, &line, None);
    }
    lines.to_string()
}

fn requests(url: &str) -> TaskError {
    loop {
        if let Err(error) = Request::get(url).send() {
            let error = sandkeep_sdk::TaskError::from(error);
            return failure(&error.code, &error.message, None);
        }
    }
}

fn number(input: &Value, name: &str, default: usize) -> usize {
    input[name].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
}

fn task_spec(name: &str, description: &str) -> TaskSpec {
    TaskSpec {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        description: Some(description.to_owned()),
        input_schema: None,
        output_schema: None,
    }
}

fn failure(code: &str, message: &str, details: Option<&str>) -> TaskError {
    TaskError {
        code: code.to_owned(),
        message: message.to_owned(),
        retryable: false,
        retry_after_ms: None,
        details: details.map(str::to_owned),
    }
}
