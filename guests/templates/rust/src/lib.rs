//! The module `{{name}}`: each task is a function over serde types, listed in `tasks!`.

use sandkeep_sdk::{TaskError, attempt, log, tasks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

tasks! {
    /// Greets somebody by name.
    "{{task}}.hello" "1.0.0" => hello,
}

/// Whom to greet.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Greeting {
    /// The name, as it shall be written.
    name: String,
}

/// A greeting.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Greeted {
    /// The sentence.
    text: String,
}

/// Greets somebody by name.
pub fn hello(input: Greeting) -> Result<Greeted, TaskError> {
    let name = input.name.trim();
    if name.is_empty() {
        return Err(TaskError::permanent("NAME_MISSING", "there is nobody to greet"));
    }
    log::info(&format!("greeting {name}, attempt {}", attempt::current().attempt));
    Ok(Greeted { text: format!("Hello, {name}!") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input: &str) -> Result<String, String> {
        sandkeep_sdk::run(TASKS, "{{task}}.hello", input).map_err(|error| error.code)
    }

    #[test]
    fn somebody_is_greeted() {
        assert_eq!(call(r#"{"name": " Ada "}"#).as_deref(), Ok(r#"{"text":"Hello, Ada!"}"#));
    }

    #[test]
    fn nobody_is_a_typed_error() {
        assert_eq!(call(r#"{"name": ""}"#), Err("NAME_MISSING".to_owned()));
        assert_eq!(call("{}"), Err("INVALID_INPUT".to_owned()));
    }
}
