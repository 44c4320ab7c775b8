//! Guests that collect handles.

use super::{Case, Guest, run_all};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::guest("resources without end", Guest::hoarding(), &["HANDLE_LIMIT"]),
        Case::guest(
            "secrets asked for without end",
            Guest::new("(loop $l (call $secret (i32.const 4096) (i32.const 2) (i32.const 3000)) (br $l)) unreachable"),
            &["CPU_LIMIT", "TRAP", "MEMORY_LIMIT"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_collect_handles_end() {
    run_all("handles", cases()).await;
}
