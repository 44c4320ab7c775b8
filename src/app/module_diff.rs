//! What differs between two digests of a module.

use std::collections::BTreeSet;

use super::{
    App, Error,
    view::{ModuleDiff, TaskChange},
};
use crate::model::{Alias, Digest, ModuleName, TenantId, facts::TaskSpec, row::ModuleRow};

/// How deep schemas are compared for what they require.
const DEPTH_MAX: usize = 8;

impl App {
    /// Compares two digests of a module; an alias stands for what it names.
    pub async fn diff_module(&self, tenant: &TenantId, name: &str, from: &str, to: &str) -> Result<ModuleDiff, Error> {
        let name = ModuleName::new(name)?;
        let from = self.digest_or_alias(tenant, &name, from).await?;
        let to = self.digest_or_alias(tenant, &name, to).await?;
        Ok(diff(&from, &to))
    }

    async fn digest_or_alias(&self, tenant: &TenantId, name: &ModuleName, text: &str) -> Result<ModuleRow, Error> {
        let facts = self.inner.tenants.facts(tenant);
        let named = Alias::new(text).ok().and_then(|alias| facts.modules.get(name)?.get(&alias).cloned());
        let digest = named.map_or_else(|| Digest::new(text), Ok)?;
        let row = self.module_row(tenant, name, Some(&digest)).await?;
        row.ok_or_else(|| super::modules::not_found(name, Some(&digest)))
    }
}

fn diff(from: &ModuleRow, to: &ModuleRow) -> ModuleDiff {
    let only = |these: &[TaskSpec], others: &[TaskSpec]| {
        let only = these.iter().filter(|task| find(others, task).is_none());
        only.map(|task| format!("{}@{}", task.name, task.version)).collect()
    };
    let changed = from.tasks.iter().filter_map(|task| change(task, find(&to.tasks, task)?));
    let imports = |row: &ModuleRow| row.imports.iter().cloned().collect::<BTreeSet<String>>();
    let (imports_from, imports_to) = (imports(from), imports(to));
    ModuleDiff {
        name: from.name.to_string(),
        from: from.digest.to_string(),
        to: to.digest.to_string(),
        from_size_bytes: from.size_bytes,
        to_size_bytes: to.size_bytes,
        tasks_added: only(&to.tasks, &from.tasks),
        tasks_removed: only(&from.tasks, &to.tasks),
        tasks_changed: changed.collect(),
        imports_added: imports_to.difference(&imports_from).cloned().collect(),
        imports_removed: imports_from.difference(&imports_to).cloned().collect(),
    }
}

fn find<'a>(tasks: &'a [TaskSpec], like: &TaskSpec) -> Option<&'a TaskSpec> {
    tasks.iter().find(|task| task.name == like.name)
}

fn change(from: &TaskSpec, to: &TaskSpec) -> Option<TaskChange> {
    let change = TaskChange {
        task: from.name.to_string(),
        from_version: from.version.to_string(),
        to_version: to.version.to_string(),
        input_schema_changed: from.input_schema != to.input_schema,
        output_schema_changed: from.output_schema != to.output_schema,
        newly_required: newly_required(from, to),
    };
    let same = from.version == to.version && !change.input_schema_changed && !change.output_schema_changed;
    (!same).then_some(change)
}

/// Returns the members of a task's input that only the new version requires, each with its path.
pub(super) fn newly_required(from: &TaskSpec, to: &TaskSpec) -> Vec<String> {
    let required = |spec: &TaskSpec| {
        let mut found = BTreeSet::new();
        if let Some(schema) = &spec.input_schema {
            gather_required(schema, "", DEPTH_MAX, &mut found);
        }
        found
    };
    required(to).difference(&required(from)).cloned().collect()
}

fn gather_required(schema: &serde_json::Value, path: &str, depth: usize, found: &mut BTreeSet<String>) {
    for name in schema.get("required").and_then(|names| names.as_array()).into_iter().flatten() {
        if let Some(name) = name.as_str() {
            found.insert(format!("{path}{name}"));
        }
    }
    let members = schema.get("properties").and_then(|members| members.as_object());
    for (name, member) in members.into_iter().flatten().filter(|_| depth > 0) {
        gather_required(member, &format!("{path}{name}."), depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{TaskName, Timestamp, id::ContractVersion};

    fn task(name: &str, version: &str, input: Option<Value>) -> TaskSpec {
        TaskSpec {
            name: TaskName::new(name).unwrap(),
            version: ContractVersion::new(version).unwrap(),
            description: None,
            input_schema: input,
            output_schema: None,
        }
    }

    fn module(content: &[u8], tasks: Vec<TaskSpec>, imports: &[&str]) -> ModuleRow {
        ModuleRow {
            name: ModuleName::new("m").unwrap(),
            digest: Digest::of(content),
            size_bytes: content.len() as u64,
            tasks,
            imports: imports.iter().map(|import| (*import).to_owned()).collect(),
            created_at: Timestamp(0),
        }
    }

    #[test]
    fn a_diff_names_what_differs_and_nothing_else() {
        let old = json!({ "required": ["a"], "properties": { "a": { "properties": { "x": {} } } } });
        let new = json!({ "required": ["a", "b"], "properties": { "a": { "required": ["x"] } } });
        let tasks = vec![task("t.gone", "1.0", None), task("t.same", "1.0", None), task("t.work", "1.0", Some(old))];
        let from = module(b"one", tasks, &["a", "b"]);
        let tasks = vec![task("t.new", "1.0", None), task("t.same", "1.0", None), task("t.work", "2.0", Some(new))];
        let to = module(b"three", tasks, &["b", "c"]);
        let diff = diff(&from, &to);
        assert_eq!((diff.from_size_bytes, diff.to_size_bytes), (3, 5));
        assert_eq!(
            (diff.tasks_added, diff.tasks_removed),
            (vec!["t.new@1.0".to_owned()], vec!["t.gone@1.0".to_owned()])
        );
        assert_eq!((diff.imports_added, diff.imports_removed), (vec!["c".to_owned()], vec!["a".to_owned()]));
        let expected = TaskChange {
            task: "t.work".to_owned(),
            from_version: "1.0".to_owned(),
            to_version: "2.0".to_owned(),
            input_schema_changed: true,
            output_schema_changed: false,
            newly_required: vec!["a.x".to_owned(), "b".to_owned()],
        };
        assert_eq!(diff.tasks_changed, [expected]);
    }
}
