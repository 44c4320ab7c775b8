//! Equality and order of values.
//!
//! Equality never fails: values of different types are unequal, numbers are compared by value, lists and maps deeply.
//! Order exists within a family only (numbers, texts, bools, bytes, times): `"69" > 100` is an error, never a guess.

use std::cmp::Ordering;

use super::budget::Budget;
use super::number::Number;
use super::problem::Fault;
use super::value::{Key, Value};

/// Returns whether two values are equal, charging a step for each element compared.
pub(super) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<bool, Fault> {
    budget.steps(1)?;
    match (left, right) {
        (Value::List(left), Value::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            all(left.iter().zip(right.iter()), |(left, right)| equal(left, right, budget))
        }
        (Value::Map(left), Value::Map(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            all(left.entries().iter().zip(right.entries()), |((left_key, left), (right_key, right))| {
                budget.scan(left_key.weight())?;
                Ok(left_key == right_key && equal(left, right, budget)?)
            })
        }
        _ => {
            budget.scan(shared_length(left, right))?;
            Ok(compare_same_family(left, right) == Some(Ordering::Equal))
        }
    }
}

fn all<T>(items: impl Iterator<Item = T>, mut test: impl FnMut(T) -> Result<bool, Fault>) -> Result<bool, Fault> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Orders two values of one family; an error names both types.
pub(super) fn compare(left: &Value, right: &Value, what: &str, budget: &mut Budget) -> Result<Ordering, Fault> {
    budget.scan(shared_length(left, right))?;
    match (left, right) {
        (Value::Null | Value::Type(_), _) => None,
        _ => compare_same_family(left, right),
    }
    .ok_or_else(|| Fault::failed(format!("{what} cannot order {} and {}", left.kind(), right.kind())))
}

/// Compares scalars; `None` when they are of different families, or no scalars.
fn compare_same_family(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Type(left), Value::Type(right)) => Some(left.cmp(right)),
        _ => Some(Number::of(left)?.compare(Number::of(right)?)),
    }
}

fn shared_length(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => left.len().min(right.len()),
        (Value::Bytes(left), Value::Bytes(right)) => left.len().min(right.len()),
        _ => 0,
    }
}

/// A total order over all values, in which exactly the equal ones are equal. Its cost is bounded by [`weigh`].
pub(super) fn total(left: &Value, right: &Value) -> Ordering {
    family(left).cmp(&family(right)).then_with(|| match (left, right) {
        (Value::List(left), Value::List(right)) => {
            sequence(left.iter().zip(right.iter()).map(|(left, right)| total(left, right)))
                .then(left.len().cmp(&right.len()))
        }
        (Value::Map(left), Value::Map(right)) => {
            let pairs = left.entries().iter().zip(right.entries());
            sequence(pairs.map(|(left, right)| entry(left, right))).then(left.len().cmp(&right.len()))
        }
        _ => compare_same_family(left, right).unwrap_or(Ordering::Equal),
    })
}

fn entry(left: &(Key, Value), right: &(Key, Value)) -> Ordering {
    left.0.cmp(&right.0).then_with(|| total(&left.1, &right.1))
}

fn sequence(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn family(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Uint(_) | Value::Double(_) => 2,
        Value::Text(_) => 3,
        Value::Bytes(_) => 4,
        Value::List(_) => 5,
        Value::Map(_) => 6,
        Value::Timestamp(_) => 7,
        Value::Duration(_) => 8,
        Value::Type(_) => 9,
    }
}

/// Returns whether two values can be ordered by [`compare`].
pub(super) fn same_family(left: &Value, right: &Value) -> bool {
    family(left) == family(right)
}

/// Counts the values within a value, and its bytes by the 64, charging a step for each value. A value shared many
/// times counts many times, as it would be walked.
pub(super) fn weigh(value: &Value, budget: &mut Budget) -> Result<u64, Fault> {
    budget.steps(1)?;
    Ok(1 + match value {
        Value::Text(text) => text.len() as u64 / 64,
        Value::Bytes(bytes) => bytes.len() as u64 / 64,
        Value::List(items) => sum(items.iter(), |item| weigh(item, budget))?,
        Value::Map(map) => {
            sum(map.entries().iter(), |(key, value)| Ok(key.weight() as u64 / 64 + weigh(value, budget)?))?
        }
        _ => 0,
    })
}

fn sum<T>(items: impl Iterator<Item = T>, mut weight: impl FnMut(T) -> Result<u64, Fault>) -> Result<u64, Fault> {
    let mut total = 0_u64;
    for item in items {
        total = total.saturating_add(weight(item)?);
    }
    Ok(total)
}
