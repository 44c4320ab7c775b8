//! Guests that wait, print, ask for randomness and exit without measure.

use super::{Case, Guest, run_all};

const OK: &str = "(call $ok (i32.const 4096) (i32.const 2))";

/// A guest with `$random`, which writes where its bytes are.
fn random(body: &str) -> Guest {
    let random = r#"
      (import "wasi:random/random@0.2.0" (instance $random
        (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
      (core func $get-random (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))
      (core instance $randoms (export "random" (func $get-random)))"#;
    Guest::new(body).data(4096, "[]").component(random).import_typed("randoms", &[("random", "(param i64 i32)")])
}

/// A guest that exits well or badly.
fn exiting(status: u32) -> Guest {
    let exit = r#"
      (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
      (core func $exit' (canon lower (func $exit "exit")))
      (core instance $exits (export "exit" (func $exit')))"#;
    Guest::new(&format!("(call $exit (i32.const {status})) unreachable"))
        .component(exit)
        .import_typed("exits", &[("exit", "(param i32)")])
}

/// A guest that prints without end and without a newline.
fn printing() -> Guest {
    let body = "(local $out i32) (local.set $out (call $get-stdout))
        (loop $l (call $print (local.get $out) (i32.const 65536) (i32.const 4096) (i32.const 3000)) (br $l)) unreachable";
    Guest::printing(body).memory("4")
}

pub(super) fn cases() -> Vec<Case> {
    let zero_sleeps = "(local $h i32) (loop $l (local.set $h (call $subscribe-duration (i64.const 0)))
        (call $block (local.get $h)) (call $drop (local.get $h)) (br $l)) unreachable";
    let many_timers = "(loop $l (drop (call $subscribe-duration (i64.const 1000000000000))) (br $l)) unreachable";
    let huge_list = "(local $i i32) (local $h i32) (local.set $h (call $subscribe-duration (i64.const 0)))
        (loop $l (i32.store (i32.add (i32.const 65536) (i32.shl (local.get $i) (i32.const 2))) (local.get $h))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000))))
        (call $poll (i32.const 65536) (i32.const 100000) (i32.const 3000)) unreachable";
    // Instants are nanoseconds: the year 2500 is about 16.7 * 10^18 of them.
    let strange = ["0", "1", "9223372036854775807", "16725225600000000000", "18446744073709551615"]
        .map(|time| format!("(call $drop (call $subscribe-duration (i64.const {time}))) (call $drop (call $subscribe-instant (i64.const {time})))"))
        .concat();
    let last = "(call $block (call $subscribe-instant (i64.const -1))) unreachable";
    let gibibyte = "(call $random (i64.const 1073741824) (i32.const 3000)) unreachable";
    let endless = "(loop $l (call $random (i64.const 65536) (i32.const 3000)) (br $l)) unreachable";
    vec![
        Case::guest("sleeps of no length without end", Guest::with_clock(zero_sleeps), &["TIMEOUT", "CPU_LIMIT"]),
        Case::guest("sleep until the end of time", Guest::with_clock(last), &["TIMEOUT"]),
        Case::guest("timers without end", Guest::with_clock(many_timers), &["HANDLE_LIMIT"]),
        Case::guest("list of 100,000 things to wait for", Guest::with_clock(huge_list).memory("16"), &["HANDLE_LIMIT"]),
        Case::guest(
            "timers at 0, the year 2500 and the largest time",
            Guest::with_clock(&format!("{strange}{OK}")),
            &["COMPLETED"],
        ),
        Case::guest("1 GiB of randomness at once", random(gibibyte), &["TRAP"]),
        Case::guest(
            "randomness without end",
            random(endless).realloc("(i32.const 65536)").memory("4"),
            &["TRAP", "CPU_LIMIT"],
        ),
        Case::guest("printing without end or newline", printing(), &["CPU_LIMIT"]),
        Case::guest("exit with status 0", exiting(0), &["EXITED"]),
        Case::guest("exit with status 1", exiting(1), &["EXITED"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_wait_print_or_exit_without_measure_end() {
    run_all("wasi", cases()).await;
}
