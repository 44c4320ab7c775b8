//! Tests of expressions and templates as their callers see them.

mod bombs;
mod expressions;
mod references;
mod scopes;
mod templates;

use std::collections::BTreeMap;

use super::{Budget, Error, Expression, Operand, Scope, StepField};

/// A scope of JSON texts.
#[derive(Default)]
struct Fake {
    roots: BTreeMap<&'static str, String>,
    steps: BTreeMap<(String, StepField), String>,
}

impl Scope for Fake {
    fn root(&self, name: &str) -> Option<Operand<'_>> {
        self.roots.get(name).map(|text| Operand::Json(text))
    }

    fn step(&self, id: &str, field: StepField) -> Option<Operand<'_>> {
        self.steps.get(&(id.to_owned(), field)).map(|text| Operand::Json(text))
    }
}

/// The scope that the table in `semantics.md` is written for.
fn order() -> Fake {
    let input = r#"{"lines":[{"sku":"A1","qty":2},{"sku":"B2","qty":5,"extra":1}],"name":"Ann","nothing":null}"#;
    Fake {
        roots: BTreeMap::from([("input", input.to_owned()), ("now_ms", "1700000000000".to_owned())]),
        steps: BTreeMap::from([
            (("charge".to_owned(), StepField::Output), r#"{"paid":true}"#.to_owned()),
            (("charge".to_owned(), StepField::Status), r#""SUCCEEDED""#.to_owned()),
        ]),
    }
}

fn evaluate_in(scope: &dyn Scope, text: &str) -> Result<String, Error> {
    let expression = Expression::parse(text, "/x").unwrap_or_else(|problem| panic!("{text}: {problem}"));
    expression.evaluate_text(scope, &mut Budget::default())
}

fn evaluate(text: &str) -> Result<String, Error> {
    evaluate_in(&order(), text)
}

/// Checks that an expression gives a JSON text.
#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(evaluate(text).as_deref(), Ok(expected), "{text}");
}

/// Checks that an expression fails, within its budget, with a message that holds `part`.
#[track_caller]
fn check_fails(text: &str, part: &str) {
    let error = evaluate(text).expect_err(text);
    assert!(error.message.contains(part) && !error.over_budget, "{text}: {}", error.message);
}
