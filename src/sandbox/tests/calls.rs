//! What a guest says and is told.

use super::*;
use crate::model::{Origin, code, row::LogLevel};

#[tokio::test]
async fn input_goes_in_and_output_comes_out() {
    let finished = run(&sandbox(), &Guest::echo()).await;
    assert_eq!(finished.outcome.unwrap().as_str(), r#"{"n":1}"#);
    assert_eq!(finished.usage.input_bytes, 7);
    assert_eq!(finished.usage.output_bytes, 7);
    assert_eq!(finished.usage.memory_peak_bytes, 2 * 65536);
    assert_eq!(finished.usage.cpu_ms, 1, "rounded up");
}

#[tokio::test]
async fn what_a_module_describes_is_returned() {
    let sandbox = sandbox();
    let bytes = Bytes::from(Guest::echo().build());
    let inspected = sandbox.inspect(&tenant("a"), bytes.clone()).await.unwrap();
    assert_eq!(inspected.tasks.len(), 1);
    assert_eq!(inspected.tasks[0].name.as_str(), "test");
    assert_eq!(inspected.tasks[0].version.as_str(), "1.0.0");
    let imports = ["types", "log", "attempt", "secrets"].map(|name| format!("sandkeep:task/{name}@0.1.0"));
    assert_eq!(inspected.imports, imports);
    assert!(sandbox.cached(&inspected.digest).is_some());
    let loaded = load(&sandbox, &inspected.digest, bytes).await.unwrap();
    assert_eq!(loaded.digest(), &inspected.digest);
}

#[tokio::test]
async fn a_task_error_is_the_tasks_own() {
    let guest = Guest::new("(call $err (i32.const 4096) (i32.const 12))").data(4096, "OUT_OF_STOCK");
    let failure = run(&sandbox(), &guest).await.outcome.unwrap_err();
    assert_eq!(failure.code, "OUT_OF_STOCK");
    assert_eq!(failure.origin, Origin::Task);
    assert!(failure.retryable);
    let guest = Guest::new("(call $err (i32.const 4096) (i32.const 12))").data(4096, "OUT OF STOCK");
    assert_eq!(code_of(&run(&sandbox(), &guest).await), &code::OUTPUT_INVALID);
}

#[tokio::test]
async fn log_lines_come_with_the_outcome() {
    let guest = Guest::new("(call $say (i32.const 4096) (i32.const 9)) unreachable").data(4096, "one\n\u{1b}[31m");
    let finished = run(&sandbox(), &guest).await;
    assert_eq!(code_of(&finished), &code::TRAP);
    assert_eq!(finished.logs.len(), 1);
    assert_eq!(finished.logs[0].message, "one\\n\\u{1b}[31m");
    assert_eq!(finished.logs[0].level, LogLevel::Info);
    assert_eq!(finished.logs[0].unit.as_str(), "step");
}

#[tokio::test]
async fn a_flood_of_log_lines_is_bounded() {
    let guest = Guest::new(
        "(local $i i32) (loop $l
           (call $say (i32.const 4096) (i32.const 100))
           (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))
         (call $ok (i32.const 4096) (i32.const 2))",
    )
    .data(4096, &format!("{:<100}", "[]"));
    let sandbox = sandbox();
    let module = inspect(&sandbox, &guest).await;
    let finished = sandbox.run(&module, unhurried()).await.unwrap();
    assert!(finished.outcome.is_ok());
    assert!(finished.log_lines_left_out > 0);
    assert_eq!(finished.logs.len() as u64 - 1 + finished.log_lines_left_out, 10_000, "C063");
    let bytes: usize = finished.logs.iter().map(|line| line.message.len()).sum();
    assert!(bytes <= 256 * 1024);
}

#[tokio::test]
async fn one_huge_log_line_is_refused_by_name() {
    let guest = Guest::new("(call $say (i32.const 0) (i32.const 20000000)) unreachable").memory("400");
    let finished = run(&sandbox(), &guest).await;
    assert_eq!(code_of(&finished), &code::PAYLOAD_TOO_LARGE, "C063 {}", message_of(&finished));
}

#[tokio::test]
async fn progress_is_seen_while_and_after_it_runs() {
    let guest = Guest::new(
        "(call $last (i32.const 3000))
         (if (i32.eqz (i32.load (i32.const 3000))) (then unreachable))
         (call $say (i32.load (i32.const 3004)) (i32.load (i32.const 3008)))
         (call $report (i32.const 4096) (i32.const 7))
         (call $report (i32.const 4097) (i32.const 4))
         (call $ok (i32.const 4096) (i32.const 7))",
    )
    .data(4096, r#"{"p":5}"#);
    let sandbox = sandbox();
    let module = inspect(&sandbox, &guest).await;
    let before = Payload::parse(br#"{"p":4}"#).unwrap();
    let attempt = Attempt { progress: Progress::starting_with(Some(before)), ..attempt() };
    let progress = attempt.progress.clone();
    let finished = sandbox.run(&module, attempt).await.unwrap();
    assert_eq!(finished.progress.unwrap().as_str(), r#"{"p":5}"#);
    assert_eq!(progress.last().unwrap().as_str(), r#"{"p":5}"#);
    assert_eq!(finished.logs[0].message, r#"{"p":4}"#);
    assert!(finished.logs[1].message.starts_with("progress not kept"), "{}", finished.logs[1].message);
}

#[tokio::test]
async fn there_are_no_secrets_yet() {
    let guest = Guest::new(
        "(call $secret (i32.const 4096) (i32.const 2) (i32.const 3000))
         (if (i32.eqz (i32.load8_u (i32.const 3000))) (then unreachable))
         (call $say (i32.load (i32.const 3004)) (i32.load (i32.const 3008)))
         (call $ok (i32.const 4096) (i32.const 2))",
    )
    .data(4096, "[]");
    let finished = run(&sandbox(), &guest).await;
    assert!(finished.outcome.is_ok());
    assert!(finished.logs[0].message.contains("no secrets yet"), "{}", finished.logs[0].message);
}

#[tokio::test]
async fn memory_left_dirty_is_zero_for_the_next() {
    let dirty = Guest::new(
        "(memory.fill (i32.const 8192) (i32.const 170) (i32.const 122880)) (call $ok (i32.const 4096) (i32.const 2))",
    )
    .data(4096, "[]");
    let scan = Guest::new(
        "(local $at i32) (local.set $at (i32.const 8192))
         (loop $l
           (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
           (br_if $l (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 65536))))
         (call $ok (i32.const 4096) (i32.const 2))",
    )
    .data(4096, "[]");
    let sandbox = sandbox_with(|config| config.max_concurrent = Some(1));
    let (dirty, scan) = (inspect(&sandbox, &dirty).await, inspect(&sandbox, &scan).await);
    for _ in 0..20 {
        for module in [&dirty, &dirty, &scan] {
            let finished = sandbox.run(module, attempt()).await.unwrap();
            assert!(finished.outcome.is_ok(), "{:?}", finished.outcome);
        }
    }
}

#[tokio::test]
async fn a_panic_of_the_host_fails_the_attempt_alone() {
    let sandbox = sandbox_with(|config| config.clock = std::sync::Arc::new(|| panic!("on purpose")));
    let guest = Guest::new("(call $say (i32.const 4096) (i32.const 2)) unreachable").data(4096, "[]");
    let module = inspect(&sandbox, &guest).await;
    for _ in 0..10 {
        assert_eq!(code_of(&sandbox.run(&module, attempt()).await.unwrap()), &code::INTERNAL);
    }
    assert!(run(&sandbox, &Guest::echo()).await.outcome.is_ok());
    assert_eq!(sandbox.in_use(), (0, 0));
}

#[tokio::test]
async fn an_attempt_that_ended_was_not_cancelled() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::echo()).await;
    let attempt = attempt();
    let cancel = attempt.cancel.clone();
    assert!(sandbox.run(&module, attempt).await.unwrap().outcome.is_ok());
    assert!(!cancel.is_cancelled());
}

#[tokio::test]
async fn a_crowd_waits_for_slots_and_none_fails() {
    let sandbox = sandbox_with(|config| config.threads = 2);
    let module = inspect(&sandbox, &Guest::echo()).await;
    for _ in 0..10 {
        let crowd = (0..200).map(|_| sandbox.run(&module, attempt()));
        for finished in futures_util::future::join_all(crowd).await {
            assert!(finished.unwrap().outcome.is_ok(), "C068 C061");
        }
    }
    assert_eq!(sandbox.in_use(), (0, 0), "C061");
}

#[tokio::test]
async fn instructions_are_counted_where_that_is_asked_for() {
    let counting = sandbox_with(|config| config.count_instructions = true);
    let module = inspect(&counting, &Guest::echo()).await;
    let mut counts = Vec::new();
    for _ in 0..2 {
        counts.push(counting.run(&module, attempt()).await.unwrap().instructions.unwrap());
    }
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
    assert_eq!(run(&sandbox(), &Guest::echo()).await.instructions, None);
    let spinning = inspect(&counting, &Guest::spinning()).await;
    let stopped = counting.run(&spinning, attempt()).await.unwrap();
    assert_eq!(code_of(&stopped), &crate::model::code::CPU_LIMIT);
    assert_eq!(stopped.instructions, None, "it is not known");
}
