//! Guests that want all memory, or what another left in it.

use serde_json::json;

use super::{
    Case, Guest, Harness,
    case::{Made, workflow},
    harness::{attack, attempt_ms, push},
};

/// A guest that grows two memories of which either fits alone.
fn summed() -> Guest {
    let more = r#"(core module $more (memory 1) (func (export "grow") (result i32) (memory.grow (i32.const 600))))
        (core instance $one (instantiate $more)) (core instance $two (instantiate $more))
        (core instance $more (export "one" (func $one "grow")) (export "two" (func $two "grow")))"#;
    let run = "(if (i32.eq (call $one) (i32.const -1)) (then (drop (i32.div_u (i32.const 1) (i32.const 0)))))
        (if (i32.eq (call $two) (i32.const -1)) (then unreachable))
        (call $ok (i32.const 4096) (i32.const 2))";
    Guest::new(run).data(4096, "[]").component(more).import("more", &["one", "two"])
}

/// A guest that writes to all of its memory and leaves it so.
fn dirty() -> Guest {
    let run =
        "(memory.fill (i32.const 8192) (i32.const 170) (i32.const 8380416)) (call $ok (i32.const 4096) (i32.const 2))";
    Guest::new(run).data(4096, "[]").memory("128")
}

/// A guest that traps where a byte of its memory is not zero. It grows the memory first, because a slot keeps what was
/// grown, too.
fn scan() -> Guest {
    let run = "(local $at i32) (local.set $at (i32.const 131072))
        (drop (memory.grow (i32.const 64)))
        (loop $l
          (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
          (br_if $l (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 4194304))))
        (call $ok (i32.const 4096) (i32.const 2))";
    Guest::new(run).data(4096, "[]")
}

/// An upload whose core module has this in it.
fn with_module(definitions: &str) -> Vec<u8> {
    let module = format!("(core module $n {definitions}) (core instance (instantiate $n))");
    Guest::echo().component(&module).build()
}

pub(super) fn cases() -> Vec<Case> {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    let grow_table =
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable";
    let table_at_once = "(drop (table.grow $t (ref.null func) (i32.const 100000000))) unreachable";
    let at_once = "(drop (memory.grow (i32.const 65536))) unreachable";
    let table = "(table $t 1 funcref)";
    vec![
        Case::guest("one memory grows for ever", Guest::new(grow), &["MEMORY_LIMIT"]),
        Case::guest("4 GiB at once", Guest::new(at_once), &["MEMORY_LIMIT"]),
        Case::task("compiled Rust takes memory for ever", "eat", json!({}), &["MEMORY_LIMIT"]),
        Case::guest("many memories under the single limit", summed(), &["MEMORY_LIMIT"]),
        Case::guest("a table grows for ever", Guest::new(grow_table).define(table), &["MEMORY_LIMIT"]),
        Case::guest("100 million table entries at once", Guest::new(table_at_once).define(table), &["MEMORY_LIMIT"]),
        Case::refused("4 GiB at the start", with_module("(memory 65536)"), "bytes of linear memory"),
        Case::refused("10 million table entries at the start", with_module("(table 10000000 funcref)"), "10000000"),
    ]
}

/// The case that takes two guests.
pub(super) fn own_cases() -> Vec<Case> {
    vec![Case::own("memory left dirty is scanned by the next", "all zero")]
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_take_memory_end() {
    let mut harness = Harness::start("memory", &[]).await;
    for case in cases() {
        harness.run(case).await;
    }
    let client = harness.client.clone();
    let [case] = <[Case; 1]>::try_from(own_cases()).ok().expect("there is one");
    harness
        .own(case, async |_| {
            let scans = push(&client, "scan", scan()).await;
            client.register(&workflow("scan", &scans, 1, attempt_ms())).await;
            let dirties = push(&client, "dirty", dirty()).await;
            client.register(&workflow("dirty", &dirties, 1, attempt_ms())).await;
            for round in 0..3 {
                // As many at once as there are slots, so that each is left dirty and each is looked at.
                for what in ["dirty", "scan"] {
                    let ids: Vec<String> = (0..8).map(|slot| format!("{what}-{round}-{slot}")).collect();
                    for id in &ids {
                        client.start(what, id, json!({})).await;
                    }
                    for id in &ids {
                        let state = client.wait(id).await;
                        assert_eq!(state["status"], "COMPLETED", "{state}");
                    }
                }
            }
            "all zero".to_owned()
        })
        .await;
    // What was refused once leaves room for the next.
    assert_eq!(attack(&client, "after", Made::Text(Guest::echo()), 1).await.ended, "COMPLETED");
}
