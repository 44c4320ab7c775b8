//! Guests that collect handles.

use super::{Case, Guest, run_all};

fn resources() -> Guest {
    let resources = r#"
        (type $resource (resource (rep i32)))
        (core func $new (canon resource.new $resource))
        (core module $maker
          (import "resource" "new" (func $new (param i32) (result i32)))
          (func (export "make") (result i32) (loop $l (drop (call $new (i32.const 7))) (br $l)) unreachable))
        (core instance $maker (instantiate $maker (with "resource" (instance (export "new" (func $new))))))"#;
    Guest::new("(call $make)").component(resources).import("maker", &["make"])
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::guest("resources without end", resources(), &["HANDLE_LIMIT"]),
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
