//! Which steps of registered workflows a new version of a module does not serve as the old one did.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Error, Inner, module_diff::newly_required, view::BrokenContract};
use crate::{
    model::{
        Alias, Digest, Facts, ModuleName, TaskName, TenantId, facts::TaskSpec, id::ContractVersion, row::WorkflowRow,
    },
    workflow::{Definition, Kind, ModuleRef, TargetChoice, Task},
};

/// The most documents that are looked at, newest first.
const DOCUMENTS_MAX: usize = 1_000;
/// How many documents one read takes; each may have a mebibyte.
const PAGE: usize = 16;
/// The most steps that an answer names.
const WARNINGS_MAX: usize = 50;

/// Which module moves, by which alias.
type Moved<'a> = (&'a ModuleName, &'a Alias);

impl Inner {
    /// Returns the steps of registered workflows that a move of an alias breaks: a task is gone, its contract version is not
    /// served any more, or its input must have what it did not need before.
    pub(super) async fn broken_contracts(
        &self,
        tenant: &TenantId,
        moved: (&ModuleName, &Alias),
        from: &[Digest],
        to: &[Digest],
    ) -> Result<Vec<BrokenContract>, Error> {
        let changes = changes(&self.tenants.facts(tenant), moved.0, from, to);
        let mut broken = Vec::new();
        if changes.is_empty() {
            return Ok(broken);
        }
        let mut after = None;
        let mut seen = 0;
        while seen < DOCUMENTS_MAX && broken.len() < WARNINGS_MAX {
            let page = self.store.list_workflows(tenant, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_at, last.name.clone(), last.version.clone()));
            seen += page.len();
            for row in page.iter().filter(|row| mentions(row, &changes)) {
                // One that cannot be read has other worries.
                let Ok(definition) = self.definition(tenant, &row.name, &row.version).await else { continue };
                broken.extend(broken_steps(&definition, moved, &changes));
            }
        }
        broken.truncate(WARNINGS_MAX);
        Ok(broken)
    }
}

/// How the serving of a task changes.
struct Change {
    from: Vec<ContractVersion>,
    /// None: this digest does not describe the task.
    to: Vec<Option<ContractVersion>>,
    /// Members of the input that were not needed before.
    required: Vec<String>,
}

type Changes = BTreeMap<TaskName, Change>;

/// The tasks of the old digests that the new ones may not serve as well.
fn changes(facts: &Facts, module: &ModuleName, from: &[Digest], to: &[Digest]) -> Changes {
    let tasks = |digest: &Digest| facts.described.get(&(module.clone(), digest.clone())).cloned().unwrap_or_default();
    let from: Vec<_> = from.iter().map(tasks).collect();
    let to: Vec<_> = to.iter().map(tasks).collect();
    let mut changes = Changes::new();
    for name in from.iter().flat_map(|tasks| tasks.iter()).map(|task| &task.name) {
        if changes.contains_key(name) {
            continue;
        }
        let change = Change::of(name, &from, &to);
        if !change.is_none() {
            changes.insert(name.clone(), change);
        }
    }
    changes
}

impl Change {
    fn of(name: &TaskName, from: &[Arc<[TaskSpec]>], to: &[Arc<[TaskSpec]>]) -> Self {
        let from: Vec<_> = from.iter().filter_map(|tasks| find(tasks, name)).collect();
        let to: Vec<_> = to.iter().map(|tasks| find(tasks, name)).collect();
        let required: BTreeSet<String> = match from.first() {
            Some(from) => to.iter().flatten().flat_map(|to| newly_required(from, to)).collect(),
            None => BTreeSet::new(),
        };
        Self {
            from: from.into_iter().map(|task| task.version.clone()).collect(),
            to: to.into_iter().map(|task| task.map(|task| task.version.clone())).collect(),
            required: required.into_iter().collect(),
        }
    }

    fn is_none(&self) -> bool {
        let same = |to: &Option<ContractVersion>| to.as_ref().is_some_and(|to| self.from.iter().all(|from| from == to));
        self.required.is_empty() && self.to.iter().all(same)
    }
}

fn find<'a>(tasks: &'a [TaskSpec], name: &TaskName) -> Option<&'a TaskSpec> {
    tasks.iter().find(|task| task.name == *name)
}

/// A cheap look before a document is read.
fn mentions(row: &WorkflowRow, changes: &Changes) -> bool {
    changes.keys().any(|task| row.document.contains(task.as_str()))
}

fn broken_steps(definition: &Definition, moved: Moved<'_>, changes: &Changes) -> Vec<BrokenContract> {
    let mut broken = Vec::new();
    for index in definition.plan.indexes() {
        let Kind::Task(task) = &definition.step(index).kind else { continue };
        let Some(change) = changes.get(&task.task).filter(|_| is_served(task, moved)) else { continue };
        let asked = definition.contract(&task.task).and_then(|contract| contract.version.as_ref());
        if let Some(problem) = problem(change, asked) {
            broken.push(BrokenContract {
                workflow: definition.name.to_string(),
                version: definition.version.to_string(),
                step: definition.plan.step(index).id.to_string(),
                task: task.task.to_string(),
                problem,
            });
        }
    }
    broken
}

/// Whether a step is served through the alias.
fn is_served(task: &Task, (module, alias): Moved<'_>) -> bool {
    match &task.module {
        Some(ModuleRef::Alias(name, by)) => name == module && by == alias,
        Some(ModuleRef::Digest(..)) => false,
        None => task.target != TargetChoice::Worker && *alias == Alias::live(),
    }
}

fn problem(change: &Change, asked: Option<&ContractVersion>) -> Option<String> {
    if change.to.iter().any(Option::is_none) {
        return Some("the new version does not describe the task".to_owned());
    }
    if let Some(asked) = asked {
        let served = change.from.iter().any(|version| version.serves(asked));
        let lost = change.to.iter().flatten().find(|version| !version.serves(asked));
        if let Some(version) = lost.filter(|_| served) {
            return Some(format!("the workflow asks for version {asked}; the new version of the module has {version}"));
        }
    }
    let required = change.required.join("`, `");
    (!required.is_empty()).then(|| format!("its input must have `{required}` now"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(version: &str, required: &[&str]) -> TaskSpec {
        TaskSpec {
            name: TaskName::new("t.work").unwrap(),
            version: ContractVersion::new(version).unwrap(),
            description: None,
            input_schema: Some(json!({ "required": required })),
            output_schema: None,
        }
    }

    fn found(
        contract: serde_json::Value,
        step: serde_json::Value,
        old: TaskSpec,
        new: Option<TaskSpec>,
    ) -> Vec<String> {
        let mut step = step;
        step["id"] = json!("a");
        step["task"] = json!("t.work");
        let mut document = json!({ "ir_version": "sandkeep-ir/1", "name": "w", "version": "1", "steps": [step] });
        if !contract.is_null() {
            document["contracts"] = json!({ "t.work": { "version": contract } });
        }
        let parsed =
            crate::workflow::parse(document.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error:?}"));
        let (module, old_digest, new_digest) = (ModuleName::new("m").unwrap(), Digest::of(b"old"), Digest::of(b"new"));
        let mut facts = Facts::default();
        facts.described.insert((module.clone(), old_digest.clone()), vec![old].into());
        facts.described.insert((module.clone(), new_digest.clone()), new.into_iter().collect());
        let changes = changes(&facts, &module, &[old_digest], &[new_digest]);
        let broken = broken_steps(&parsed.definition, (&module, &Alias::live()), &changes);
        broken.into_iter().map(|broken| broken.problem).collect()
    }

    #[test]
    fn steps_that_a_new_version_breaks_are_named() {
        let old = || spec("1.2", &["n"]);
        let none: &[&str] = &[];
        for (what, contract, step, new, expected) in [
            ("same", json!(null), json!({}), Some(old()), none),
            ("newer", json!("1.1"), json!({}), Some(spec("1.3", &["n"])), none),
            ("less required", json!(null), json!({}), Some(spec("1.2", &[])), none),
            ("gone", json!(null), json!({}), None, &["the new version does not describe the task"]),
            ("gone, other alias", json!(null), json!({ "module": "m@beta" }), None, none),
            ("gone, other module", json!(null), json!({ "module": "other" }), None, none),
            ("gone, by a worker", json!(null), json!({ "target": "worker" }), None, none),
            (
                "major",
                json!("1.1"),
                json!({ "module": "m" }),
                Some(spec("2.0", &["n"])),
                &["the workflow asks for version 1.1; the new version of the module has 2.0"],
            ),
            ("major, none asked", json!(null), json!({}), Some(spec("2.0", &["n"])), none),
            ("more required", json!(null), json!({}), Some(spec("1.2", &["n", "m"])), &["its input must have `m` now"]),
        ] {
            assert_eq!(found(contract, step, old(), new), expected, "{what}");
        }
    }
}
