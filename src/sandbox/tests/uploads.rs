//! What is not accepted, and what is said about it.

use super::*;

/// Checks that `bytes` are refused with a sentence that holds each of `parts`.
async fn check(sandbox: &Sandbox, bytes: Vec<u8>, parts: &[&str]) {
    let refused = inspect_bytes(sandbox, bytes).await.unwrap_err().to_string();
    for part in parts {
        assert!(refused.contains(part), "`{part}` is not in: {refused}");
    }
}

#[tokio::test]
async fn files_of_another_kind_are_refused_by_name() {
    let sandbox = sandbox();
    let whole = Guest::echo().build();
    let half = whole[..whole.len() / 2].to_vec();
    let garbage = [&whole[..8], &[0xff; 100]].concat();
    for (bytes, parts) in [
        (vec![], &["empty"][..]),
        (wat::parse_str("(module)").unwrap(), &["core module", "component new"]),
        (b"\x7fELF".to_vec(), &["ELF", "never accepted"]),
        (b"(component)".to_vec(), &["WebAssembly as text", "wasm-tools parse"]),
        (b"#!/bin/sh".to_vec(), &["text file"]),
        (b"\x1f\x8b\x08".to_vec(), &["gzip", "unpack"]),
        (b"PK\x03\x04".to_vec(), &["zip", "unpack"]),
        (b"\0asm".to_vec(), &["cut off", "whole file"]),
        (half, &["cut off", "whole file"]),
        (garbage, &["not valid"]),
    ] {
        check(&sandbox, bytes, parts).await;
    }
}

#[tokio::test]
async fn a_cut_component_is_refused_for_what_it_is() {
    let sandbox = sandbox();
    let whole = Guest::echo().build();
    for length in (0..whole.len()).step_by(37) {
        // A cut before the names of functions, which come last, leaves a whole component.
        let Err(refused) = inspect_bytes(&sandbox, whole[..length].to_vec()).await else { continue };
        let expected = matches!(refused, Rejected::Empty | Rejected::Truncated { .. } | Rejected::World { .. });
        assert!(expected, "{length} bytes: {refused}");
    }
}

#[tokio::test]
async fn an_upload_past_the_limit_is_refused() {
    let sandbox = sandbox_with(|config| config.module.size_bytes = 100);
    check(&sandbox, Guest::echo().build(), &["the limit is 100"]).await;
}

#[tokio::test]
async fn features_that_are_off_are_named() {
    let sandbox = sandbox();
    for (definitions, name) in [
        ("(memory i64 1)", "memory64"),
        ("(memory 1 1 shared)", "threads"),
        ("(func (return_call 0))", "tail-call"),
        ("(func (param externref))", "garbage-collected"),
        ("(type (struct))", "gc"),
        ("(func (param (ref func)))", "function-references"),
        ("(tag)", "exceptions"),
        ("(memory 1) (memory 1)", "multi-memory"),
        ("(func (param v128) (result v128) (i32x4.relaxed_trunc_f32x4_s (local.get 0)))", "relaxed-simd"),
        ("(memory 1 (pagesize 1))", "custom-page-sizes"),
        ("(func (param i64 i64) (drop (i64.mul_wide_u (local.get 0) (local.get 1))) drop)", "wide-arithmetic"),
    ] {
        let text = format!("(component (core module {definitions}))");
        check(&sandbox, wat::parse_str(&text).unwrap(), &[name, "build it without"]).await;
    }
    let text = "(component (type (stream u8)))";
    check(&sandbox, wat::parse_str(text).unwrap(), &["component-model-async"]).await;
}

#[tokio::test]
async fn structures_past_a_limit_are_refused_with_need_and_limit() {
    let sandbox = sandbox();
    let instances = "(core instance (instantiate $n))".repeat(200);
    for (component, parts) in [
        (format!("(core module $n) {instances}"), &["202 core instances", "limit is 32"][..]),
        ("(core module $n (memory 65536)) (core instance (instantiate $n))".to_owned(), &["bytes of linear memory"]),
        (
            "(core module $n (table 10000000 funcref)) (core instance (instantiate $n))".to_owned(),
            &["10000000 elements"],
        ),
        (
            format!("(core module $n (memory 0)) {}", "(core instance (instantiate $n))".repeat(4)),
            &["5 linear memories", "limit is 4"],
        ),
        (
            format!("(core module $n (table 1 funcref)) {}", "(core instance (instantiate $n))".repeat(9)),
            &["9 tables", "limit is 8"],
        ),
        ("(component)".repeat(65), &["65 nested components"]),
    ] {
        check(&sandbox, Guest::echo().component(&component).build(), parts).await;
    }
}

#[tokio::test]
async fn a_component_of_another_world_is_told_the_difference() {
    let sandbox = sandbox();
    let echo = Guest::echo().text();
    let wrong_result = r#"(component
        (core module $m (func (export "run") (result i32) (i32.const 0)))
        (core instance $m (instantiate $m))
        (func (export "run") (result u32) (canon lift (core func $m "run")))
        (func (export "describe") (result u32) (canon lift (core func $m "run"))))"#;
    for (text, parts) in [
        ("(component)".to_owned(), &["does not export `describe`", "does not export `run`", "wit/task.wit"][..]),
        (echo.replace(r#"(export "run") (param "task""#, r#"(export "go") (param "task""#), &["does not export `run`"]),
        (
            wrong_result.to_owned(),
            &["`run` is `func() -> u32` and not `func(task: string", "`describe` is `func() -> u32`"],
        ),
        (
            r#"(component (import "wasi:cli/environment@0.3.0" (instance)))"#.to_owned(),
            &["imports `wasi:cli/environment@0.3.0`", "wasm32-wasip2"],
        ),
        (r#"(component (import "own" (func)))"#.to_owned(), &["imports `own`", "not offered"]),
        (echo.replace("task/log@0.1.0", "task/log@0.2.0"), &["sandkeep:task/log@0.2.0", "in this version"]),
        (
            echo.replace(r#""cancelled" (func (result bool))"#, r#""cancelled" (func (result u64))"#)
                .replace("(func $cancelled (result i32))", "(func $cancelled (result i64))"),
            &["cancelled"],
        ),
        (
            echo.replace(
                r#"(export "cancelled" (func (result bool)))"#,
                r#"(export "cancelled" (func (result bool))) (export "other" (func))"#,
            ),
            &["other"],
        ),
    ] {
        check(&sandbox, wat::parse_str(&text).unwrap(), parts).await;
    }
}

#[tokio::test]
async fn a_module_that_cannot_describe_itself_is_refused() {
    let sandbox = sandbox_with(|config| config.module.describe_cpu = Millis(30));
    for (describe, parts) in [
        ("unreachable", &["`describe` ended with TRAP"][..]),
        ("(loop $l (br $l)) unreachable", &["`describe` ended with CPU_LIMIT"]),
        ("(i32.store (i32.const 1028) (i32.const 0)) (i32.const 1024)", &["there is none"]),
        ("(i32.store (i32.const 1028) (i32.const 1000000)) (i32.const 1024)", &["`describe` ended with"]),
        ("(i32.store8 (i32.const 1280) (i32.const 65)) (i32.const 1024)", &["task name"]),
        ("(i32.store8 (i32.const 1296) (i32.const 65)) (i32.const 1024)", &["contract version"]),
    ] {
        check(&sandbox, Guest::echo().describe(describe).build(), parts).await;
    }
}

#[tokio::test]
async fn describing_has_a_limit_on_the_wall() {
    let sandbox = sandbox_with(|config| {
        config.module.describe_cpu = Millis(600_000);
        config.module.describe_wall = Millis(30);
    });
    let spinning = Guest::echo().describe("(loop $l (br $l)) unreachable");
    check(&sandbox, spinning.build(), &["`describe` ended with TIMEOUT"]).await;
}

#[tokio::test]
async fn a_module_of_too_many_tasks_is_refused() {
    let sandbox = sandbox_with(|config| config.module.tasks = 2);
    // The list of one task three times over.
    let three = "(memory.copy (i32.const 8192) (i32.const 1040) (i32.const 52))
        (memory.copy (i32.const 8244) (i32.const 1040) (i32.const 52))
        (memory.copy (i32.const 8296) (i32.const 1040) (i32.const 52))
        (i32.store (i32.const 8192) (i32.load (i32.const 1040)))
        (i32.store (i32.const 1024) (i32.const 8192)) (i32.store (i32.const 1028) (i32.const 3)) (i32.const 1024)";
    check(&sandbox, Guest::echo().describe(three).build(), &["there are 3, the limit is 2"]).await;
}

#[tokio::test]
async fn bytes_that_changed_since_are_not_loaded() {
    let sandbox = sandbox();
    let digest = crate::model::Digest::of(b"others");
    let refused = load(&sandbox, &digest, Bytes::from(Guest::echo().build())).await.unwrap_err();
    assert!(refused.to_string().contains("do not match"));
    assert!(sandbox.cached(&digest).is_none());
}

#[tokio::test]
async fn the_cache_keeps_what_was_used_last() {
    let sandbox = sandbox_with(|config| config.cache_bytes = 1);
    let first = inspect(&sandbox, &Guest::echo()).await;
    let second = inspect(&sandbox, &Guest::returning("[]")).await;
    assert!(sandbox.cached(first.digest()).is_none());
    assert!(sandbox.cached(second.digest()).is_some());
    assert!(sandbox.run(&first, attempt()).await.unwrap().outcome.is_ok(), "who holds a module can use it");
}

#[tokio::test]
async fn callers_at_a_time_share_one_compile() {
    let sandbox = sandbox();
    let bytes = Bytes::from(Guest::echo().build());
    let digest = crate::model::Digest::of(&bytes);
    let loads = (0..50).map(|_| load(&sandbox, &digest, bytes.clone()));
    let modules: Vec<Module> = futures_util::future::join_all(loads).await.into_iter().map(Result::unwrap).collect();
    assert!(modules.iter().all(|module| module.is_same(&modules[0])));
}
