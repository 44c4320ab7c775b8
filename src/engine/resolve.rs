//! Who does a task's work: resolved when its unit is scheduled, from the facts, and kept for retries and redeliveries.

use super::turn::Turn;
use crate::{
    model::{
        Alias, Digest, Failure, ModuleName, TaskName, code, event::ModulePin, facts::TaskSpec, id::ContractVersion,
    },
    workflow::{ModuleRef, TargetChoice, Task},
};

/// Returns the module that serves the task; none: it is left to native workers.
///
/// The named module; else a built-in, unless the tenant may shadow it and does; else the tenant's live module that describes
/// the task; else workers. The first digest used of a module and alias is the run's pin for them, as is the first revision
/// of its settings.
pub(super) fn module(turn: &Turn<'_>, task: &Task) -> Result<Option<ModulePin>, Failure> {
    let asked = turn.definition.contract(&task.task).and_then(|contract| contract.version.as_ref());
    if let Some(reference) = &task.module {
        return named(turn, task, reference, asked).map(Some);
    }
    if task.target == TargetChoice::Worker {
        return Ok(None);
    }
    let live = turn.facts.live.get(&task.task);
    if let Some(builtin) = &turn.facts.builtin
        && serves(&builtin.tasks, &task.task, asked)
        && !(turn.facts.shadow_builtins && live.is_some())
    {
        return Ok(Some(ModulePin { name: None, alias: None, digest: builtin.digest.clone(), settings: 0 }));
    }
    if let Some(name) = live {
        return aliased(turn, task, name, &Alias::live(), asked).map(Some);
    }
    match task.target {
        TargetChoice::Module => Err(not_found(format!("no module serves the task `{}`", task.task))),
        TargetChoice::Auto | TargetChoice::Worker => Ok(None),
    }
}

fn named(
    turn: &Turn<'_>,
    task: &Task,
    reference: &ModuleRef,
    asked: Option<&ContractVersion>,
) -> Result<ModulePin, Failure> {
    match reference {
        ModuleRef::Alias(name, alias) => aliased(turn, task, name, alias, asked),
        ModuleRef::Digest(name, digest) => {
            must_describe(turn, task, name, digest, asked)?;
            Ok(pin(turn, name, None, digest))
        }
    }
}

fn aliased(
    turn: &Turn<'_>,
    task: &Task,
    name: &ModuleName,
    alias: &Alias,
    asked: Option<&ContractVersion>,
) -> Result<ModulePin, Failure> {
    let pinned = turn.execution.pins.get(&(name.clone(), alias.clone()));
    let current = || turn.facts.named(&turn.execution.key, name, alias);
    let digest = pinned
        .or_else(current)
        .ok_or_else(|| not_found(format!("there is no module `{name}` with the alias `{alias}`")))?;
    must_describe(turn, task, name, digest, asked)?;
    Ok(pin(turn, name, Some(alias), digest))
}

fn pin(turn: &Turn<'_>, name: &ModuleName, alias: Option<&Alias>, digest: &Digest) -> ModulePin {
    let settings = turn.execution.settings.get(name).copied();
    ModulePin {
        name: Some(name.clone()),
        alias: alias.cloned(),
        digest: digest.clone(),
        settings: settings.unwrap_or_else(|| turn.facts.settings_of(name)),
    }
}

fn must_describe(
    turn: &Turn<'_>,
    task: &Task,
    name: &ModuleName,
    digest: &Digest,
    asked: Option<&ContractVersion>,
) -> Result<(), Failure> {
    let described = turn.facts.described.get(&(name.clone(), digest.clone()));
    let tasks = described.ok_or_else(|| not_found(format!("the module `{name}` has no digest `{digest}`")))?;
    if serves(tasks, &task.task, asked) {
        return Ok(());
    }
    let version = asked.map(|version| format!(" in a version that serves `{version}`")).unwrap_or_default();
    Err(not_found(format!("the module `{name}@{digest}` does not describe the task `{}`{version}", task.task)))
}

/// Returns the pin that the next attempt of a unit has: that of the attempt before, unless the run was repinned.
pub(super) fn again(turn: &Turn<'_>, pin: &ModulePin) -> ModulePin {
    let Some(name) = &pin.name else { return pin.clone() };
    let moved = pin.alias.as_ref().and_then(|alias| turn.execution.pins.get(&(name.clone(), alias.clone())));
    let settings = turn.execution.settings.get(name).copied().unwrap_or(pin.settings);
    ModulePin { digest: moved.unwrap_or(&pin.digest).clone(), settings, ..pin.clone() }
}

/// Returns the alias of `module` through which a unit is served, or will be when it is scheduled.
pub(super) fn alias_of(turn: &Turn<'_>, task: &Task, module: &ModuleName) -> Option<Alias> {
    match &task.module {
        Some(ModuleRef::Alias(name, alias)) => (name == module).then(|| alias.clone()),
        Some(ModuleRef::Digest(..)) => None,
        None if task.target == TargetChoice::Worker => None,
        None => (turn.facts.live.get(&task.task) == Some(module)).then(Alias::live),
    }
}

/// Whether one of these tasks serves a step's.
pub(super) fn serves_step(turn: &Turn<'_>, tasks: &[TaskSpec], task: &Task) -> bool {
    let asked = turn.definition.contract(&task.task).and_then(|contract| contract.version.as_ref());
    serves(tasks, &task.task, asked)
}

fn serves(tasks: &[TaskSpec], task: &TaskName, asked: Option<&ContractVersion>) -> bool {
    tasks.iter().any(|spec| spec.name == *task && asked.is_none_or(|asked| spec.version.serves(asked)))
}

fn not_found(message: String) -> Failure {
    Failure::engine(code::MODULE_NOT_FOUND, message)
}
