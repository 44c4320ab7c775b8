//! Checks what a module says it does.

use std::collections::HashSet;

use crate::model::{ContractVersion, TaskName, facts::TaskSpec, json};

use super::{
    super::{bindings::types, inert},
    Rejected,
};

/// The longest description, in bytes; a longer one is cut.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// The longest schema, in bytes.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// All texts together, in bytes.
const TOTAL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns the tasks of a module, or what is wrong with the first wrong one.
pub(in super::super) fn tasks(described: Vec<types::TaskSpec>, tasks_max: usize) -> Result<Vec<TaskSpec>, Rejected> {
    if described.is_empty() {
        return Err(refused("there is none"));
    }
    if described.len() > tasks_max {
        return Err(refused(format!("there are {}, the limit is {tasks_max}", described.len())));
    }
    let total_bytes: usize = described.iter().map(size_bytes).sum();
    if total_bytes > TOTAL_BYTES_MAX {
        return Err(refused(format!("all have {total_bytes} bytes together, the limit is {TOTAL_BYTES_MAX}")));
    }
    let tasks = described.into_iter().map(task).collect::<Result<Vec<_>, _>>()?;
    let mut names = HashSet::new();
    match tasks.iter().find(|task| !names.insert(&task.name)) {
        Some(task) => Err(refused(format!("`{}` is there twice", task.name))),
        None => Ok(tasks),
    }
}

fn task(described: types::TaskSpec) -> Result<TaskSpec, Rejected> {
    let name = TaskName::new(&described.name).map_err(refused)?;
    let of_task = |problem: String| refused(format!("`{name}`: {problem}"));
    let version = ContractVersion::new(&described.version).map_err(|invalid| of_task(invalid.to_string()))?;
    let input_schema = schema("input", described.input_schema).map_err(of_task)?;
    let output_schema = schema("output", described.output_schema).map_err(of_task)?;
    let description = described.description.map(|text| inert::paragraph(text, DESCRIPTION_BYTES_MAX));
    Ok(TaskSpec { name, version, description, input_schema, output_schema })
}

fn schema(what: &str, text: Option<String>) -> Result<Option<serde_json::Value>, String> {
    let Some(text) = text else { return Ok(None) };
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("its {what} schema has {} bytes, the limit is {SCHEMA_BYTES_MAX}", text.len()));
    }
    match json::parse(text.as_bytes()) {
        Ok(schema) if schema.is_object() || schema.is_boolean() => Ok(Some(schema)),
        Ok(_) => Err(format!("its {what} schema is neither an object nor true or false")),
        Err(error) => Err(format!("its {what} schema is not JSON: {error}")),
    }
}

fn size_bytes(task: &types::TaskSpec) -> usize {
    let optional = [&task.description, &task.input_schema, &task.output_schema];
    task.name.len() + task.version.len() + optional.into_iter().flatten().map(String::len).sum::<usize>()
}

fn refused(problem: impl ToString) -> Rejected {
    Rejected::Task { problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, version: &str, schema: Option<&str>) -> types::TaskSpec {
        types::TaskSpec {
            name: name.to_owned(),
            version: version.to_owned(),
            description: Some("adds\0 up".to_owned()),
            input_schema: schema.map(str::to_owned),
            output_schema: None,
        }
    }

    #[test]
    fn good_tasks_are_taken_as_they_are() {
        let tasks = tasks(vec![described("a.b", "1.2.3", Some("{}")), described("a.c", "1", Some("true"))], 2).unwrap();
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks[0].description.as_deref(), Some("adds\\u{0} up"));
    }

    #[test]
    fn all_texts_together_have_a_limit() {
        let schema = format!("\"{}\"", "x".repeat(SCHEMA_BYTES_MAX - 2));
        let many: Vec<_> = (0..65).map(|at| described(&format!("t{at}"), "1", Some(&schema))).collect();
        let refused = tasks(many, 100).unwrap_err().to_string();
        assert!(refused.contains("bytes together"), "{refused}");
    }

    #[test]
    fn the_first_wrong_task_is_named() {
        let long = format!("\"{}\"", "x".repeat(SCHEMA_BYTES_MAX));
        for (wrong, problem) in [
            (vec![], "none"),
            (vec![described("a", "1", None); 3], "the limit is 2"),
            (vec![described("a", "1", None); 2], "`a` is there twice"),
            (vec![described("../a", "1", None)], "../a"),
            (vec![described("a", "one", None)], "`a`: contract version `one`"),
            (vec![described("a", "1", Some("{"))], "not JSON"),
            (vec![described("a", "1", Some("7"))], "neither an object"),
            (vec![described("a", "1", Some(&long))], "the limit is"),
        ] {
            let refused = tasks(wrong, 2).unwrap_err().to_string();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
