//! Documents that are refused, each problem with its place, and documents that are not.

mod accepted;
mod hostile;
mod page;
mod refused;

use serde_json::{Value, json};

use super::*;
use crate::{
    model::Millis,
    workflow::{
        definition::{Kind, Span, Task},
        graph,
    },
};

/// A small document with `fields` over it.
fn with(fields: Value) -> Value {
    let mut document = json!({
        "ir_version": "sandkeep-ir/1",
        "name": "order",
        "version": "1.0.0",
        "signals": {"approve": {}},
        "steps": [{"id": "reserve", "task": "stock.reserve"}]
    });
    for (key, value) in fields.as_object().expect("fields are an object") {
        document[key] = value.clone();
    }
    document
}

/// A small document whose second step is `step`.
fn with_step(step: Value) -> Value {
    let mut full = json!({"id": "second"});
    for (key, value) in step.as_object().expect("a step is an object") {
        full[key] = value.clone();
    }
    with(json!({"steps": [{"id": "reserve", "task": "stock.reserve"}, full]}))
}

fn problems(document: &Value) -> Vec<Problem> {
    match parse(document.to_string().as_bytes()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

fn definition(document: &Value) -> Definition {
    match parse(document.to_string().as_bytes()) {
        Ok(parsed) => parsed.definition,
        Err(problems) => panic!("{document:#} is refused: {problems:#?}"),
    }
}

/// Expects exactly one problem.
fn refused(document: &Value, pointer: &str, code: Code, part: &str) {
    let found = problems(document);
    assert_eq!(found.len(), 1, "{document}: {found:#?}");
    let problem = &found[0];
    assert_eq!((problem.pointer.as_str(), problem.code), (pointer, code), "{document}: {problem:?}");
    assert!(problem.message.contains(part), "{part:?} is not in {problem:?}");
}

fn task(definition: &Definition, at: usize) -> &Task {
    match &definition.steps[at].kind {
        Kind::Task(task) => task,
        other => panic!("not a task: {other:?}"),
    }
}

fn fixed(span: &Span) -> Millis {
    match span {
        Span::Fixed(span) => *span,
        Span::Template(_) => panic!("it is a template"),
    }
}
