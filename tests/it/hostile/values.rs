//! Guests that hand over values which are none.

use serde_json::json;

use super::{Case, Guest, run_all};

pub(super) fn cases() -> Vec<Case> {
    let invalid_utf8 =
        Guest::new("(call $ok (i32.const 4096) (i32.const 2))").define("(data (i32.const 4096) \"\\ff\\fe\")");
    let enum_out_of_range = "(call $write (i32.const 77) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) unreachable";
    let message_invalid = "(call $say (i32.const -16) (i32.const 8)) unreachable";
    let alias = "(i32.store (i32.const 1028) (i32.const 1000000)) (i32.const 1024)";
    let deep = Guest::returning(&"[".repeat(100_000)).memory("4");
    let long_code = Guest::new("(call $err (i32.const 4096) (i32.const 129))").data(4096, &"A".repeat(129));
    let large_error = Guest::new("(call $err (i32.const 65536) (i32.const 4000000))").memory("400");
    let either: &[&str] = &["TRAP", "PAYLOAD_TOO_LARGE"];
    vec![
        Case::guest("1 GiB string returned", Guest::new("(call $ok (i32.const 0) (i32.const 1073741824))"), either),
        Case::guest(
            "20 MB string returned",
            Guest::new("(call $ok (i32.const 0) (i32.const 20000000))").memory("400"),
            &["PAYLOAD_TOO_LARGE"],
        ),
        Case::guest(
            "one byte more than an output may have",
            Guest::new("(call $ok (i32.const 0) (i32.const 1048577))").memory("400"),
            &["PAYLOAD_TOO_LARGE"],
        ),
        Case::task("large output of compiled Rust", "output_large", json!({}), &["PAYLOAD_TOO_LARGE"]),
        Case::guest("pointer out of range", Guest::new("(call $ok (i32.const -16) (i32.const 8))"), &["TRAP"]),
        Case::guest("result out of range", Guest::new("(i32.const -4)"), &["TRAP"]),
        Case::guest("result not aligned", Guest::new("(i32.const 1)"), &["TRAP"]),
        Case::guest("argument of a host call out of range", Guest::new(message_invalid), &["TRAP"]),
        Case::guest("invalid UTF-8", invalid_utf8, &["TRAP"]),
        Case::guest("realloc that returns garbage", Guest::echo().realloc("(i32.const -1)"), &["TRAP"]),
        // In range, so it harms nobody but the guest.
        Case::guest("realloc that returns 0", Guest::echo().realloc("(i32.const 0)"), &["COMPLETED"]),
        Case::guest("enum tag out of range", Guest::new(enum_out_of_range), &["TRAP"]),
        Case::guest(
            "result tag out of range",
            Guest::new("(i32.store8 (i32.const 2048) (i32.const 9)) (i32.const 2048)"),
            &["TRAP"],
        ),
        Case::guest("JSON nested 100,000 deep", deep, &["OUTPUT_INVALID"]),
        Case::guest("output that is not JSON", Guest::returning("not JSON"), &["OUTPUT_INVALID"]),
        Case::task("cut JSON of compiled Rust", "output_invalid", json!({}), &["OUTPUT_INVALID"]),
        Case::guest("error code too long", long_code, &["OUTPUT_INVALID"]),
        Case::task("error without a code, details not JSON", "error_invalid", json!({}), &["OUTPUT_INVALID"]),
        Case::guest("error of 4 MB", large_error, &["OUTPUT_INVALID"]),
        Case::task("panic", "panic", json!({}), &["TRAP"]),
        Case::task("panic with a message of 10 MB", "panic", json!({ "message_bytes": 10_000_000 }), either),
        Case::refused("a list of a million elements of one buffer", Guest::echo().describe(alias).build(), "describe"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_none_end_the_attempt() {
    run_all("values", cases()).await;
}
