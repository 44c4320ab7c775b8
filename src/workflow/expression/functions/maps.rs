//! Functions of maps and paths.

use std::sync::Arc;

use super::{Outcome, take_map, take_text};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::problem::{Fault, quote};
use crate::workflow::expression::read;
use crate::workflow::expression::tree::Segment;
use crate::workflow::expression::value::{Map, Value};

/// The keys in order.
pub(super) fn keys(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let map = take_map(&arguments[0], "keys")?;
    budget.make_places(map.len())?;
    budget.steps(map.len() as u64 / 8)?;
    Ok(Value::list(map.entries().iter().map(|(key, _)| key.to_value()).collect()))
}

/// The values in the order of their keys.
pub(super) fn values(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let map = take_map(&arguments[0], "values")?;
    budget.make_places(map.len())?;
    budget.steps(map.len() as u64 / 8)?;
    Ok(Value::list(map.entries().iter().map(|(_, value)| value.clone()).collect()))
}

/// Joins maps; of equal keys the last map's value counts. Maps inside are not joined.
pub(super) fn merge(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let mut entries = Vec::new();
    for argument in arguments {
        let map = take_map(argument, "merge")?;
        budget.make_places(2 * map.len())?;
        budget.steps(map.len() as u64)?;
        entries.extend_from_slice(map.entries());
    }
    Ok(Value::Map(Arc::new(Map::from_entries(entries))))
}

/// `get(value, path, default)` for values that are known; a node of its own takes what is missing.
pub(super) fn get(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let found = get_path(&arguments[0], &arguments[1], budget)?;
    Ok(found.unwrap_or_else(|| arguments[2].clone()))
}

/// `coalesce` for values that are known; a node of its own takes what is missing.
pub(super) fn coalesce(arguments: &[Value], _: &mut Budget) -> Outcome {
    Ok(arguments.iter().find(|value| !matches!(value, Value::Null)).cloned().unwrap_or(Value::Null))
}

/// Follows a path of keys and indices, `a.b.0`; `None` when it leads nowhere or to null.
pub(in crate::workflow::expression) fn get_path(
    value: &Value,
    path: &Value,
    budget: &mut Budget,
) -> Result<Option<Value>, Fault> {
    let path = take_text(path, "get")?;
    budget.scan(path.len())?;
    let mut reached = value;
    for name in path.split('.') {
        budget.steps(1)?;
        let index = if matches!(reached, Value::List(_)) { name.parse().ok() } else { None };
        let segment = index.map_or_else(|| Segment::Name(name.into()), Segment::Index);
        reached = match read::follow(reached, &segment) {
            Ok(inner) => inner,
            Err(read::Stop::Scalar(kind)) => {
                return Err(Fault::failed(format!("get() cannot read {} of a value of type {kind}", quote(name))));
            }
            Err(_) => return Ok(None),
        };
    }
    Ok(if matches!(reached, Value::Null) { None } else { Some(reached.clone()) })
}
