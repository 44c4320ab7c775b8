//! Every limit is hit, and says so with its own code.

use super::*;
use crate::model::code;

/// Checks the code of `guest`, that its message holds `part`, and that the sandbox serves on.
async fn check(guest: Guest, code: &str, part: &str) {
    let sandbox = sandbox();
    let finished = run(&sandbox, &guest).await;
    assert_eq!(code_of(&finished).as_str(), code, "{}", message_of(&finished));
    assert!(message_of(&finished).contains(part), "{}", message_of(&finished));
    assert!(run(&sandbox, &Guest::echo()).await.outcome.is_ok());
}

/// Makes a module without asking it to describe itself.
async fn load(sandbox: &Sandbox, guest: &Guest) -> Module {
    let bytes = guest.build();
    super::load(sandbox, &crate::model::Digest::of(&bytes), Bytes::from(bytes)).await.unwrap()
}

#[tokio::test]
async fn an_endless_loop_spends_its_time() {
    check(Guest::spinning(), code::CPU_LIMIT, "100ms").await;
}

#[tokio::test]
async fn an_endless_start_spends_its_time() {
    let sandbox = sandbox();
    let module = load(&sandbox, &Guest::echo().define("(func $start (loop $l (br $l))) (start $start)")).await;
    let finished = sandbox.run(&module, attempt()).await.unwrap();
    assert_eq!(code_of(&finished), &code::CPU_LIMIT, "C058");
    assert!(finished.usage.cpu_ms >= 100);
}

#[tokio::test]
async fn an_endless_realloc_spends_its_time() {
    let guest = Guest::echo().realloc("(loop $l (br $l)) unreachable");
    check(guest, code::CPU_LIMIT, "").await;
}

#[tokio::test]
async fn an_endless_fill_spends_its_time() {
    let body = "(loop $l (memory.fill (i32.const 65536) (i32.const 1) (i32.const 20000000)) (br $l)) unreachable";
    check(Guest::new(body).memory("400"), code::CPU_LIMIT, "").await;
}

#[tokio::test]
async fn memory_that_grows_for_ever_is_refused() {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    check(Guest::new(grow), code::MEMORY_LIMIT, "67108864").await;
    let at_once = "(drop (memory.grow (i32.const 65536))) unreachable";
    check(Guest::new(at_once), code::MEMORY_LIMIT, "memory").await;
}

#[tokio::test]
async fn memories_are_limited_by_their_sum() {
    check(summed(600), code::MEMORY_LIMIT, "in all").await;
    assert!(super::run(&sandbox(), &summed(400)).await.outcome.is_ok());
}

/// A guest that grows two memories by `pages` each; either fits alone.
fn summed(pages: u32) -> Guest {
    let module = format!(
        r#"(core module $more (memory 1) (func (export "grow") (result i32) (memory.grow (i32.const {pages}))))
           (core instance $one (instantiate $more)) (core instance $two (instantiate $more))
           (core instance $more (export "one" (func $one "grow")) (export "two" (func $two "grow")))"#
    );
    let run = "(if (i32.eq (call $one) (i32.const -1)) (then (drop (i32.div_u (i32.const 1) (i32.const 0)))))
               (if (i32.eq (call $two) (i32.const -1)) (then unreachable))
               (call $ok (i32.const 4096) (i32.const 2))";
    Guest::new(run).data(4096, "[]").component(&module).import("more", &["one", "two"])
}

#[tokio::test]
async fn tables_that_grow_for_ever_are_refused() {
    let grow =
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable";
    check(Guest::new(grow).define("(table $t 1 funcref)"), code::MEMORY_LIMIT, "table").await;
    let at_once = "(drop (table.grow $t (ref.null func) (i32.const 100000000))) unreachable";
    check(Guest::new(at_once).define("(table $t 1 funcref)"), code::MEMORY_LIMIT, "100000001").await;
}

#[tokio::test]
async fn handles_without_end_are_refused() {
    check(Guest::hoarding(), code::HANDLE_LIMIT, "10000").await;
}

#[tokio::test]
async fn a_module_as_large_as_it_may_be_runs() {
    let most = format!(
        "(core module $plain) (core module $memory (memory 1)) (core module $tables (table 4 funcref) (table 20000 funcref)) {}{}{}",
        "(core instance (instantiate $plain))".repeat(23),
        "(core instance (instantiate $memory))".repeat(3),
        "(core instance (instantiate $tables))".repeat(4),
    );
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::returning("[]").component(&most)).await;
    let crowd = (0..20).map(|_| sandbox.run(&module, attempt()));
    for finished in futures_util::future::join_all(crowd).await {
        assert_eq!(finished.unwrap().outcome.unwrap().as_str(), "[]", "C068");
    }
}

#[tokio::test]
async fn a_refusal_that_the_guest_handles_is_no_failure() {
    let guest =
        Guest::new("(drop (memory.grow (i32.const 65000))) (call $ok (i32.const 4096) (i32.const 2))").data(4096, "[]");
    assert!(run(&sandbox(), &guest).await.outcome.is_ok());
}

#[tokio::test]
async fn traps_say_their_kind() {
    let recursion = "(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))";
    for (guest, kind) in [
        (Guest::new("unreachable"), "unreachable"),
        (Guest::new("(i32.div_u (i32.const 1) (i32.const 0))"), "integer divide by zero"),
        (Guest::new("(call $deeper (i32.const 0))").define(recursion), "stack overflow"),
        (Guest::new("(i32.load (i32.const -8))"), "out of bounds memory access"),
        (
            Guest::new("(call_indirect $t (result i32) (i32.const 5))").define("(table $t 1 funcref)"),
            "undefined element",
        ),
    ] {
        check(guest, code::TRAP, kind).await;
    }
}

#[tokio::test]
async fn a_deep_guest_may_still_call_the_host() {
    let recursion = "(func $deeper (param i32) (result i32)
        (call $say (i32.const 4096) (i32.const 3)) (i32.add (i32.const 1) (call $deeper (local.get 0))))";
    let guest = Guest::new("(call $deeper (i32.const 0))").define(recursion).data(4096, "hey");
    check(guest, code::TRAP, "stack overflow").await;
}

#[tokio::test]
async fn values_out_of_range_are_traps() {
    for guest in [
        Guest::new("(call $ok (i32.const -16) (i32.const 8))"),
        Guest::new("(call $ok (i32.const 4096) (i32.const 2))").define("(data (i32.const 4096) \"\\ff\\fe\")"),
        Guest::new("(i32.const -4)"),
        Guest::new("(i32.const 1)"),
        Guest::new("(i32.store8 (i32.const 2048) (i32.const 9)) (i32.const 2048)"),
        Guest::echo().realloc("(i32.const -1)"),
        Guest::new("(call $say (i32.const -16) (i32.const 8)) unreachable"),
        Guest::new(
            "(call $write (i32.const 77) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) unreachable",
        ),
    ] {
        check(guest, code::TRAP, "").await;
    }
}

#[tokio::test]
async fn outputs_keep_their_rule() {
    check(Guest::returning("not JSON"), code::OUTPUT_INVALID, "not JSON").await;
    check(Guest::returning(&"[".repeat(100_000)).memory("4"), code::OUTPUT_INVALID, "nested").await;
    let mebibyte = "(call $ok (i32.const 0) (i32.const 1048577))";
    check(Guest::new(mebibyte).memory("400"), code::PAYLOAD_TOO_LARGE, "1048577").await;
    let much = "(call $ok (i32.const 0) (i32.const 20000000))";
    check(Guest::new(much).memory("400"), code::PAYLOAD_TOO_LARGE, "8388608").await;
}

#[tokio::test]
async fn a_large_input_never_reaches_the_module() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::echo()).await;
    let limits = Limits { input_bytes: 6, ..Limits::default() };
    let finished = sandbox.run(&module, Attempt { limits, ..attempt() }).await.unwrap();
    assert_eq!(code_of(&finished), &code::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn wall_time_ends_what_processor_time_does_not() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::spinning()).await;
    let finished = sandbox.run(&module, Attempt { wall: Millis(30), ..unhurried() }).await.unwrap();
    assert_eq!(code_of(&finished), &code::TIMEOUT);
    assert!(finished.usage.wall_ms >= 28, "{:?}", finished.usage);
}

/// A guest that spins once it has reported progress, by which a test knows that it runs.
fn reporting_then_spinning() -> Guest {
    Guest::new("(call $report (i32.const 4096) (i32.const 2)) (loop $l (br $l)) unreachable").data(4096, "[]")
}

#[tokio::test]
async fn cancelling_ends_a_running_guest() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &reporting_then_spinning()).await;
    let attempt = unhurried();
    let (cancel, progress) = (attempt.cancel.clone(), attempt.progress.clone());
    let cancelling = async {
        while progress.last().is_none() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (finished, ()) = tokio::join!(sandbox.run(&module, attempt), cancelling);
    assert_eq!(code_of(&finished.unwrap()), &code::CANCELLED);
}

#[tokio::test]
async fn what_is_cancelled_before_it_runs_does_not_run() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::spinning()).await;
    let attempt = attempt();
    attempt.cancel.cancel();
    let finished = sandbox.run(&module, attempt).await.unwrap();
    assert_eq!(code_of(&finished), &code::CANCELLED);
    assert_eq!(finished.usage.cpu_ms, 0);
}

#[tokio::test]
async fn a_dropped_call_gives_its_slot_back() {
    let sandbox = sandbox_with(|config| config.max_concurrent = Some(1));
    let spinning = inspect(&sandbox, &Guest::spinning()).await;
    let echo = inspect(&sandbox, &Guest::echo()).await;
    for _ in 0..5 {
        let call = sandbox.run(&spinning, unhurried());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(5), call).await.is_err());
        assert!(sandbox.run(&echo, attempt()).await.unwrap().outcome.is_ok());
    }
}

#[tokio::test]
async fn shutdown_is_no_outcome() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &reporting_then_spinning()).await;
    let attempt = unhurried();
    let progress = attempt.progress.clone();
    let closing = async {
        while progress.last().is_none() {
            tokio::task::yield_now().await;
        }
        sandbox.shutdown();
    };
    let (ended, ()) = tokio::join!(sandbox.run(&module, attempt), closing);
    assert_eq!(ended.unwrap_err(), crate::sandbox::Closed);
    assert!(sandbox.run(&module, super::attempt()).await.is_err());
    assert_eq!(inspect_bytes(&sandbox, Guest::echo().build()).await.unwrap_err(), Rejected::Closed);
}
