//! Operators that need more than an order: arithmetic, joining, and `in`.

use std::sync::Arc;

use super::{Outcome, make_text};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::number::{self, Number};
use crate::workflow::expression::order;
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::time;
use crate::workflow::expression::tree::Operator;
use crate::workflow::expression::value::{Key, Value};

/// Applies one of `+ - * / %`.
pub(in crate::workflow::expression) fn combine(
    operator: Operator,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
) -> Outcome {
    if let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) {
        return number::arithmetic(operator, left, right);
    }
    let done = match operator {
        Operator::Add => add(left, right, budget),
        Operator::Subtract => subtract(left, right),
        _ => None,
    };
    done.unwrap_or_else(|| {
        Err(Fault::failed(format!("`{}` does not take {} and {}", operator.symbol(), left.kind(), right.kind())))
    })
}

fn add(left: &Value, right: &Value, budget: &mut Budget) -> Option<Outcome> {
    Some(match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            make_text(left.len() + right.len(), budget, || [left.as_ref(), right.as_ref()].concat())
        }
        (Value::List(left), Value::List(right)) => {
            budget.make_places(left.len() + right.len()).map(|()| Value::list([left.as_slice(), right].concat()))
        }
        (Value::Bytes(left), Value::Bytes(right)) => budget
            .make(left.len() + right.len())
            .map(|()| Value::Bytes(Arc::from([left.as_ref(), right.as_ref()].concat()))),
        (Value::Timestamp(timestamp), Value::Duration(duration))
        | (Value::Duration(duration), Value::Timestamp(timestamp)) => {
            time::add(*timestamp, *duration).map(Value::Timestamp)
        }
        (Value::Duration(left), Value::Duration(right)) => time::add_durations(*left, *right).map(Value::Duration),
        _ => return None,
    })
}

fn subtract(left: &Value, right: &Value) -> Option<Outcome> {
    Some(match (left, right) {
        (Value::Timestamp(left), Value::Timestamp(right)) => Ok(Value::Duration(left.duration_since(*right))),
        (Value::Timestamp(left), Value::Duration(right)) => time::add(*left, -*right).map(Value::Timestamp),
        (Value::Duration(left), Value::Duration(right)) => time::add_durations(*left, -*right).map(Value::Duration),
        _ => return None,
    })
}

/// `element in list`, `key in map`.
pub(in crate::workflow::expression) fn contains_element(
    element: &Value,
    container: &Value,
    budget: &mut Budget,
) -> Outcome {
    match container {
        Value::List(items) => {
            for item in items.iter() {
                if order::equal(element, item, budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Value::Map(map) => {
            budget.scan(if let Value::Text(key) = element { key.len() } else { 0 })?;
            Ok(Value::Bool(Key::of(element).is_some_and(|key| map.get(&key).is_some())))
        }
        other => Err(Fault::failed(format!("`in` looks into a list or map, not {}", other.kind()))),
    }
}
