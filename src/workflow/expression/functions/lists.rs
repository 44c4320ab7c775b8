//! Functions of lists.

use std::cmp::Ordering;

use super::{Outcome, combine, make_text, take_int, take_list, take_text, wrong};
use crate::workflow::expression::budget::{Budget, PLACE_BYTES};
use crate::workflow::expression::order;
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::tree::Operator;
use crate::workflow::expression::value::Value;
use crate::workflow::expression::write;

/// Longest list that `range` makes.
const MAX_RANGE: i64 = 10_000;

/// Adds numbers, or durations; nothing adds up to 0.
pub(super) fn sum(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let items = take_list(&arguments[0], "sum")?;
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    let mut total = summand(first)?.clone();
    for item in rest {
        budget.steps(1)?;
        total = combine(Operator::Add, &total, summand(item)?, budget)?;
    }
    Ok(total)
}

fn summand(value: &Value) -> Result<&Value, Fault> {
    match value {
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) => Ok(value),
        other => Err(wrong("sum", "a list of numbers", other)),
    }
}

pub(super) fn min(arguments: &[Value], budget: &mut Budget) -> Outcome {
    extreme(arguments, "min", Ordering::Less, budget)
}

pub(super) fn max(arguments: &[Value], budget: &mut Budget) -> Outcome {
    extreme(arguments, "max", Ordering::Greater, budget)
}

/// The least or greatest element of a list, or of the arguments themselves.
fn extreme(arguments: &[Value], name: &str, wanted: Ordering, budget: &mut Budget) -> Outcome {
    let items = match arguments {
        [Value::List(items)] => items.as_slice(),
        items => items,
    };
    let Some((first, rest)) = items.split_first() else {
        return Err(Fault::failed(format!("{name}() of an empty list")));
    };
    let what = format!("{name}()");
    // A single element is checked too, so that the outcome does not depend on how many there are.
    order::compare(first, first, &what, budget)?;
    let mut best = first;
    for item in rest {
        budget.steps(1)?;
        if order::compare(item, best, &what, budget)? == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

/// Sorts values of one family, smallest first; equal ones keep their order.
pub(super) fn sort(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let items = take_list(&arguments[0], "sort")?;
    if let Some(first) = items.first() {
        order::compare(first, first, "sort()", budget)?;
    }
    if let Some(other) = items.iter().find(|item| !order::same_family(item, &items[0])) {
        return Err(Fault::failed(format!("sort() cannot order {} and {}", items[0].kind(), other.kind())));
    }
    charge_sort(&arguments[0], items.len(), budget)?;
    let mut sorted = items.as_ref().clone();
    sorted.sort_by(order::total);
    Ok(Value::list(sorted))
}

/// Charges a sort before it runs: each value takes part in about log2(n) comparisons.
fn charge_sort(list: &Value, length: usize, budget: &mut Budget) -> Result<(), Fault> {
    let weight = order::weigh(list, budget)?;
    let rounds = u64::from(usize::BITS - length.leading_zeros());
    budget.steps(weight.saturating_mul(rounds) / 4)?;
    budget.make_places(length)
}

/// Keeps the first of equal elements, in the order of the list.
pub(super) fn distinct(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let items = take_list(&arguments[0], "distinct")?;
    charge_sort(&arguments[0], items.len(), budget)?;
    let mut places: Vec<usize> = (0..items.len()).collect();
    // The sort is stable, so that the first place of equal elements comes first.
    places.sort_by(|left, right| order::total(&items[*left], &items[*right]));
    places.dedup_by(|later, earlier| order::total(&items[*later], &items[*earlier]).is_eq());
    places.sort_unstable();
    Ok(Value::list(places.into_iter().map(|place| items[place].clone()).collect()))
}

/// Replaces elements that are lists by their elements, one level or `depth` levels.
pub(super) fn flatten(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let items = take_list(&arguments[0], "flatten")?;
    let depth = arguments.get(1).map_or(Ok(1), |depth| take_int(depth, "flatten"))?;
    let depth = u32::try_from(depth).map_err(|_| Fault::failed("flatten() takes a depth that is not negative"))?;
    let mut flat = Vec::new();
    flatten_into(items, depth, &mut flat, budget)?;
    Ok(Value::list(flat))
}

/// Recursion goes no deeper than values do.
fn flatten_into(items: &[Value], depth: u32, flat: &mut Vec<Value>, budget: &mut Budget) -> Result<(), Fault> {
    for item in items {
        budget.steps(1)?;
        match item {
            Value::List(inner) if depth > 0 => flatten_into(inner, depth - 1, flat, budget)?,
            item => {
                budget.make(PLACE_BYTES)?;
                flat.push(item.clone());
            }
        }
    }
    Ok(())
}

/// Joins elements as they stand inside a text, with a separator between them.
pub(super) fn join(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let items = take_list(&arguments[0], "join")?;
    let separator = arguments.get(1).map_or(Ok(""), |text| take_text(text, "join").map(AsRef::as_ref))?;
    let mut texts = Vec::with_capacity(items.len());
    let mut length = separator.len().saturating_mul(items.len().saturating_sub(1));
    for item in items.iter() {
        budget.steps(1)?;
        budget.make(PLACE_BYTES)?;
        let text = write::plain_text(item, budget)?;
        length = length.saturating_add(text.len());
        texts.push(text);
    }
    make_text(length, budget, || texts.join(separator))
}

/// `range(n)` from 0, `range(from, to)`, the end excluded.
pub(super) fn range(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let (from, to) = match arguments {
        [from, to] => (take_int(from, "range")?, take_int(to, "range")?),
        arguments => (0, take_int(&arguments[0], "range")?),
    };
    let length = to.saturating_sub(from).max(0);
    if length > MAX_RANGE {
        return Err(Fault::failed(format!("range() makes at most {MAX_RANGE} elements, not {length}")));
    }
    // At most MAX_RANGE, so that nothing is cut.
    budget.make_places(length as usize)?;
    Ok(Value::list((from..to).map(Value::Int).collect()))
}
