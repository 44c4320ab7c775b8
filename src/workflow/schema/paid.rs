//! Validators that pay for what they do, and stop when nothing is left.
//!
//! The crate has no budget of its own. So every schema of a copy gets a keyword of ours that costs, at the end of its
//! `allOf`: that is before its alternatives, the one place where a check goes on after a failure and work can double.
//! When the budget is spent the walk is abandoned by unwinding, the one way out of it.

use std::{cell::Cell, panic};

use jsonschema::{Keyword, ValidationError, Validator, paths::Location};
use serde_json::{Map, Value, json};

use super::{options, shape};

/// The keyword that costs: `[shallow, deep]`. It is added to copies, so it can hide nothing that an author wrote.
const KEYWORD: &str = "x-sandkeep-cost";

/// A validator that works within a budget.
pub struct Paid(Validator);

/// Compiles `schema` so that its checks can be stopped.
pub fn compile(mut schema: Value) -> Result<Paid, ValidationError<'static>> {
    shape::for_each_schema(&mut schema, &mut |schema| {
        let cost = json!({KEYWORD: [shape::branches(schema), deep(schema)]});
        if let Value::Array(all) = schema.entry("allOf").or_insert_with(|| json!([])) {
            all.push(cost);
        }
    });
    options().with_keyword(KEYWORD, cost).build(&schema).map(Paid)
}

impl Paid {
    /// Runs `work` until `budget` is spent; none when it was.
    pub fn within<T>(&self, budget: usize, work: impl FnOnce(&Validator) -> T) -> Option<T> {
        LEFT.set(budget);
        // A validator does not change while it validates, so nothing half-done is left behind.
        panic::catch_unwind(panic::AssertUnwindSafe(|| work(&self.0))).ok()
    }
}

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// What is thrown when the budget is spent.
struct Spent;

fn pay(amount: usize) {
    match LEFT.get().checked_sub(amount) {
        Some(left) => LEFT.set(left),
        // Not a panic: no message is printed and no hook runs.
        None => panic::resume_unwind(Box::new(Spent)),
    }
}

/// Returns what listing costs: the JSON values of the schema, which findings quote.
fn deep(schema: &Map<String, Value>) -> usize {
    let mut size = 1;
    let mut todo: Vec<&Value> = schema.values().collect();
    while let Some(value) = todo.pop() {
        size += 1;
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => todo.extend(members.values()),
            _ => {}
        }
    }
    size
}

/// The keyword that accepts everything and costs.
struct Cost {
    shallow: usize,
    deep: usize,
}

fn cost<'a>(
    _: &'a Map<String, Value>,
    cost: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let part =
        |at: usize| cost.get(at).and_then(Value::as_u64).and_then(|part| usize::try_from(part).ok()).unwrap_or(1);
    Ok(Box::new(Cost { shallow: part(0), deep: part(1) }))
}

impl<'i> Keyword<'i> for Cost {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        let breadth = match instance {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        pay(self.deep + breadth);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        pay(self.shallow);
        true
    }
}
