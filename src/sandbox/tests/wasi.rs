//! What a guest has of WASI, and what it has not.

use super::{guest::IO, *};
use crate::{
    model::{code, row::LogLevel},
    sandbox::Grant,
};

const OK: &str = "(call $ok (i32.const 4096) (i32.const 2))";

fn with_random(body: &str) -> Guest {
    let component = ["random", "insecure"].map(|name| {
        let function = if name == "random" { "get-random-bytes" } else { "get-insecure-random-bytes" };
        format!(
            r#"(import "wasi:random/{name}@0.2.0" (instance ${name}
                 (export "{function}" (func (param "len" u64) (result (list u8))))))
               (core func ${name}' (canon lower (func ${name} "{function}") (memory $memory) (realloc $realloc)))"#
        )
    });
    let component = format!(
        r#"{}(core instance $randoms (export "random" (func $random')) (export "insecure" (func $insecure')))"#,
        component.concat()
    );
    Guest::new(body)
        .data(4096, "[]")
        .component(&component)
        .import_typed("randoms", &[("random", "(param i64 i32)"), ("insecure", "(param i64 i32)")])
}

async fn run_granted(guest: &Guest, settings: &[(&str, &str)]) -> Finished {
    let sandbox = sandbox();
    let module = inspect(&sandbox, guest).await;
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let grant = Arc::new(Grant { settings, ..Grant::default() });
    sandbox.run(&module, Attempt { grant, ..attempt() }).await.unwrap()
}

#[tokio::test]
async fn what_is_printed_becomes_log_lines() {
    let guest = Guest::printing(
        "(local $out i32) (local $err i32)
         (local.set $out (call $get-stdout)) (local.set $err (call $get-stderr))
         (call $print (local.get $out) (i32.const 4096) (i32.const 8) (i32.const 3000))
         (call $print (local.get $err) (i32.const 4112) (i32.const 4) (i32.const 3000))
         (call $print (local.get $out) (i32.const 4104) (i32.const 7) (i32.const 3000))
         (call $ok (i32.const 4128) (i32.const 2))",
    )
    .data(4096, "one\nforge\u{1b}[0m\nx")
    .data(4112, "bad\n")
    .data(4128, "[]");
    let finished = run(&sandbox(), &guest).await;
    assert!(finished.outcome.is_ok(), "{:?}", finished.outcome);
    let lines: Vec<_> = finished.logs.iter().map(|line| (line.level, &*line.message)).collect();
    let expected =
        [(LogLevel::Info, "one"), (LogLevel::Warn, "bad"), (LogLevel::Info, "forge\\u{1b}[0m"), (LogLevel::Info, "x")];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn printing_without_end_is_bounded() {
    let flood = |bytes: u32, times: u32| {
        Guest::printing(&format!(
            "(local $i i32) (local $out i32) (local.set $out (call $get-stdout))
             (loop $l
               (call $print (local.get $out) (i32.const 8192) (i32.const {bytes}) (i32.const 3000))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))
             {OK}"
        ))
        .data(4096, "[]")
    };
    let sandbox = sandbox();
    for (bytes, times, left_out) in [(4096, 20_000, true), (0, 1_000_000, false)] {
        let module = inspect(&sandbox, &flood(bytes, times)).await;
        let finished = sandbox.run(&module, unhurried()).await.unwrap();
        assert!(finished.outcome.is_ok(), "C063 {:?}", finished.outcome);
        let kept: usize = finished.logs.iter().map(|line| line.message.len()).sum();
        assert!(kept <= 257 * 1024, "C063 {kept}");
        assert_eq!(finished.log_lines_left_out > 0, left_out, "C063");
    }
}

#[tokio::test]
async fn exiting_is_an_outcome() {
    for (status, sentence) in [(0, "status 0"), (1, "status 1")] {
        let guest = Guest::new(&format!("(call $exit (i32.const {status})) unreachable"))
            .component(
                r#"(import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
                   (core func $exit' (canon lower (func $exit "exit")))
                   (core instance $exits (export "exit" (func $exit')))"#,
            )
            .import_typed("exits", &[("exit", "(param i32)")]);
        let finished = run(&sandbox(), &guest).await;
        assert_eq!(code_of(&finished), &code::EXITED);
        assert!(message_of(&finished).contains(sentence), "{}", message_of(&finished));
    }
}

#[tokio::test]
async fn settings_are_all_of_the_environment() {
    let guest = Guest::new(
        "(call $environment (i32.const 3000))
         (if (i32.ne (i32.load (i32.const 3004)) (i32.const 2)) (then unreachable))
         (call $say (i32.load (i32.load (i32.const 3000))) (i32.load offset=4 (i32.load (i32.const 3000))))
         (call $say (i32.load offset=8 (i32.load (i32.const 3000))) (i32.load offset=12 (i32.load (i32.const 3000))))
         (call $get (i32.const 4096) (i32.const 4) (i32.const 3000))
         (if (i32.or (i32.load8_u (i32.const 3000)) (i32.eqz (i32.load8_u (i32.const 3004)))) (then unreachable))
         (call $ok (i32.load (i32.const 3008)) (i32.load (i32.const 3012)))",
    )
    .data(4096, "size")
    .component(
        r#"(import "wasi:cli/environment@0.2.0" (instance $environment
             (export "get-environment" (func (result (list (tuple string string)))))))
           (import "wasi:config/store@0.2.0-rc.1" (instance $store
             (type $error' (variant (case "upstream" string) (case "io" string)))
             (export "error" (type $error (eq $error')))
             (export "get" (func (param "key" string) (result (result (option string) (error $error)))))))
           (core func $get-environment (canon lower (func $environment "get-environment")
             (memory $memory) (realloc $realloc)))
           (core func $get (canon lower (func $store "get") (memory $memory) (realloc $realloc)))
           (core instance $settings (export "environment" (func $get-environment)) (export "get" (func $get)))"#,
    )
    .import_typed("settings", &[("environment", "(param i32)"), ("get", "(param i32 i32 i32)")]);
    let finished = run_granted(&guest, &[("NAME", "a b"), ("size", "7")]).await;
    let logged: Vec<_> = finished.logs.iter().map(|line| &*line.message).collect();
    assert_eq!(finished.outcome.unwrap().as_str(), "7");
    assert_eq!(logged, ["NAME", "a b"], "C072");
}

#[tokio::test]
async fn randomness_is_bounded() {
    let sandbox = sandbox();
    for name in ["random", "insecure"] {
        let call = |bytes: u64| format!("(call ${name} (i64.const {bytes}) (i32.const 3000))");
        let fair = with_random(&format!("{} (drop (i64.load (i32.load (i32.const 3000)))) {OK}", call(65_536)));
        assert!(run(&sandbox, &fair).await.outcome.is_ok());
        for bytes in [65_537, 1 << 31, u64::MAX >> 1] {
            let finished = run(&sandbox, &with_random(&format!("{} unreachable", call(bytes)))).await;
            assert_eq!(code_of(&finished), &code::TRAP, "C063");
            assert!(message_of(&finished).contains("the limit is 65536"), "C063 {}", message_of(&finished));
        }
        let endless = with_random(&format!("(loop $l {} (br $l)) unreachable", call(65_536)))
            .realloc("(i32.const 65536)")
            .memory("4");
        let module = inspect(&sandbox, &endless).await;
        let finished = sandbox.run(&module, unhurried()).await.unwrap();
        assert!(message_of(&finished).contains("16777216 random bytes"), "C063 {}", message_of(&finished));
    }
}

#[tokio::test]
async fn a_guest_waits_and_others_run() {
    let sandbox = sandbox();
    let body = format!("(call $block (call $subscribe-duration (i64.const 20000000))) {OK}");
    let module = inspect(&sandbox, &Guest::with_clock(&body)).await;
    let slept = futures_util::future::join_all((0..4).map(|_| sandbox.run(&module, attempt()))).await;
    for finished in slept {
        let finished = finished.unwrap();
        assert!(finished.outcome.is_ok(), "{:?}", finished.outcome);
        assert!(finished.usage.wall_ms >= 20, "{:?}", finished.usage);
    }
}

#[tokio::test]
async fn a_wait_for_ever_ends_by_the_time_limit() {
    let sandbox = sandbox();
    for wait in [
        "(call $block (call $subscribe-duration (i64.const -1)))",
        "(call $block (call $subscribe-instant (i64.const -1)))",
        "(call $block (call $subscribe-instant (i64.const 0x3a4a4a0000000000)))",
        "(loop $l (call $block (call $subscribe-duration (i64.const 3600000000000))) (br $l))",
    ] {
        let module = inspect(&sandbox, &Guest::with_clock(&format!("{wait} unreachable"))).await;
        let finished = sandbox.run(&module, Attempt { wall: Millis(30), ..unhurried() }).await.unwrap();
        assert_eq!(code_of(&finished), &code::TIMEOUT, "C057 {wait}");
    }
}

#[tokio::test]
async fn zero_length_sleeps_end_by_the_time_limit() {
    let sandbox = sandbox();
    let body = "(local $sleep i32) (loop $l
        (local.set $sleep (call $subscribe-duration (i64.const 0)))
        (call $block (local.get $sleep)) (call $drop (local.get $sleep)) (br $l)) unreachable";
    let module = inspect(&sandbox, &Guest::with_clock(body)).await;
    let finished = sandbox.run(&module, Attempt { wall: Millis(30), ..unhurried() }).await.unwrap();
    assert_eq!(code_of(&finished), &code::TIMEOUT, "C057");
}

#[tokio::test]
async fn handles_of_the_host_are_bounded() {
    let sandbox = sandbox();
    let endless = "(loop $l (drop (call $subscribe-duration (i64.const 1))) (br $l)) unreachable";
    let finished = run(&sandbox, &Guest::with_clock(endless)).await;
    assert_eq!(code_of(&finished), &code::HANDLE_LIMIT, "C063 {}", message_of(&finished));
    assert!(message_of(&finished).contains("4096"), "C063 {}", message_of(&finished));
}

#[tokio::test]
async fn waiting_for_a_long_list_is_refused() {
    let sandbox = sandbox();
    // One handle, named over and over: the list is memory filled with its number.
    let waiting = |count: u32| {
        Guest::with_clock(&format!(
            "(local $at i32) (local $one i32) (local.set $one (call $subscribe-duration (i64.const 0)))
             (local.set $at (i32.const 131072))
             (loop $l
               (i32.store (local.get $at) (local.get $one))
               (br_if $l (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4)))
                 (i32.const {}))))
             (call $poll (i32.const 131072) (i32.const {count}) (i32.const 3000)) {OK}",
            131_072 + 4 * count
        ))
        .memory("400")
    };
    assert!(run(&sandbox, &waiting(100)).await.outcome.is_ok());
    for count in [4_097, 1_000_000] {
        let module = inspect(&sandbox, &waiting(count)).await;
        let finished = sandbox.run(&module, unhurried()).await.unwrap();
        assert!(
            [code::HANDLE_LIMIT, code::PAYLOAD_TOO_LARGE].contains(&code_of(&finished).as_str()),
            "C063 {}",
            message_of(&finished)
        );
    }
}

#[tokio::test]
async fn sockets_and_names_are_denied() {
    let codes = [
        "unknown",
        "access-denied",
        "not-supported",
        "invalid-argument",
        "out-of-memory",
        "timeout",
        "concurrency-conflict",
        "not-in-progress",
        "would-block",
        "invalid-state",
        "new-socket-limit",
        "address-not-bindable",
        "address-in-use",
        "remote-unreachable",
        "connection-refused",
        "connection-reset",
        "connection-aborted",
        "datagram-too-large",
        "name-unresolvable",
        "temporary-resolver-failure",
        "permanent-resolver-failure",
    ];
    let component = format!(
        r#"{IO}
        (import "wasi:sockets/network@0.2.3" (instance $network
          (export "network" (type (sub resource)))
          (type $code' (enum {})) (export "error-code" (type (eq $code')))
          (type $family' (enum "ipv4" "ipv6")) (export "ip-address-family" (type (eq $family')))))
        (alias export $network "network" (type $net)) (alias export $network "error-code" (type $code))
        (alias export $network "ip-address-family" (type $family))
        (import "wasi:sockets/instance-network@0.2.3" (instance $instance
          (alias outer 1 $net (type $net')) (export "network" (type $net (eq $net')))
          (export "instance-network" (func (result (own $net))))))
        (import "wasi:sockets/tcp@0.2.3" (instance $tcp (export "tcp-socket" (type (sub resource)))))
        (alias export $tcp "tcp-socket" (type $tcp-socket))
        (import "wasi:sockets/udp@0.2.3" (instance $udp (export "udp-socket" (type (sub resource)))))
        (alias export $udp "udp-socket" (type $udp-socket))
        (import "wasi:sockets/tcp-create-socket@0.2.3" (instance $create-tcp
          (alias outer 1 $code (type $code')) (export "error-code" (type $code (eq $code')))
          (alias outer 1 $family (type $family')) (export "ip-address-family" (type $family (eq $family')))
          (alias outer 1 $tcp-socket (type $socket')) (export "tcp-socket" (type $socket (eq $socket')))
          (export "create-tcp-socket"
            (func (param "address-family" $family) (result (result (own $socket) (error $code)))))))
        (import "wasi:sockets/udp-create-socket@0.2.3" (instance $create-udp
          (alias outer 1 $code (type $code')) (export "error-code" (type $code (eq $code')))
          (alias outer 1 $family (type $family')) (export "ip-address-family" (type $family (eq $family')))
          (alias outer 1 $udp-socket (type $socket')) (export "udp-socket" (type $socket (eq $socket')))
          (export "create-udp-socket"
            (func (param "address-family" $family) (result (result (own $socket) (error $code)))))))
        (import "wasi:sockets/ip-name-lookup@0.2.3" (instance $lookup
          (alias outer 1 $code (type $code')) (export "error-code" (type $code (eq $code')))
          (alias outer 1 $net (type $net')) (export "network" (type $net (eq $net')))
          (export "resolve-address-stream" (type $stream (sub resource)))
          (export "resolve-addresses" (func (param "network" (borrow $net)) (param "name" string)
            (result (result (own $stream) (error $code)))))))
        (core func $network' (canon lower (func $instance "instance-network")))
        (core func $tcp' (canon lower (func $create-tcp "create-tcp-socket") (memory $memory)))
        (core func $udp' (canon lower (func $create-udp "create-udp-socket") (memory $memory)))
        (core func $resolve' (canon lower (func $lookup "resolve-addresses") (memory $memory)))
        (core instance $sockets (export "network" (func $network')) (export "tcp" (func $tcp'))
          (export "udp" (func $udp')) (export "resolve" (func $resolve')))"#,
        codes.map(|code| format!("\"{code}\"")).join(" ")
    );
    // Each is an error, and the error says that access is denied or the name cannot be resolved.
    let denied = "(if (i32.ne (i32.load8_u (i32.const 3000)) (i32.const 1)) (then unreachable))
                  (call $note (i32.load8_u offset=4 (i32.const 3000)))";
    let body = format!(
        "(call $tcp (i32.const 0) (i32.const 3000)) {denied}
         (call $udp (i32.const 1) (i32.const 3000)) {denied}
         (call $resolve (call $network) (i32.const 4096) (i32.const 9) (i32.const 3000)) {denied}
         (call $ok (i32.const 4112) (i32.const 7))"
    )
    .replace("offset=4", "offset=4 align=1");
    let guest = Guest::new(&body)
        .data(4096, "localhost")
        .data(4112, "[0,0,0]")
        .define(
            "(global $notes (mut i32) (i32.const 4113))
             (func $note (param $code i32)
               (if (i32.gt_u (local.get $code) (i32.const 9)) (then (local.set $code (i32.const 9))))
               (i32.store8 (global.get $notes) (i32.add (i32.const 48) (local.get $code)))
               (global.set $notes (i32.add (global.get $notes) (i32.const 2))))",
        )
        .component(&component)
        .import_typed(
            "sockets",
            &[
                ("network", "(result i32)"),
                ("tcp", "(param i32 i32)"),
                ("udp", "(param i32 i32)"),
                ("resolve", "(param i32 i32 i32 i32)"),
            ],
        );
    let finished = run(&sandbox(), &guest).await;
    assert_eq!(finished.outcome.unwrap().as_str(), "[1,1,9]", "C072");
}
