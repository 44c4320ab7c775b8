//! Expressions and templates.

use sandkeep::workflow::expression::{Budget, Expression, Operand, Scope, StepField, Template};
use serde_json::Value;

use crate::{SHARE, driver::Fuzz};

const WORDS: &[&str] = &[
    "input",
    "input.lines",
    "steps.charge.output",
    "now_ms",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "&&",
    "||",
    "!",
    "in",
    "'a'",
    "\"b\"",
    "1",
    "0",
    "-9223372036854775808",
    "1.5e308",
    "null",
    "true",
    ".map(x, x)",
    ".filter(x, x > 1)",
    ".all(x, true)",
    "range(1000)",
    ".map(x, range(1000))",
    "size(",
    "sort(",
    "distinct(",
    "join(",
    ".replace('a', 'aa')",
    ".matches('(a*)*b')",
    ".format([",
    "json_encode(",
    "sha256(",
    "merge(",
    "coalesce(",
    "flatten(",
    "string(",
    "int(",
    "double(",
    "timestamp(",
    "duration('1h')",
    "${",
    "}",
    "$${",
    "\\",
    "'''",
    ".split(',')",
    ".substring(1, 2)",
    "has(",
    "x",
];

const SAMPLES: &[&str] = &[
    "input.lines.map(l, l.qty * 2)",
    "input.lines.filter(l, l.qty > 1).map(l, {'sku': l.sku})[0].sku",
    "'%s has %d'.format([input.name, size(input.lines)])",
    "coalesce(input.missing, steps.charge.output.paid, false) ? 1 : 'no'",
    "timestamp(now_ms) + duration('1h') > timestamp(now_ms)",
    r#"{"a": "${ input.name }", "b": ["x ${ now_ms } y", "$${ not }"], "c": {"d": 1}}"#,
    "sort(distinct(range(10).map(x, x % 3)))",
    "json_encode(merge(input.lines[0], {'n': 1})).replace('a', 'b')",
];

/// Something to read.
struct Given;

impl Scope for Given {
    fn root(&self, name: &str) -> Option<Operand<'_>> {
        match name {
            "input" => Some(Operand::Json(
                r#"{"lines":[{"sku":"A1","qty":2},{"sku":"B2","qty":5,"extra":1}],"name":"Ann","nothing":null}"#,
            )),
            "now_ms" => Some(Operand::Json("1700000000000")),
            _ => None,
        }
    }

    fn step(&self, id: &str, field: StepField) -> Option<Operand<'_>> {
        (id == "charge" && matches!(field, StepField::Output)).then_some(Operand::Json(r#"{"paid":true}"#))
    }
}

/// What comes of it is JSON, and the same each time: a replay repeats it.
fn check(evaluate: impl Fn(&mut Budget) -> Option<String>) {
    let (mut first, mut second) = (Budget::default(), Budget::default());
    let text = evaluate(&mut first);
    assert_eq!(text, evaluate(&mut second), "a replay differs");
    assert_eq!(first.steps_spent(), second.steps_spent(), "a replay costs something else");
    if let Some(text) = text {
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("not JSON: {error}: {text}"));
    }
}

#[test]
fn expressions_give_json_or_fail() {
    let samples = SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    Fuzz { name: "expressions", time: SHARE, samples, words: WORDS }.run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(expression) = Expression::parse(&text, "/x") {
            let _ = expression.references();
            check(|budget| expression.evaluate_text(&Given, budget).ok());
        }
        let json = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()));
        if let Ok(template) = Template::parse(&json, "/x") {
            let _ = template.references();
            check(|budget| template.render(&Given, budget).ok());
        }
    });
}
