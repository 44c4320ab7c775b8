//! The one routine for taking: who gets what, in which order, and who is woken.

use std::collections::HashSet;

use super::{Dispatcher, GivenBack, session::Session};
use crate::model::{
    ContractVersion, Digest, ExecutionId, Millis, NodeLabel, Payload, QueueName, SessionId, TaskName, TenantId,
    Timestamp, UnitKey, WorkerId, WorkflowName, WorkflowVersion,
    event::UnitTimeouts,
    execution::Target,
    id::{RunKey, UnitRef},
    policy::Share,
    row::ReadyRow,
};
use crate::store::{ReadyItem, ReadyOrder, ReadyPage};

fn row(execution: &str, target: Target) -> ReadyRow {
    let run = RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new(execution).unwrap(), run: 1 };
    ReadyRow {
        unit: UnitRef { run, unit: UnitKey::new("a").unwrap() },
        attempt: 1,
        workflow: WorkflowName::new("w").unwrap(),
        workflow_version: WorkflowVersion::new("1").unwrap(),
        task: TaskName::new("t.work").unwrap(),
        contract: None,
        queue: QueueName::default_queue(),
        target,
        module: (target == Target::Module).then(|| Digest::of(b"m")),
        settings: None,
        node: None,
        priority: 5,
        timeouts: UnitTimeouts { attempt_ms: Millis(1_000), heartbeat_ms: None, queue_ms: None },
        ready_at: Timestamp(1_000),
        losses: 0,
        redelivery: false,
        input_seq: 1,
    }
}

fn session(id: &str) -> Session {
    Session {
        id: SessionId::new(id).unwrap(),
        worker: WorkerId::new(format!("worker-{id}")).unwrap(),
        tenant: TenantId::default_tenant(),
        runtime: String::new(),
        sdk: None,
        identity: None,
        queues: vec![QueueName::default_queue()],
        node: None,
        capacity: None,
        contracts: vec![(TaskName::new("t.work").unwrap(), ContractVersion::new("1.4.0").unwrap())],
        registered_at: Timestamp(0),
        last_seen: Timestamp(0),
        names_active: false,
        held: HashSet::new(),
    }
}

fn dispatcher(sessions: impl IntoIterator<Item = Session>) -> Dispatcher {
    // Half of these slots, two, are a tenant's.
    let dispatcher = Dispatcher::new(4);
    dispatcher.open();
    for session in sessions {
        dispatcher.register(session);
    }
    dispatcher
}

fn offer(dispatcher: &Dispatcher, row: ReadyRow) {
    dispatcher.offer(row, Payload::null());
}

/// Takes for a session; returns the executions in the order in which they were taken.
fn take(dispatcher: &Dispatcher, session: &str, max: usize) -> Vec<String> {
    let id = SessionId::new(session).unwrap();
    let taken = dispatcher.take_for_session(&id, max, Timestamp(2_000)).unwrap();
    taken.iter().map(|taken| taken.ready.row.unit.run.execution.to_string()).collect()
}

#[test]
fn higher_priority_goes_first_until_age_outweighs_it() {
    let dispatcher = dispatcher([session("s")]);
    offer(&dispatcher, ReadyRow { ready_at: Timestamp(60_000), ..row("plain", Target::Worker) });
    offer(&dispatcher, ReadyRow { priority: 9, ready_at: Timestamp(60_001), ..row("urgent", Target::Worker) });
    offer(&dispatcher, ReadyRow { priority: 0, ready_at: Timestamp(60_000), ..row("fresh-low", Target::Worker) });
    offer(&dispatcher, ReadyRow { priority: 0, ready_at: Timestamp(-300_000), ..row("old-low", Target::Worker) });
    assert_eq!(take(&dispatcher, "s", 10), ["old-low", "urgent", "plain", "fresh-low"]);
}

#[test]
fn a_session_is_never_handed_more_than_its_capacity() {
    let dispatcher = dispatcher([Session { capacity: Some(2), ..session("s") }]);
    for number in 0..5 {
        offer(&dispatcher, row(&format!("e-{number}"), Target::Worker));
    }
    assert_eq!(take(&dispatcher, "s", 10), ["e-0", "e-1"]);
    assert!(take(&dispatcher, "s", 10).is_empty());
    dispatcher.withdraw(&row("e-0", Target::Worker).unit);
    assert_eq!(take(&dispatcher, "s", 10), ["e-2"]);
}

#[test]
fn only_a_session_that_fits_takes_a_unit() {
    let node = || Some(NodeLabel::new("gpu").unwrap());
    let asked = |version: &str| Some(ContractVersion::new(version).unwrap());
    let dispatcher = dispatcher([session("plain"), Session { node: node(), ..session("gpu") }]);
    offer(&dispatcher, ReadyRow { node: node(), ..row("on-gpu", Target::Worker) });
    offer(&dispatcher, ReadyRow { contract: asked("1.5"), ..row("newer", Target::Worker) });
    offer(&dispatcher, ReadyRow { queue: QueueName::new("other").unwrap(), ..row("elsewhere", Target::Worker) });
    offer(&dispatcher, row("module", Target::Module));
    assert!(take(&dispatcher, "plain", 10).is_empty());
    assert_eq!(take(&dispatcher, "gpu", 10), ["on-gpu"]);
    offer(&dispatcher, ReadyRow { contract: asked("1.2"), ..row("older", Target::Worker) });
    assert_eq!(take(&dispatcher, "plain", 10), ["older"]);
}

#[test]
fn an_offer_wakes_exactly_one_poll_that_can_take_it() {
    let other = Session { queues: vec![QueueName::new("other").unwrap()], ..session("other") };
    let dispatcher = dispatcher([session("a"), session("b"), other]);
    let park = |id: &str| dispatcher.park(&SessionId::new(id).unwrap()).unwrap();
    let (_, mut elsewhere) = park("other");
    let (first_id, mut first) = park("a");
    let (_, mut second) = park("b");
    offer(&dispatcher, row("e", Target::Worker));
    assert!(first.try_recv().is_ok());
    assert!(second.try_recv().is_err() && elsewhere.try_recv().is_err());
    // The woken poll's client has gone: its wake goes to the next.
    dispatcher.leave(first_id, &SessionId::new("a").unwrap(), true);
    assert!(second.try_recv().is_ok(), "C036");
    assert!(elsewhere.try_recv().is_err());
}

#[test]
fn a_unit_that_carries_a_loss_runs_beside_no_other_such() {
    let dispatcher = dispatcher([]);
    let suspect = |execution| ReadyRow { losses: 1, ..row(execution, Target::Module) };
    offer(&dispatcher, suspect("first"));
    offer(&dispatcher, suspect("second"));
    offer(&dispatcher, row("innocent", Target::Module));
    let name = |taken: &super::Taken| taken.ready.row.unit.run.execution.to_string();
    let first = dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).unwrap();
    let beside = dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).unwrap();
    assert_eq!((name(&first), name(&beside)), ("first".to_owned(), "innocent".to_owned()));
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_none(), "both slots are taken");
    dispatcher.free_slot(&beside);
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_none(), "the first suspect is in hand");
    dispatcher.free_slot(&first);
    assert_eq!(name(&dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).unwrap()), "second");
}

/// Offers units of these tenants to a sandbox of `slots`, takes as many as it gives, and returns whose they are.
fn taken_of(slots: usize, shares: &[(&str, Share)], offered: &[(&str, usize)]) -> Vec<String> {
    let dispatcher = Dispatcher::new(slots);
    dispatcher.open();
    for (tenant, share) in shares {
        dispatcher.set_share(&TenantId::new(*tenant).unwrap(), *share);
    }
    for (tenant, count) in offered {
        for number in 0..*count {
            let mut row = row(&format!("e-{number}"), Target::Module);
            row.unit.run.tenant = TenantId::new(*tenant).unwrap();
            offer(&dispatcher, row);
        }
    }
    let taken = std::iter::from_fn(|| dispatcher.take_for_sandbox(Timestamp(0), |_, _| false));
    taken.map(|taken| taken.ready.row.unit.run.tenant.to_string()).collect()
}

#[test]
fn a_tenant_takes_turns_by_its_weight_up_to_its_part_of_the_slots() {
    let share = |instances, weight| Share { instances, weight };
    for (slots, shares, offered, taken) in [
        (1, &[][..], &[("a", 3)][..], &["a"][..]),
        (4, &[], &[("a", 9)], &["a", "a"]),
        (4, &[], &[("a", 9), ("b", 9)], &["a", "b", "a", "b"]),
        (4, &[], &[("a", 9), ("b", 1), ("c", 9)], &["a", "b", "c", "a"]),
        (4, &[("a", share(4, 1))], &[("a", 9)], &["a", "a", "a", "a"]),
        (4, &[("a", share(1, 1))], &[("a", 9), ("b", 9)], &["a", "b", "b"]),
        (6, &[("a", share(6, 2))], &[("a", 9), ("b", 9)], &["a", "a", "b", "a", "a", "b"]),
        (6, &[("a", share(6, 3))], &[("a", 4), ("b", 9)], &["a", "a", "a", "b", "a", "b"]),
    ] {
        assert_eq!(taken_of(slots, shares, offered), taken, "{slots} {shares:?} {offered:?}");
    }
}

#[test]
fn a_slot_that_is_given_back_is_its_tenants_again() {
    let dispatcher = Dispatcher::new(2);
    dispatcher.open();
    offer(&dispatcher, row("first", Target::Module));
    offer(&dispatcher, row("second", Target::Module));
    let first = dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).unwrap();
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_none(), "half of two");
    dispatcher.free_slot(&first);
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_some());
}

#[test]
fn what_is_given_back_has_its_whole_time_in_the_queue_again() {
    let dispatcher = dispatcher([session("s")]);
    let mut queued = row("e", Target::Worker);
    queued.timeouts.queue_ms = Some(Millis(100));
    offer(&dispatcher, queued.clone());
    let id = SessionId::new("s").unwrap();
    let taken = dispatcher.take_for_session(&id, 1, Timestamp(0)).unwrap().remove(0);
    assert!(!dispatcher.take_for_queue_end(&queued, Timestamp(200)), "it is out");
    assert_eq!(dispatcher.give_back(&queued.unit, taken.delivery, Timestamp(200)), GivenBack::Ready);
    assert!(!dispatcher.take_for_queue_end(&queued, Timestamp(299)), "it has time left");
    assert!(dispatcher.take_for_queue_end(&queued, Timestamp(300)));
    assert!(dispatcher.take_for_session(&id, 1, Timestamp(300)).unwrap().is_empty());
}

#[test]
fn what_is_given_back_is_ready_again_and_told_apart() {
    let dispatcher = dispatcher([session("s")]);
    offer(&dispatcher, row("e", Target::Worker));
    let id = SessionId::new("s").unwrap();
    let taken = dispatcher.take_for_session(&id, 1, Timestamp(0)).unwrap().remove(0);
    let give_back = || dispatcher.give_back(&taken.ready.row.unit, taken.delivery, Timestamp(5));
    assert_eq!(give_back(), GivenBack::Ready);
    assert_eq!(give_back(), GivenBack::NotOut, "once");
    let again = dispatcher.take_for_session(&id, 1, Timestamp(0)).unwrap().remove(0);
    assert_eq!((again.ready.row.attempt, again.ready.row.redelivery), (1, true));
    assert_ne!(again.delivery, taken.delivery, "no two deliveries share a token");
}

/// What the next refill finds: a page of these rows in each order.
fn refill(dispatcher: &Dispatcher, rows: &[ReadyRow]) {
    for (class, limit) in dispatcher.refills() {
        let items = rows.iter().map(|row| ReadyItem { row: row.clone(), input: Payload::null(), note: None });
        let page = ReadyPage { items: items.collect(), unreadable: Vec::new() };
        let pages = vec![(ReadyOrder::Priority, page.clone()), (ReadyOrder::Age, page)];
        dispatcher.refilled(&class, pages, limit / 2 + 1);
    }
}

#[test]
fn what_must_stop_is_handed_out_no_more() {
    let dispatcher = dispatcher([session("s")]);
    let queued = row("queued", Target::Worker);
    offer(&dispatcher, queued.clone());
    assert!(dispatcher.stop(&queued.unit, 1));
    assert!(dispatcher.stop(&queued.unit, 1), "asked again, as after a commit that failed");
    // A repair puts its row once more, and a refill finds it until the stop is committed.
    offer(&dispatcher, queued.clone());
    dispatcher.expect_row(&(&queued).into());
    refill(&dispatcher, std::slice::from_ref(&queued));
    assert!(take(&dispatcher, "s", 10).is_empty());
    dispatcher.withdraw(&queued.unit);
    offer(&dispatcher, queued);
    assert_eq!(take(&dispatcher, "s", 10), ["queued"]);
}

#[test]
fn what_must_stop_is_not_ready_again_when_given_back() {
    let dispatcher = dispatcher([session("s")]);
    let unit = row("e", Target::Worker).unit;
    offer(&dispatcher, row("e", Target::Worker));
    let taken = dispatcher.take_for_session(&SessionId::new("s").unwrap(), 1, Timestamp(0)).unwrap().remove(0);
    assert!(!dispatcher.stop(&unit, 1), "it is out");
    assert_eq!(dispatcher.give_back(&unit, taken.delivery, Timestamp(5)), GivenBack::Stopped);
    assert!(take(&dispatcher, "s", 10).is_empty());
}

#[test]
fn a_row_of_which_nobody_was_told_is_found() {
    let dispatcher = dispatcher([session("s")]);
    let untold = row("e", Target::Worker);
    offer(&dispatcher, row("told", Target::Worker));
    refill(&dispatcher, &[untold.clone(), row("told", Target::Worker)]);
    assert_eq!(take(&dispatcher, "s", 10), ["told"], "nothing looks for it");
    dispatcher.expect_row(&(&untold).into());
    // This one read before the row was there, and another failure came while it did.
    let (class, limit) = dispatcher.refills().remove(0);
    dispatcher.expect_row(&(&untold).into());
    dispatcher.refilled(&class, vec![(ReadyOrder::Age, ReadyPage::default())], limit / 2 + 1);
    refill(&dispatcher, &[untold]);
    assert_eq!(take(&dispatcher, "s", 10), ["e"]);
}

#[test]
fn a_settled_delivery_makes_room_and_wakes() {
    let dispatcher = dispatcher([Session { capacity: Some(1), ..session("s") }]);
    let id = SessionId::new("s").unwrap();
    offer(&dispatcher, row("first", Target::Worker));
    let taken = dispatcher.take_for_session(&id, 1, Timestamp(0)).unwrap().remove(0);
    let (_, mut woken) = dispatcher.park(&id).unwrap();
    offer(&dispatcher, row("second", Target::Worker));
    assert!(woken.try_recv().is_err(), "there is no room");
    dispatcher.settle(&taken.ready.row.unit, taken.delivery);
    assert!(woken.try_recv().is_ok());
    assert_eq!(take(&dispatcher, "s", 10), ["second"]);
}

#[test]
fn nothing_is_handed_out_before_the_start_or_after_the_end() {
    let dispatcher = Dispatcher::new(1);
    offer(&dispatcher, row("e", Target::Module));
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_none());
    dispatcher.open();
    dispatcher.close();
    assert!(dispatcher.take_for_sandbox(Timestamp(0), |_, _| false).is_none());
}
