//! Commits that fail, whose answer is lost, or that lose their race: what callers see, and that nothing is lost or doubled.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;

use super::*;
use crate::{app::ErrorCode, model::row::ExecutionKey, store::memory::Fault};

/// One step by the sandbox, one by a timer, one by a worker, one by a signal, in turn.
fn all_kinds() -> Value {
    json!([
        { "id": "echo", "task": "test", "input": 1 },
        { "id": "nap", "sleep": "1ms", "after": ["echo"] },
        { "id": "work", "task": "native.work", "after": ["nap"] },
        { "id": "wait", "await": "go", "after": ["work"] },
    ])
}

const ALL_KINDS: [&str; 15] = [
    "WorkflowCreated",
    "WorkflowStarted",
    "StepScheduled echo",
    "StepSucceeded echo",
    "StepScheduled nap",
    "TimerStarted",
    "TimerFired",
    "StepSucceeded nap",
    "StepScheduled work",
    "StepSucceeded work",
    "StepScheduled wait",
    "SignalReceived",
    "SignalConsumed wait",
    "StepSucceeded wait",
    "WorkflowCompleted",
];

#[tokio::test]
async fn a_refused_commit_is_told_and_changes_nothing() {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("all", all_kinds()).await;
    store.fail_commits(0..1, Fault::Refused);
    let refused = server.start("all", "e-1").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(refused.message.contains("full") && refused.retry_after_ms.is_some(), "{refused:?}");
    let missing = server.0.find_execution(&tenant(), "e-1").await.unwrap_err();
    assert_eq!(missing.code, ErrorCode::ExecutionNotFound);
    assert!(server.start("all", "e-1").await.unwrap().created, "the same request again is new");
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_known_when_repeated() {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("all", all_kinds()).await;
    store.fail_commits(0..1, Fault::AnswerLost);
    let lost = server.start("all", "e-1").await.unwrap_err();
    assert!(lost.is_transient(), "{lost:?}");
    assert!(!server.start("all", "e-1").await.unwrap().created);
}

/// Runs [`all_kinds`] with a client and a worker that repeat what is not answered, while the commits of `which` fail.
async fn run_through(which: std::ops::Range<u64>, fault: Fault) {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("all", all_kinds()).await;
    store.fail_commits(which.clone(), fault);
    again(async || server.start("all", "e-1").await).await;
    let session = server.worker("w").await;
    let (token, _) = server.take(&session).await;
    assert!(again(async || server.complete(&token).await).await, "{which:?} {fault:?}");
    again(async || server.signal("e-1", Some("once")).await).await;
    let state = server.ended("e-1").await;
    assert_eq!(state.status, "COMPLETED", "{which:?} {fault:?}");
    assert_eq!(server.history("e-1").await, ALL_KINDS, "{which:?} {fault:?}");
    assert!(server.poll(&session, 0).await.is_empty(), "nothing is left behind");
    assert_eq!(server.0.inner.dispatch.held_by_sandbox(), 0, "{which:?} {fault:?}");
    assert!(server.0.inner.dispatch.held_by_workers().is_empty(), "{which:?} {fault:?}");
    assert_eq!(server.0.sweep_now().await.unwrap(), 0, "{which:?} {fault:?}");
}

#[tokio::test]
async fn whichever_commit_fails_each_step_is_done_once() {
    // A run takes five commits, and notes may make one of their own.
    let single = (0..7).map(|at| at..at + 1);
    let runs = single
        .chain([0..3, 2..8])
        .flat_map(|which| [Fault::Refused, Fault::AnswerLost].map(|fault| run_through(which.clone(), fault)));
    join_all(runs).await;
}

#[tokio::test]
async fn work_is_handed_out_though_nobody_repeats_the_start() {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("native", json!([{ "id": "a", "task": "native.work" }])).await;
    server.register("module", json!([{ "id": "a", "task": "test" }])).await;
    server.register("nap", json!([{ "id": "a", "sleep": "1ms" }])).await;
    let session = server.worker("w").await;
    store.fail_commits(0..3, Fault::AnswerLost);
    for workflow in ["native", "module", "nap"] {
        assert!(server.start(workflow, workflow).await.is_err());
    }
    let (token, _) = server.take(&session).await;
    assert!(server.complete(&token).await.unwrap());
    for workflow in ["native", "module", "nap"] {
        assert_eq!(server.ended(workflow).await.status, "COMPLETED", "{workflow}");
    }
}

#[tokio::test]
async fn a_wait_ends_though_the_answer_of_the_last_commit_was_lost() {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("gate", json!([{ "id": "a", "await": "go" }])).await;
    server.start("gate", "e-1").await.unwrap();
    let signal = async {
        tokio::task::yield_now().await;
        store.fail_commits(0..1, Fault::AnswerLost);
        let lost = server.signal("e-1", None).await;
        assert!(lost.is_err_and(|error| error.is_transient()));
    };
    let (state, ()) = tokio::join!(server.ended("e-1"), signal);
    assert_eq!(state.status, "COMPLETED");
}

#[tokio::test]
async fn a_loss_whose_answer_was_lost_leaves_its_unit_ready() {
    let store = Memory::new();
    let quick = Settings { session_timeout: Millis(300), ..settings() };
    let server = Server::with(&store, quick).await;
    server.register("native", json!([{ "id": "a", "task": "native.work" }])).await;
    server.start("native", "e-1").await.unwrap();
    let silent = server.worker("w-silent").await;
    let (first, _) = server.take(&silent).await;
    // The next commit is that of the loss, which takes the note of the delivery with it.
    store.fail_commits(0..1, Fault::AnswerLost);
    let (second, redelivery) = loop {
        // Its own session ends, too, while it waits.
        let session = server.worker("w-2").await;
        let handed = server.poll(&session, 200).await;
        if let Some(task) = handed.tasks().first() {
            let task = (task.token.clone(), task.redelivery);
            handed.sent();
            break task;
        }
    };
    assert!(redelivery && first != second);
    assert!(server.complete(&second).await.unwrap());
    assert_eq!(server.ended("e-1").await.status, "COMPLETED");
    let losses = server.history("e-1").await.into_iter().filter(|event| event == "StepAttemptUncertain a").count();
    assert_eq!(losses, 1, "it is counted once");
}

#[tokio::test]
async fn who_loses_a_race_decides_again() {
    let store = Memory::new();
    let (one, two) = (Server::on(&store).await, Server::on(&store).await);
    one.register("gate", json!([{ "id": "a", "await": "go" }, { "id": "b", "await": "go" }])).await;
    one.start("gate", "e-1").await.unwrap();
    // Both know the state; what the first adds makes that of the second old.
    assert_eq!((one.state("e-1").await.last_seq, two.state("e-1").await.last_seq), (4, 4));
    for server in [&one, &two] {
        server.signal("e-1", None).await.unwrap();
    }
    assert_eq!(two.ended("e-1").await.status, "COMPLETED");
    let history = two.history("e-1").await;
    let taken = history.iter().filter(|event| event.starts_with("SignalReceived")).count();
    assert_eq!(taken, 2, "{history:?}");
    assert_eq!(two.0.inner.counters.races.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_unreadable_execution_hits_no_other() {
    let store = Memory::new();
    let server = Server::on(&store).await;
    server.register("gate", json!([{ "id": "a", "await": "go" }])).await;
    for id in ["bad", "good"] {
        server.start("gate", id).await.unwrap();
    }
    store.spoil_execution(&ExecutionKey { tenant: tenant(), execution: "bad".parse().unwrap() });
    // A server that knows neither loads both in one read.
    let next = Server::with(&store, Settings { lanes: 1, ..settings() }).await;
    let tenant = tenant();
    let find = |id| next.0.find_execution(&tenant, id);
    let (bad, good) = tokio::join!(find("bad"), find("good"));
    assert_eq!(bad.unwrap_err().code, ErrorCode::Internal, "C089");
    assert_eq!(good.unwrap().status, "RUNNING", "C089");
}

/// Both a turn that was cut at its bound and a result that waits for its check have no row that would bring them back.
#[tokio::test]
async fn a_run_that_has_more_to_do_goes_on_after_a_restart() {
    let steps: Vec<Value> = (0..20).map(|number| json!({ "id": format!("s{number}"), "compute": number })).collect();
    let document = json!({
        "ir_version": "sandkeep-ir/1", "name": "w", "version": "1", "steps": steps,
        "result": "${ steps.s19.output }", "output": { "const": 19 },
    });
    for turn_events in [4, 256] {
        let store = Memory::new();
        let mut cut = settings();
        cut.limits.turn_events = turn_events;
        let server = Server::with(&store, cut).await;
        server.0.register_workflow(&tenant(), document.to_string().as_bytes(), true).await.unwrap();
        store.fail_commits(1..1_000, Fault::Refused);
        server.start("w", "e-1").await.unwrap();
        let server = Server::on(&store.reopen()).await;
        let state = server.ended("e-1").await;
        assert_eq!(state.status, "COMPLETED", "{turn_events}: {:?}", state.error);
    }
}
