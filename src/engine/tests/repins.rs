//! Repins: which digest a run uses before and after, and which it needs.

use super::{steps::facts, *};
use crate::{
    engine::{Repin, RepinTo},
    model::{Alias, Digest, ModuleName, facts::Share},
};

fn digest(n: u8) -> Digest {
    Digest::of(&[n])
}

fn alias(name: &str) -> Alias {
    Alias::new(name).unwrap()
}

fn repin_to(to: RepinTo) -> Repin {
    Repin { module: ModuleName::new("m").unwrap(), to, leaving: None }
}

fn bench(steps: Value) -> Bench {
    let mut bench = Bench::new(&document(steps));
    bench.facts = facts();
    bench.start("{}").unwrap();
    bench
}

fn chain() -> Bench {
    bench(json!([
        { "id": "a", "task": "t.work", "retry": { "max_attempts": 5 } },
        { "id": "b", "task": "t.work", "after": ["a"] },
    ]))
}

fn module_of(bench: &Bench, key: &str) -> Digest {
    bench.unit(key).more().unwrap().module.clone().unwrap().digest
}

fn held(bench: &Bench) -> Vec<Digest> {
    bench.execution.held.iter().map(|held| held.digest.clone()).collect()
}

impl Bench {
    fn repin(&mut self, to: RepinTo) -> Result<bool, Refusal> {
        match self.ask(Command::Repin(repin_to(to)))? {
            Answer::Repinned { moved } => Ok(moved),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_scheduled_or_tried_again_after_a_repin_uses_the_new_digest() {
    let mut bench = chain();
    assert_eq!(held(&bench), [digest(1)]);
    assert_eq!(bench.repin(RepinTo::Digest(digest(2))), Ok(true));
    assert_eq!(module_of(&bench, "a"), digest(1), "what is out keeps its digest");
    assert_eq!(held(&bench), [digest(1), digest(2)], "both are needed until then");
    assert_eq!(bench.repin(RepinTo::Digest(digest(2))), Ok(false), "again it changes nothing");
    bench.fail("a", "BUSY", true);
    bench.advance(60_000);
    bench.timer("retry:2:a").unwrap();
    assert_eq!(module_of(&bench, "a"), digest(2));
    assert_eq!(held(&bench), [digest(2)], "nothing needs the old one");
    bench.succeed("a");
    assert_eq!(module_of(&bench, "b"), digest(2));
    bench.succeed("b");
    assert_eq!(bench.repin(RepinTo::Digest(digest(1))), Err(Refusal::Closed("COMPLETED")));
    bench.check_fold();
}

#[test]
fn a_repin_says_what_it_cannot_do() {
    let mut bench = chain();
    let gone = |refusal: Result<bool, Refusal>| matches!(refusal, Err(Refusal::NoModule(_)));
    assert!(gone(bench.repin(RepinTo::Digest(digest(9)))), "no such digest");
    assert!(gone(bench.repin(RepinTo::Alias(alias("none")))), "no such alias");
    let module = ModuleName::new("m").unwrap();
    bench.facts.described.insert((module, digest(3)), Vec::new().into());
    let refused = bench.repin(RepinTo::Digest(digest(3)));
    assert!(matches!(&refused, Err(Refusal::Unfit(why)) if why.contains("t.work")), "{refused:?}");
    let mut native = self::bench(json!([{ "id": "a", "task": "t.work", "target": "worker" }]));
    assert!(matches!(native.repin(RepinTo::Digest(digest(2))), Err(Refusal::Unfit(_))), "it does not use the module");
    let mut none = Bench::new(&document(json!([{ "id": "a", "task": "t.work" }])));
    assert_eq!(none.repin(RepinTo::Digest(digest(2))), Err(Refusal::NotFound));
}

#[test]
fn a_repin_before_the_first_use_counts() {
    let mut bench = bench(json!([{ "id": "gate", "await": "go" }, { "id": "a", "task": "t.work", "after": ["gate"] }]));
    assert_eq!(bench.repin(RepinTo::Alias(alias("next"))), Ok(true));
    bench.signal("go", "1").unwrap();
    assert_eq!(module_of(&bench, "a"), digest(2));
    bench.check_fold();
}

#[test]
fn a_rollback_moves_only_what_stands_on_what_it_leaves() {
    let mut bench = chain();
    let leaving = |digests: &[u8]| Repin {
        leaving: Some((Alias::live(), digests.iter().map(|n| digest(*n)).collect())),
        ..repin_to(RepinTo::Alias(alias("next")))
    };
    assert_eq!(bench.ask(Command::Repin(leaving(&[7]))), Ok(Answer::Repinned { moved: false }));
    assert_eq!(bench.ask(Command::Repin(leaving(&[7, 1]))), Ok(Answer::Repinned { moved: true }));
    assert_eq!(bench.execution.pins.values().collect::<Vec<_>>(), [&digest(2)]);
}

#[test]
fn a_step_that_names_a_digest_keeps_it_until_the_run_ends() {
    let one = digest(1);
    let mut bench = bench(json!([
        { "id": "a", "task": "t.work", "module": format!("m@{one}") },
        { "id": "b", "task": "t.work", "after": ["a"] },
        { "id": "gate", "await": "go", "after": ["b"] },
    ]));
    bench.succeed("a");
    assert_eq!(bench.repin(RepinTo::Digest(digest(2))), Ok(true));
    bench.succeed("b");
    assert_eq!(held(&bench), [digest(1), digest(2)]);
    bench.check_fold();
}

#[test]
fn a_split_gives_each_execution_one_digest_for_good() {
    let split = [Share { digest: digest(1), percent: 30 }, Share { digest: digest(2), percent: 70 }];
    let module = ModuleName::new("m").unwrap();
    let mut counts = [0, 0];
    for at in 0..400 {
        let mut bench = Bench::new(&document(json!([
            { "id": "a", "task": "t.work" },
            { "id": "b", "task": "t.work", "after": ["a"] },
        ])));
        bench.execution.key.execution = ExecutionId::new(format!("e-{at}")).unwrap();
        bench.facts = facts();
        bench.facts.splits.insert((module.clone(), Alias::live()), split.to_vec());
        bench.start("{}").unwrap();
        let first = module_of(&bench, "a");
        counts[usize::from(first == digest(2))] += 1;
        // The shares are others now: what has begun goes on as it began.
        bench.facts.splits.insert((module.clone(), Alias::live()), vec![Share { digest: digest(2), percent: 100 }]);
        bench.succeed("a");
        assert_eq!(module_of(&bench, "b"), first);
    }
    assert!((80..160).contains(&counts[0]), "about 30 of 100: {counts:?}");
}

#[test]
fn a_run_keeps_the_settings_that_it_first_used_until_it_is_repinned() {
    let module = ModuleName::new("m").unwrap();
    let mut bench = chain();
    let settings = |bench: &Bench, key: &str| bench.unit(key).more().unwrap().module.clone().unwrap().settings;
    assert_eq!(settings(&bench, "a"), 0, "none were set");
    bench.facts.settings.insert(module.clone(), 4);
    bench.fail("a", "BUSY", true);
    bench.advance(60_000);
    bench.timer("retry:2:a").unwrap();
    assert_eq!(settings(&bench, "a"), 0, "what is tried again keeps them");
    assert_eq!(bench.repin(RepinTo::Digest(digest(1))), Ok(true), "the digest stays, the settings move");
    assert_eq!(bench.repin(RepinTo::Digest(digest(1))), Ok(false));
    bench.succeed("a");
    assert_eq!(settings(&bench, "b"), 4);
    bench.facts.settings.insert(module, 5);
    bench.fail("b", "BUSY", true);
    bench.advance(60_000);
    bench.timer("retry:2:b").unwrap();
    assert_eq!(settings(&bench, "b"), 4);
    bench.check_fold();
}
