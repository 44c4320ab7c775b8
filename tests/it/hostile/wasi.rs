//! Guests that wait, print, ask for randomness and exit without measure.

use super::{Case, Guest, run_all};

const OK: &str = "(call $ok (i32.const 4096) (i32.const 2))";

const POLL: &str = r#"
  (import "wasi:io/error@0.2.3" (instance $io-error (export "error" (type (sub resource)))))
  (alias export $io-error "error" (type $io-err))
  (import "wasi:io/poll@0.2.3" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable'))"#;

/// A guest with timers: `$after` and `$at` make one, `$block` waits for it, `$wait` for many, `$drop` forgets it.
fn timing(body: &str) -> Guest {
    let clock = r#"
      (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock
        (alias outer 1 $pollable' (type $pollable'))
        (export "pollable" (type $pollable (eq $pollable')))
        (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))
        (export "subscribe-instant" (func (param "when" u64) (result (own $pollable))))))
      (core func $after (canon lower (func $clock "subscribe-duration")))
      (core func $at (canon lower (func $clock "subscribe-instant")))
      (core func $block (canon lower (func $poll "[method]pollable.block")))
      (core func $wait (canon lower (func $poll "poll") (memory $memory) (realloc $realloc)))
      (core func $drop (canon resource.drop $pollable'))
      (core instance $timers (export "after" (func $after)) (export "at" (func $at)) (export "block" (func $block))
        (export "wait" (func $wait)) (export "drop" (func $drop)))"#;
    let functions = [
        ("after", "(param i64) (result i32)"),
        ("at", "(param i64) (result i32)"),
        ("block", "(param i32)"),
        ("wait", "(param i32 i32 i32)"),
        ("drop", "(param i32)"),
    ];
    Guest::new(body).data(4096, "[]").component(&format!("{POLL}{clock}")).import_typed("timers", &functions)
}

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
    let streams = r#"
      (import "wasi:io/streams@0.2.3" (instance $streams
        (export "output-stream" (type $stream (sub resource)))
        (alias outer 1 $io-err (type $io-err))
        (export "error" (type $error (eq $io-err)))
        (type $stream-error' (variant (case "last-operation-failed" (own $error)) (case "closed")))
        (export "stream-error" (type $stream-error (eq $stream-error')))
        (export "[method]output-stream.blocking-write-and-flush"
          (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
      (alias export $streams "output-stream" (type $stream'))
      (import "wasi:cli/stdout@0.2.3" (instance $stdout
        (alias outer 1 $stream' (type $stream')) (export "output-stream" (type $stream (eq $stream')))
        (export "get-stdout" (func (result (own $stream))))))
      (core func $stdout' (canon lower (func $stdout "get-stdout")))
      (core func $print (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
        (memory $memory) (realloc $realloc)))
      (core instance $stdio (export "stdout" (func $stdout')) (export "print" (func $print)))"#;
    let body = "(local $out i32) (local.set $out (call $stdout))
        (loop $l (call $print (local.get $out) (i32.const 65536) (i32.const 4096) (i32.const 3000)) (br $l)) unreachable";
    Guest::new(body)
        .memory("4")
        .component(&format!("{POLL}{streams}"))
        .import_typed("stdio", &[("stdout", "(result i32)"), ("print", "(param i32 i32 i32 i32)")])
}

pub(super) fn cases() -> Vec<Case> {
    let zero_sleeps = "(local $h i32) (loop $l (local.set $h (call $after (i64.const 0)))
        (call $block (local.get $h)) (call $drop (local.get $h)) (br $l)) unreachable";
    let many_timers = "(loop $l (drop (call $after (i64.const 1000000000000))) (br $l)) unreachable";
    let huge_list = "(local $i i32) (local $h i32) (local.set $h (call $after (i64.const 0)))
        (loop $l (i32.store (i32.add (i32.const 65536) (i32.shl (local.get $i) (i32.const 2))) (local.get $h))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000))))
        (call $wait (i32.const 65536) (i32.const 100000) (i32.const 3000)) unreachable";
    // Instants are nanoseconds: the year 2500 is about 16.7 * 10^18 of them.
    let strange = ["0", "1", "9223372036854775807", "16725225600000000000", "18446744073709551615"]
        .map(|time| format!("(call $drop (call $after (i64.const {time}))) (call $drop (call $at (i64.const {time})))"))
        .concat();
    let last = "(call $block (call $at (i64.const -1))) unreachable";
    let gibibyte = "(call $random (i64.const 1073741824) (i32.const 3000)) unreachable";
    let endless = "(loop $l (call $random (i64.const 65536) (i32.const 3000)) (br $l)) unreachable";
    vec![
        Case::guest("sleeps of no length without end", timing(zero_sleeps), &["TIMEOUT", "CPU_LIMIT"]),
        Case::guest("sleep until the end of time", timing(last), &["TIMEOUT"]),
        Case::guest("timers without end", timing(many_timers), &["HANDLE_LIMIT"]),
        Case::guest("list of 100,000 things to wait for", timing(huge_list).memory("16"), &["HANDLE_LIMIT"]),
        Case::guest(
            "timers at 0, the year 2500 and the largest time",
            timing(&format!("{strange}{OK}")),
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
