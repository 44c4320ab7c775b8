//! Uploads that are no modules, or are made to cost the server more than they are worth.

use super::{
    Case, Guest, Harness,
    harness::{real, upload},
    machine,
};
use crate::support::scale;

/// What a compile may need at most beside what is there.
const COMPILE_BYTES_MAX: u64 = 1 << 30;

fn nested_types(depth: usize) -> String {
    let mut text = "(component (type $t0 (list u8))".to_owned();
    for level in 1..depth {
        let inner = level - 1;
        text += &format!("(type $t{level} (list $t{inner}))");
    }
    text + ")"
}

/// Types of which each means the one before it twice.
fn doubled_types(depth: usize) -> String {
    let mut text = "(component (type $t0 (tuple u8 u8))".to_owned();
    for level in 1..depth {
        let inner = level - 1;
        text += &format!("(type $t{level} (tuple $t{inner} $t{inner}))");
    }
    text + ")"
}

/// Components in components.
fn nested_components(depth: usize) -> Vec<u8> {
    // By hand, because the text's parser recurses: a component section holds the whole component within.
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    for _ in 0..depth {
        let mut outer = b"\0asm\x0d\0\x01\0\x04".to_vec();
        leb(&mut outer, bytes.len());
        outer.extend(&bytes);
        bytes = outer;
    }
    bytes
}

fn leb(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

fn files() -> Vec<Case> {
    let whole = real("hello");
    let core = wat::parse_str("(module)").unwrap();
    let garbage = [&whole[..8], &[0xff; 4096]].concat();
    let changed = whole.iter().enumerate().map(|(at, byte)| if at % 997 == 996 { !byte } else { *byte }).collect();
    let gzip = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03".as_slice(), &whole[..100]].concat();
    vec![
        Case::refused("nothing", Vec::new(), "empty"),
        Case::refused("core module", core, "core module"),
        Case::refused("native program", std::fs::read("/proc/self/exe").unwrap()[..65_536].to_vec(), "ELF"),
        Case::refused("precompiled artefact", b"\x7fELF\x02\x01\x01\xc8".to_vec(), "precompiled"),
        Case::refused("truncated", whole[..whole.len() / 2].to_vec(), "cut off"),
        Case::refused("garbage after the magic number", garbage, "not valid"),
        Case::refused("bytes changed", changed, "component"),
        Case::refused("gzip", gzip, "gzip"),
        Case::refused("text", b"(component)".to_vec(), "WebAssembly as text"),
    ]
}

fn structures() -> Vec<Case> {
    let instances = |count| format!("(core module $n) {}", "(core instance (instantiate $n))".repeat(count));
    let memories = format!("(core module $n (memory 1)) {}", "(core instance (instantiate $n))".repeat(8));
    let tables = format!("(core module $n (table 1 funcref)) {}", "(core instance (instantiate $n))".repeat(16));
    let echo = |component: &str| Guest::echo().component(component).build();
    vec![
        Case::refused("1,000 nested components side by side", echo(&"(component)".repeat(1_000)), "nested components"),
        Case::refused("1,000 components in one another", nested_components(1_000), "component"),
        Case::refused("900 core instances", echo(&instances(900)), "core instances"),
        Case::refused("instances that double 40 times", echo(&doubled_instances(40)), "core instances"),
        Case::refused("more memories than a component may have", echo(&memories), "linear memories"),
        Case::refused("more tables than a component may have", echo(&tables), "tables"),
        Case::refused_text("types nested 1,000 deep", &nested_types(1_000), "component"),
        Case::refused_text("types that double 60 times", &doubled_types(60), "component"),
    ]
}

/// Components of which each instantiates the one before it twice.
fn doubled_instances(levels: usize) -> String {
    let mut text = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..levels {
        let inner = level - 1;
        text += &format!(
            "(component $c{level} (alias outer 1 $c{inner} (component $c))
                (instance (instantiate $c)) (instance (instantiate $c)))"
        );
    }
    format!("{text} (instance (instantiate $c{}))", levels - 1)
}

fn worlds() -> Vec<Case> {
    let echo = Guest::echo().text();
    let wrong_type = echo
        .replace(r#""cancelled" (func (result bool))"#, r#""cancelled" (func (result u64))"#)
        .replace("(func $cancelled (result i32))", "(func $cancelled (result i64))");
    vec![
        Case::refused_text("unknown import", r#"(component (import "own:own/own@1.0.0" (instance)))"#, "own:own/own"),
        Case::refused_text("component of another world", "(component)", "does not export"),
        Case::refused_text("wrong type of an import", &wrong_type, "cancelled"),
        Case::refused_text(
            "wrong type of an export",
            r#"(component
                (core module $m (func (export "run") (result i32) (i32.const 0)))
                (core instance $m (instantiate $m))
                (func (export "run") (result u32) (canon lift (core func $m "run")))
                (func (export "describe") (result u32) (canon lift (core func $m "run"))))"#,
            "is `func() -> u32` and not",
        ),
    ]
}

fn features() -> Vec<Case> {
    let core = |name, definitions: &str, part| {
        Case::refused_text(name, &format!("(component (core module {definitions}))"), part)
    };
    vec![
        core("feature: memory64", "(memory i64 1)", "memory64"),
        core("feature: threads", "(memory 1 1 shared)", "threads"),
        core("feature: tail calls", "(func (return_call 0))", "tail-call"),
        core("feature: garbage-collected references", "(func (param externref))", "garbage-collected"),
        core("feature: garbage collection", "(type (struct))", "gc"),
        core("feature: function references", "(func (param (ref func)))", "function-references"),
        core("feature: exceptions", "(tag)", "exceptions"),
        core("feature: several memories in a module", "(memory 1) (memory 1)", "multi-memory"),
        core(
            "feature: relaxed SIMD",
            "(func (param v128) (result v128) (i32x4.relaxed_trunc_f32x4_s (local.get 0)))",
            "relaxed-simd",
        ),
        core("feature: pages of other sizes", "(memory 1 (pagesize 1))", "custom-page-sizes"),
        core(
            "feature: wide arithmetic",
            "(func (param i64 i64) (drop (i64.mul_wide_u (local.get 0) (local.get 1))) drop)",
            "wide-arithmetic",
        ),
        Case::refused_text(
            "feature: asynchronous components",
            "(component (type (stream u8)))",
            "component-model-async",
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [files(), structures(), worlds(), features()].into_iter().flatten().collect()
}

/// What makes a component that is long to compile.
type Bomb = fn() -> Guest;

/// Components that are small or honest in size and long to compile.
fn bombs() -> [(&'static str, Bomb); 4] {
    [
        ("branch maze", branch_maze),
        ("many loads", many_loads),
        ("10,000 locals", many_locals),
        ("one body of 7 MB", one_body),
    ]
}

pub(super) fn own_cases() -> Vec<Case> {
    bombs().into_iter().map(|(name, _)| Case::own(name, "ready, or refused in time")).collect()
}

/// Blocks in blocks, and branches from each to any other, with other values for hundreds of locals.
fn branch_maze() -> Guest {
    let (depth, locals) = (400, 400);
    let mut body = "(block ".repeat(depth);
    for at in 0..8_000_usize {
        let (to, from) = (at * 31 % locals, at * 17 % locals);
        body += &format!("(local.set {to} (i32.add (local.get {to}) (local.get {from})))");
        body += &format!("(br_if {} (local.get {from}))", at * 7919 % depth);
    }
    body += &")".repeat(depth);
    Guest::echo().define(&format!("(func (param {}) {body})", "i32 ".repeat(locals)))
}

/// Loads that are all alive at once.
fn many_loads() -> Guest {
    let count = 60_000;
    let loads: String = (0..count).map(|at| format!("local.get $i i32.load offset={} ", at * 4)).collect();
    let adds = "i32.add ".repeat(count - 1);
    Guest::echo().define(&format!("(func $loads (param $i i32) (result i32) {loads} {adds})"))
}

/// Locals that live through all of a loop.
fn many_locals() -> Guest {
    let count = 10_000;
    let sets: String =
        (0..count).map(|at| format!("(local.set {} (local.get {}))", at, (at * 31 + 7) % count)).collect();
    Guest::echo().define(&format!("(func (local {}) (loop $l {sets} (br_if $l (local.get 0))))", "i32 ".repeat(count)))
}

/// One function of about 7 MB.
fn one_body() -> Guest {
    let body = "(local.set $i (i32.mul (i32.add (local.get $i) (i32.const 123456)) (local.get $i)))".repeat(580_000);
    Guest::echo().define(&format!("(func $body (param $i i32) {body})"))
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_no_modules_are_refused() {
    super::run_all("upload", cases()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compile_bombs_end_in_time() {
    let cpu_ms = scale(60_000, 3_000).to_string();
    let mut harness = Harness::start("upload", &[("SANDBOX__COMPILE_CPU_MS", &cpu_ms)]).await;
    let client = harness.client.clone();
    for (case, (name, guest)) in own_cases().into_iter().zip(bombs()) {
        let slug = case.slug();
        harness
            .own(case, async |server| {
                let before = machine::memory_bytes(server.pid());
                let answer = upload(&client, &slug, super::case::named(guest(), &format!("t.b-{slug}")).build()).await;
                let after = machine::memory_bytes(server.pid());
                assert!(after < before + COMPILE_BYTES_MAX, "{name}: from {before} to {after} bytes");
                match answer.refused {
                    None => "ready".to_owned(),
                    Some(reason) => {
                        assert!(reason.contains("COMPILE_BUDGET_EXCEEDED"), "{name}: {reason}");
                        "refused".to_owned()
                    }
                }
            })
            .await;
    }
}
