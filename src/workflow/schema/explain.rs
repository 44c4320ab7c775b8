//! Naming what does not fit.
//!
//! When the crate lists violations, each branch of an alternative keeps a copy of the value, and alternatives that lead
//! to each other double with every level. So violations come from a second compilation of a rewritten copy, made when
//! the first is needed. In it every alternative stands behind two `not`, which makes the crate decide instead of list.

use std::sync::OnceLock;

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    paid::{self, Paid},
    shape, stack,
};
use crate::model::code::cut;

/// How many violations one check lists.
pub const VIOLATIONS_MAX: usize = 20;

/// The longest sentence of a violation, in bytes.
const MESSAGE_BYTES_MAX: usize = 256;

/// What one listing may cost: about the number of JSON values that its findings could copy.
const BUDGET: usize = 200_000;

/// One way in which a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where in the value: a JSON pointer.
    pub pointer: String,
    /// What is wrong, without the value itself.
    pub message: String,
}

impl Violation {
    pub(super) fn new(pointer: &str, message: String) -> Self {
        Self { pointer: cut(pointer.to_owned(), MESSAGE_BYTES_MAX), message: cut(message, MESSAGE_BYTES_MAX) }
    }
}

/// The second compilation, made at the first violation.
#[derive(Default)]
pub struct Explainer(OnceLock<Option<Paid>>);

impl Explainer {
    /// Lists what keeps `value` from fitting `source`. Never empty: the caller knows that it does not fit.
    pub fn explain(&self, source: &Value, value: &Value) -> Vec<Violation> {
        stack::with_room(|| self.list(source, value))
            .filter(|violations| !violations.is_empty())
            .unwrap_or_else(|| vec![Violation::new("", "the value does not fit its schema".into())])
    }

    fn list(&self, source: &Value, value: &Value) -> Vec<Violation> {
        let Some(validator) = self.0.get_or_init(|| compile(source)) else { return Vec::new() };
        let all =
            validator.within(BUDGET, |v| v.iter_errors(value).take(VIOLATIONS_MAX).map(|e| violation(&e)).collect());
        let first = || validator.within(BUDGET, |v| v.validate(value).err().iter().map(violation).collect());
        all.or_else(first).unwrap_or_default()
    }
}

fn compile(source: &Value) -> Option<Paid> {
    let mut copy = source.clone();
    let mut hidden = false;
    shape::for_each_schema(&mut copy, &mut |schema| hidden |= hide_alternatives(schema));
    if hidden {
        // What is left over cannot be known without the alternatives.
        shape::for_each_schema(&mut copy, &mut |schema| {
            schema.remove("unevaluatedProperties");
            schema.remove("unevaluatedItems");
        });
    }
    paid::compile(copy).ok()
}

/// Moves `anyOf` and `oneOf` behind two `not`, at the end of `allOf`.
fn hide_alternatives(schema: &mut Map<String, Value>) -> bool {
    let hidden: Vec<Value> = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| Some(json!({"not": {"not": {keyword: schema.remove(keyword)?}}})))
        .collect();
    let any = !hidden.is_empty();
    if any && let Value::Array(all) = schema.entry("allOf").or_insert_with(|| json!([])) {
        all.extend(hidden);
    }
    any
}

fn violation(error: &ValidationError<'_>) -> Violation {
    let message = match error.kind() {
        ValidationErrorKind::Not { schema } => match schema.get("not") {
            Some(hidden) if hidden.get("anyOf").is_some() => "fits none of the alternatives of `anyOf`".into(),
            Some(hidden) if hidden.get("oneOf").is_some() => "does not fit exactly one of `oneOf`".into(),
            _ => "fits what `not` excludes".into(),
        },
        _ => error.masked_with("the value").to_string(),
    };
    Violation::new(error.instance_path().as_str(), message)
}
