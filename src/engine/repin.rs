//! Command `Repin`: what is scheduled or tried again from now on uses another digest of a module.

use std::collections::BTreeSet;

use super::{
    command::{Refusal, Repin, RepinTo},
    decision::Answer,
    resolve,
    turn::Turn,
};
use crate::{
    model::{Alias, Digest, ModuleName, event::Repinned},
    workflow::{Kind, Task},
};

/// Moves the pins of a module. What is ready or out keeps the digest it has. Pins that are there already are no change.
pub(super) fn decide(turn: &mut Turn<'_>, repin: &Repin) -> Result<Answer, Refusal> {
    if turn.execution.created.is_none() {
        return Err(Refusal::NotFound);
    }
    if turn.execution.status.is_terminal() {
        return Err(Refusal::Closed(turn.execution.status.as_str()));
    }
    let digest = digest(turn, repin)?;
    let users = users(turn, &repin.module);
    let moved = moved(turn, repin, &users, &digest);
    if moved.is_empty() {
        return match repin.leaving {
            None if users.is_empty() => {
                Err(Refusal::Unfit(format!("the execution uses no alias of the module `{}`", repin.module)))
            }
            _ => Ok(Answer::Repinned { moved: false }),
        };
    }
    must_serve(turn, repin, &users, &moved, &digest)?;
    let settings = turn.facts.settings_of(&repin.module);
    turn.record(Repinned { module: repin.module.clone(), digest, aliases: moved.into_iter().collect(), settings });
    Ok(Answer::Repinned { moved: true })
}

fn digest(turn: &Turn<'_>, repin: &Repin) -> Result<Digest, Refusal> {
    let module = &repin.module;
    let digest = match &repin.to {
        RepinTo::Digest(digest) => digest,
        RepinTo::Alias(alias) => {
            let gone = || Refusal::NoModule(format!("there is no module `{module}` with the alias `{alias}`"));
            turn.facts.named(&turn.execution.key, module, alias).ok_or_else(gone)?
        }
    };
    if turn.facts.described.contains_key(&(module.clone(), digest.clone())) {
        return Ok(digest.clone());
    }
    Err(Refusal::NoModule(format!("the module `{module}` has no digest `{digest}`")))
}

/// The steps that have not ended and are served through an alias of the module, or will be.
fn users<'a>(turn: &Turn<'a>, module: &ModuleName) -> Vec<(Alias, &'a Task)> {
    let definition = turn.definition;
    let open = definition.plan.indexes().filter(|index| !turn.execution.unit(*index).status.is_ended());
    let user = |index| {
        let Kind::Task(task) = &definition.step(index).kind else { return None };
        let pin = turn.execution.unit(index).more().and_then(|more| more.module.as_ref());
        let alias = match pin {
            Some(pin) if pin.name.as_ref() == Some(module) => pin.alias.clone(),
            Some(_) => None,
            None => resolve::alias_of(turn, task, module),
        };
        alias.map(|alias| (alias, &**task))
    };
    open.filter_map(user).collect()
}

/// The aliases that mean something else for the run until now; all, where newer settings go with them.
fn moved(turn: &Turn<'_>, repin: &Repin, users: &[(Alias, &Task)], digest: &Digest) -> BTreeSet<Alias> {
    let pins = &turn.execution.pins;
    let pin = |alias: &Alias| pins.get(&(repin.module.clone(), alias.clone()));
    if let Some((alias, leaving)) = &repin.leaving {
        let leaves = pin(alias).is_some_and(|pin| pin != digest && leaving.contains(pin));
        return leaves.then(|| alias.clone()).into_iter().collect();
    }
    let pinned = pins.keys().filter(|(module, _)| *module == repin.module).map(|(_, alias)| alias);
    let all = pinned.chain(users.iter().map(|(alias, _)| alias));
    let settings = turn.execution.settings.get(&repin.module);
    let is_outdated = settings.is_some_and(|settings| *settings != turn.facts.settings_of(&repin.module));
    all.filter(|alias| is_outdated || pin(alias) != Some(digest)).cloned().collect()
}

fn must_serve(
    turn: &Turn<'_>,
    repin: &Repin,
    users: &[(Alias, &Task)],
    moved: &BTreeSet<Alias>,
    digest: &Digest,
) -> Result<(), Refusal> {
    let key = (repin.module.clone(), digest.clone());
    let tasks = turn.facts.described.get(&key).map(|tasks| &**tasks).unwrap_or_default();
    let unserved = |(alias, task): &&(Alias, &Task)| moved.contains(alias) && !resolve::serves_step(turn, tasks, task);
    match users.iter().find(unserved) {
        None => Ok(()),
        Some((_, task)) => Err(Refusal::Unfit(format!(
            "the module `{}@{digest}` does not describe the task `{}` in a version that the workflow asks for",
            repin.module, task.task
        ))),
    }
}
