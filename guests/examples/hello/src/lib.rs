//! The smallest module: two greetings.

use sandkeep_sdk::{TaskError, log, tasks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most names that one greeting takes.
const NAMES_MAX: usize = 100;

tasks! {
    /// Greets somebody by name.
    "greet.hello" "1.0.0" => hello,
    /// Greets everybody of a list in one sentence.
    "greet.everybody" "1.0.0" => everybody,
}

/// Whom to greet.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Greeting {
    /// The name, as it shall be written.
    name: String,
}

/// Whom to greet at once.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Greetings {
    /// The names, in the order of the greeting.
    names: Vec<String>,
}

/// A greeting.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Greeted {
    /// The sentence.
    text: String,
}

/// Greets somebody by name.
pub fn hello(input: Greeting) -> Result<Greeted, TaskError> {
    let name = checked(&input.name)?;
    log::info(&format!("greeting {name}"));
    Ok(Greeted { text: format!("Hello, {name}!") })
}

/// Greets everybody of a list in one sentence.
pub fn everybody(input: Greetings) -> Result<Greeted, TaskError> {
    if input.names.len() > NAMES_MAX {
        return Err(TaskError::permanent("TOO_MANY_NAMES", format!("one greeting takes {NAMES_MAX} names at most")));
    }
    let names = input.names.iter().map(|name| checked(name)).collect::<Result<Vec<_>, _>>()?;
    match names.as_slice() {
        [] => Err(TaskError::permanent("NAME_MISSING", "there is nobody to greet")),
        [name] => Ok(Greeted { text: format!("Hello, {name}!") }),
        [first @ .., last] => Ok(Greeted { text: format!("Hello, {} and {last}!", first.join(", ")) }),
    }
}

fn checked(name: &str) -> Result<&str, TaskError> {
    match name.trim() {
        "" => Err(TaskError::permanent("NAME_MISSING", "there is nobody to greet")),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted(names: &[&str]) -> Result<String, String> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        everybody(Greetings { names }).map(|greeted| greeted.text).map_err(|error| error.code)
    }

    #[test]
    fn one_name_is_greeted() {
        let greeted = hello(Greeting { name: " Ada ".to_owned() }).expect("there is a name");
        assert_eq!(greeted.text, "Hello, Ada!");
    }

    #[test]
    fn names_are_listed_in_a_sentence() {
        assert_eq!(greeted(&["Ada"]).as_deref(), Ok("Hello, Ada!"));
        assert_eq!(greeted(&["Ada", "Grace"]).as_deref(), Ok("Hello, Ada and Grace!"));
        assert_eq!(greeted(&["Ada", "Grace", "Mary"]).as_deref(), Ok("Hello, Ada, Grace and Mary!"));
    }

    #[test]
    fn greeting_nobody_is_an_error() {
        assert_eq!(
            hello(Greeting { name: "  ".to_owned() }).map_err(|error| error.code).err().as_deref(),
            Some("NAME_MISSING")
        );
        assert_eq!(greeted(&[]), Err("NAME_MISSING".to_owned()));
        assert_eq!(greeted(&["Ada", ""]), Err("NAME_MISSING".to_owned()));
        assert_eq!(greeted(&["Ada"; NAMES_MAX + 1]), Err("TOO_MANY_NAMES".to_owned()));
    }
}
