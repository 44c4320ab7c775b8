//! Attempts that are recorded, and run again with the same answers.

use super::*;
use crate::sandbox::{Answers, RECORDING_BYTES_MAX, Recording, Seed};

/// A guest that says, as hexadecimal digits, what it was told: random bytes, both clocks, and whether it is cancelled.
fn curious() -> Guest {
    let body = "
        (call $random (i64.const 8) (i32.const 3000))
        (call $hex (i32.const 0) (i64.load (i32.load (i32.const 3000))))
        (call $insecure (i64.const 8) (i32.const 3000))
        (call $hex (i32.const 16) (i64.load (i32.load (i32.const 3000))))
        (call $seed (i32.const 3000))
        (call $hex (i32.const 32) (i64.load (i32.const 3000)))
        (call $wall (i32.const 3000))
        (call $hex (i32.const 48) (i64.load32_u offset=8 (i32.const 3000)))
        (call $hex (i32.const 64) (call $monotonic))
        (i32.store8 (i32.const 4096) (i32.const 34)) (i32.store8 (i32.const 4177) (i32.const 34))
        (call $ok (i32.const 4096) (i32.const 82))";
    let component = r#"
        (import "wasi:random/random@0.2.0" (instance $random
          (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
        (import "wasi:random/insecure@0.2.0" (instance $insecure
          (export "get-insecure-random-bytes" (func (param "len" u64) (result (list u8))))))
        (import "wasi:random/insecure-seed@0.2.0" (instance $seed
          (export "insecure-seed" (func (result (tuple u64 u64))))))
        (import "wasi:clocks/wall-clock@0.2.0" (instance $wall
          (type $datetime' (record (field "seconds" u64) (field "nanoseconds" u32)))
          (export "datetime" (type $datetime (eq $datetime')))
          (export "now" (func (result $datetime)))))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $monotonic
          (export "now" (func (result u64)))))
        (core func $random' (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))
        (core func $insecure' (canon lower (func $insecure "get-insecure-random-bytes")
          (memory $memory) (realloc $realloc)))
        (core func $seed' (canon lower (func $seed "insecure-seed") (memory $memory)))
        (core func $wall' (canon lower (func $wall "now") (memory $memory)))
        (core func $monotonic' (canon lower (func $monotonic "now")))
        (core instance $told (export "random" (func $random')) (export "insecure" (func $insecure'))
          (export "seed" (func $seed')) (export "wall" (func $wall')) (export "monotonic" (func $monotonic')))"#;
    let hex = "
        (func $hex (param $at i32) (param $value i64) (local $i i32)
          (loop $l
            (i32.store8 (i32.add (i32.add (i32.const 4097) (local.get $at)) (local.get $i))
              (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get $value) (i64.const 15)))))
            (local.set $value (i64.shr_u (local.get $value) (i64.const 4)))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 16)))))";
    Guest::new(body).component(component).define(hex).import_typed(
        "told",
        &[
            ("random", "(param i64 i32)"),
            ("insecure", "(param i64 i32)"),
            ("seed", "(param i32)"),
            ("wall", "(param i32)"),
            ("monotonic", "(result i64)"),
        ],
    )
}

async fn ended(sandbox: &Sandbox, module: &Module, answers: Answers) -> Finished {
    sandbox.run(module, Attempt { answers, ..unhurried() }).await.unwrap()
}

fn output(finished: &Finished) -> &str {
    finished.outcome.as_ref().unwrap_or_else(|failure| panic!("{failure:?}")).as_str()
}

#[tokio::test]
async fn what_a_guest_was_told_it_is_told_again() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &curious()).await;
    let recorded = ended(&sandbox, &module, Answers::Kept).await;
    let recording = Arc::new(recorded.recording.clone().unwrap());
    assert!(recording.complete && recording.wall_ns.len() == 1 && recording.monotonic_ns.len() == 1, "{recording:?}");
    let replayed = ended(&sandbox, &module, Answers::Replayed(Arc::clone(&recording))).await;
    assert_eq!((output(&replayed), &replayed.unrecorded), (output(&recorded), &None));
    for answers in [Answers::Live, Answers::Kept, Answers::Stubbed(Arc::default())] {
        let other = ended(&sandbox, &module, answers).await;
        assert_ne!(output(&other), output(&recorded));
    }
    let told = output(&recorded).trim_matches('"');
    let parts: Vec<_> = (0..5).map(|part| &told[part * 16..][..16]).collect();
    let apart: std::collections::HashSet<_> = parts.iter().collect();
    assert_eq!(apart.len(), parts.len(), "each source has its own bytes: {told}");
}

/// What a seed gives is a promise: recordings outlive versions of this program.
#[tokio::test]
async fn a_seed_means_the_same_bytes_in_every_version() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &curious()).await;
    let recording = Recording {
        complete: true,
        seed: Seed([7; 32]),
        wall_ns: vec![1_700_000_000_123_456_789],
        monotonic_ns: vec![42],
        ..Recording::default()
    };
    let replayed = ended(&sandbox, &module, Answers::Replayed(Arc::new(recording))).await;
    assert_eq!(output(&replayed), EXPECTED);
}

/// The first sixteen digits are the beginning of the key stream of ChaCha20 (RFC 8439) for this key and nonce 0, which
/// `openssl enc -chacha20` makes too; then its streams 1 and 2, and the two times.
const EXPECTED: &str = "\"epaacjihhfkkgpbengmhdhjajjklfgpofmjbeihkcogaonjmfbnmlfhaaaaaaaaakcaaaaaaaaaaaaaa\"";

#[tokio::test]
async fn waits_end_as_they_did() {
    // Waits for two timers at once and says which was first: the one of 1 ms, whatever the machine does meanwhile.
    let guest = Guest::with_clock(
        "(i32.store (i32.const 3000) (call $subscribe-duration (i64.const 3600000000000)))
         (i32.store (i32.const 3004) (call $subscribe-duration (i64.const 1000000)))
         (call $poll (i32.const 3000) (i32.const 2) (i32.const 3100))
         (if (i32.ne (i32.load (i32.load (i32.const 3100))) (i32.const 1)) (then unreachable))
         (call $ok (i32.const 4096) (i32.const 2))",
    );
    let sandbox = sandbox();
    let module = inspect(&sandbox, &guest).await;
    let recorded = ended(&sandbox, &module, Answers::Kept).await;
    let mut recording = recorded.recording.clone().unwrap();
    assert_eq!((output(&recorded), &recording.ready), ("[]", &vec![vec![1]]));
    let replayed = ended(&sandbox, &module, Answers::Replayed(Arc::new(recording.clone()))).await;
    assert_eq!(output(&replayed), "[]");
    recording.ready.clear();
    let beyond = ended(&sandbox, &module, Answers::Replayed(Arc::new(recording))).await;
    assert_eq!((output(&beyond), beyond.unrecorded.as_deref()), ("[]", Some("wait 1 is not in the recording")));
}

fn many(limits: Limits) -> Limits {
    Limits { handles: 200_000, host_handles: 200_000, ..limits }
}

#[tokio::test]
async fn a_guest_that_asks_without_end_is_recorded_up_to_a_size() {
    let guest = Guest::with_clock(
        "(local $timer i32) (local.set $timer (call $subscribe-instant (i64.const 0)))
        (loop $l (drop (call $subscribe-instant (i64.const 0))) (br $l)) unreachable",
    );
    let sandbox = sandbox_with(|config| config.limits = many(config.limits));
    let module = inspect(&sandbox, &guest).await;
    let attempt = Attempt { answers: Answers::Kept, limits: many(unhurried().limits), ..attempt() };
    let finished = sandbox.run(&module, attempt).await.unwrap();
    let recording = finished.recording.as_ref().unwrap();
    assert!(
        !recording.complete && recording.monotonic_ns.len() * 20 <= RECORDING_BYTES_MAX,
        "{}",
        recording.monotonic_ns.len()
    );
}

#[tokio::test]
async fn nothing_is_recorded_that_is_not_to_be() {
    let sandbox = sandbox();
    let module = inspect(&sandbox, &Guest::echo()).await;
    assert_eq!(ended(&sandbox, &module, Answers::Live).await.recording, None);
    let kept = ended(&sandbox, &module, Answers::Kept).await.recording.unwrap();
    assert!(kept.complete && kept.http.is_empty() && kept.wall_ns.is_empty());
}
