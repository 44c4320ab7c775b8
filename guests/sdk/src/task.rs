//! The table of a module's tasks, and calling one by name with JSON texts.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::TaskError;

/// A task of a module, as [`tasks!`](crate::tasks!) lists it.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// The name a workflow calls it by.
    pub name: &'static str,
    /// The version of its contract, `major.minor.patch`.
    pub version: &'static str,
    /// The lines of the doc comment above it in the list.
    pub doc: &'static [&'static str],
    /// Returns the JSON Schema of its input.
    pub input_schema: fn() -> String,
    /// Returns the JSON Schema of its output.
    pub output_schema: fn() -> String,
    /// Calls it with a JSON text and returns one.
    pub call: fn(&str) -> Result<String, TaskError>,
}

impl Task {
    /// Returns its doc comment as one text; none where there is no comment.
    pub fn description(&self) -> Option<String> {
        let lines: Vec<&str> = self.doc.iter().map(|line| line.trim()).collect();
        let text = lines.join("\n");
        (!text.is_empty()).then_some(text)
    }
}

/// Calls the task of that name with a JSON text and returns its output as one.
///
/// # Errors
///
/// The task's own error; `UNKNOWN_TASK` when `tasks` has none of that name; `INVALID_INPUT` when `input` does not fit
/// its type, `INVALID_OUTPUT` when its output has no JSON form.
pub fn run(tasks: &[Task], name: &str, input: &str) -> Result<String, TaskError> {
    match tasks.iter().find(|task| task.name == name) {
        Some(task) => (task.call)(input),
        None => Err(TaskError::permanent("UNKNOWN_TASK", format!("this module has no task `{name}`"))),
    }
}

/// Calls `function` with a JSON text and returns its output as one.
pub fn call<I, O>(function: fn(I) -> Result<O, TaskError>, input: &str) -> Result<String, TaskError>
where
    I: DeserializeOwned,
    O: Serialize,
{
    let input =
        serde_json::from_str(input).map_err(|error| TaskError::permanent("INVALID_INPUT", error.to_string()))?;
    let output = function(input)?;
    serde_json::to_string(&output).map_err(|error| TaskError::permanent("INVALID_OUTPUT", error.to_string()))
}

/// Returns the JSON Schema of what `function` accepts.
pub fn input_schema<I: JsonSchema, O>(_function: fn(I) -> Result<O, TaskError>) -> String {
    schema_text::<I>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the JSON Schema of what `function` returns.
pub fn output_schema<I, O: JsonSchema>(_function: fn(I) -> Result<O, TaskError>) -> String {
    schema_text::<O>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema_text<T: JsonSchema>(settings: SchemaSettings) -> String {
    settings.into_generator().into_root_schema_for::<T>().to_value().to_string()
}

#[cfg(test)]
mod tests;
