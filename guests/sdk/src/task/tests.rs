//! A small module, called natively through the table that `tasks!` makes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{TaskError, run};

#[derive(Deserialize, JsonSchema)]
struct Division {
    dividend: i64,
    #[serde(default = "one")]
    divisor: i64,
}

#[derive(Serialize, JsonSchema)]
struct Quotient {
    quotient: i64,
}

fn one() -> i64 {
    1
}

fn divide(input: Division) -> Result<Quotient, TaskError> {
    input
        .dividend
        .checked_div(input.divisor)
        .map(|quotient| Quotient { quotient })
        .ok_or_else(|| TaskError::permanent("DIVISION_BY_ZERO", "the divisor is zero"))
}

fn unwritable(_input: ()) -> Result<BTreeMap<(u8, u8), u8>, TaskError> {
    Ok(BTreeMap::from([((1, 2), 3)]))
}

mod module {
    use super::{divide, unwritable};

    crate::tasks! {
        /// Divides two numbers,
        /// rounding towards zero.
        "math.divide" "1.2.0" => divide,
        "math.unwritable" "0.1.0" => unwritable,
    }
}

use module::TASKS;

#[test]
fn task_runs_by_name_on_json_texts() {
    assert_eq!(run(TASKS, "math.divide", r#"{"dividend": 7, "divisor": 2}"#).as_deref(), Ok(r#"{"quotient":3}"#));
}

#[test]
fn failures_carry_their_codes() {
    let cases = [
        ("math.divide", r#"{"dividend": 7, "divisor": 0}"#, "DIVISION_BY_ZERO"),
        ("math.divide", r#"{"dividend": "7"}"#, "INVALID_INPUT"),
        ("math.divide", "{", "INVALID_INPUT"),
        ("math.unwritable", "null", "INVALID_OUTPUT"),
        ("math.multiply", "{}", "UNKNOWN_TASK"),
    ];
    for (task, input, code) in cases {
        let error = run(TASKS, task, input).expect_err("every case fails");
        assert_eq!((error.code.as_str(), error.retryable), (code, false), "{task} {input}");
    }
}

#[test]
fn doc_comments_become_descriptions() {
    assert_eq!(TASKS[0].description().as_deref(), Some("Divides two numbers,\nrounding towards zero."));
    assert_eq!(TASKS[1].description(), None);
    assert_eq!((TASKS[0].name, TASKS[0].version), ("math.divide", "1.2.0"));
}

#[test]
fn schemas_come_from_the_types() {
    let input: Value = serde_json::from_str(&(TASKS[0].input_schema)()).expect("a schema is JSON");
    assert_eq!(input["required"], json!(["dividend"]));
    assert_eq!(input["properties"]["divisor"]["type"], "integer");
    let output: Value = serde_json::from_str(&(TASKS[0].output_schema)()).expect("a schema is JSON");
    assert_eq!(output["required"], json!(["quotient"]));
}
