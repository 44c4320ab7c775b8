//! Guests that want the processor for themselves.

use serde_json::json;

use super::{Case, Guest, run_all};

/// A start function that spins in the second attempt: the first one, and `describe`, would not be served otherwise.
fn start_that_spins() -> Guest {
    let start = "(func $start
        (call $last (i32.const 3000))
        (if (i32.load8_u (i32.const 3000)) (then (loop $l (br $l)))))
      (start $start)";
    Guest::new("(call $report (i32.const 4096) (i32.const 2)) (call $err (i32.const 4100) (i32.const 5))")
        .data(4096, "[]")
        .data(4100, "AGAIN")
        .define(start)
}

pub(super) fn cases() -> Vec<Case> {
    let fill = "(loop $l (memory.fill (i32.const 65536) (i32.const 1) (i32.const 20000000)) (br $l)) unreachable";
    let recursion = "(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))";
    let calls = "(loop $l (drop (call $cancelled)) (br $l)) unreachable";
    let reports = "(loop $l (call $report (i32.const 4096) (i32.const 2)) (br $l)) unreachable";
    let spin = "(loop $l (br $l)) unreachable";
    vec![
        Case::guest("endless loop", Guest::spinning(), &["CPU_LIMIT"]),
        Case::task("endless loop of compiled Rust", "spin", json!({}), &["CPU_LIMIT"]),
        Case::guest("loop in a start function", start_that_spins(), &["CPU_LIMIT"]).attempts(2),
        Case::guest("loop in realloc while arguments are lowered", Guest::echo().realloc(spin), &["CPU_LIMIT"]),
        Case::guest("fill of memory without end", Guest::new(fill).memory("400"), &["CPU_LIMIT"]),
        Case::guest("calls of the host without end", Guest::new(calls), &["CPU_LIMIT"]),
        Case::guest("reports of progress without end", Guest::new(reports).data(4096, "[]"), &["CPU_LIMIT"]),
        Case::guest("deep recursion", Guest::new("(call $deeper (i32.const 0))").define(recursion), &["TRAP"]),
        Case::task("deep recursion of compiled Rust", "stack", json!({}), &["TRAP"]),
        Case::refused("loop in describe", Guest::echo().describe(spin).build(), "CPU_LIMIT"),
        Case::refused(
            "loop in a start function at upload",
            Guest::echo().define("(func $start (loop $l (br $l))) (start $start)").build(),
            "CPU_LIMIT",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_take_the_processor_end() {
    run_all("cpu", cases()).await;
}
