//! Functions of texts. Positions and sizes count Unicode code points.

use super::{Outcome, make_text, take_int, take_text, wrong};
use crate::workflow::expression::budget::{Budget, PLACE_BYTES};
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::value::Value;

pub(super) fn size(arguments: &[Value], budget: &mut Budget) -> Outcome {
    Ok(Value::length(match &arguments[0] {
        Value::Text(text) => {
            budget.scan(text.len())?;
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        other => return Err(wrong("size", "a string, bytes, list or map", other)),
    }))
}

pub(super) fn contains(arguments: &[Value], budget: &mut Budget) -> Outcome {
    test(arguments, "contains", budget, |text, part| text.contains(part))
}

pub(super) fn starts_with(arguments: &[Value], budget: &mut Budget) -> Outcome {
    test(arguments, "startsWith", budget, |text, part| text.starts_with(part))
}

pub(super) fn ends_with(arguments: &[Value], budget: &mut Budget) -> Outcome {
    test(arguments, "endsWith", budget, |text, part| text.ends_with(part))
}

fn test(arguments: &[Value], name: &str, budget: &mut Budget, test: fn(&str, &str) -> bool) -> Outcome {
    let (text, part) = (take_text(&arguments[0], name)?, take_text(&arguments[1], name)?);
    budget.scan(text.len() + part.len())?;
    Ok(Value::Bool(test(text, part)))
}

pub(super) fn lower(arguments: &[Value], budget: &mut Budget) -> Outcome {
    change_case(arguments, "lower", budget, str::to_lowercase)
}

pub(super) fn upper(arguments: &[Value], budget: &mut Budget) -> Outcome {
    change_case(arguments, "upper", budget, str::to_uppercase)
}

fn change_case(arguments: &[Value], name: &str, budget: &mut Budget, change: fn(&str) -> String) -> Outcome {
    let text = take_text(&arguments[0], name)?;
    budget.scan(text.len())?;
    budget.make(text.len())?;
    let changed = change(text);
    // A letter becomes at most three: what it adds is charged when it is known.
    budget.make(changed.len().saturating_sub(text.len()))?;
    Ok(Value::Text(changed.into()))
}

pub(super) fn trim(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let text = take_text(&arguments[0], "trim")?;
    budget.scan(text.len())?;
    let trimmed = text.trim();
    if trimmed.len() == text.len() {
        return Ok(arguments[0].clone());
    }
    make_text(trimmed.len(), budget, || trimmed.to_owned())
}

/// `split(text, separator, limit?)`: without a separator the code points; at most `limit` parts when it is not negative.
pub(super) fn split(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let (text, separator) = (take_text(&arguments[0], "split")?, take_text(&arguments[1], "split")?);
    let limit = take_limit(arguments.get(2), "split")?;
    budget.scan(text.len())?;
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let mut parts = Vec::new();
    let mut push = |part: &str| {
        budget.make(PLACE_BYTES + part.len())?;
        parts.push(Value::text(part));
        Ok::<(), Fault>(())
    };
    if separator.is_empty() {
        split_points(text, limit, push)?;
    } else {
        text.splitn(limit, separator.as_ref()).try_for_each(&mut push)?;
    }
    Ok(Value::list(parts))
}

/// Splits into code points; the last part is the rest.
fn split_points(text: &str, limit: usize, mut push: impl FnMut(&str) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut rest = text;
    for _ in 1..limit {
        let Some(first) = rest.chars().next() else { return Ok(()) };
        let (point, after) = rest.split_at(first.len_utf8());
        push(point)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { push(rest) }
}

/// `replace(text, from, to, limit?)`: at most `limit` replacements when it is not negative.
pub(super) fn replace(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let text = take_text(&arguments[0], "replace")?;
    let (from, to) = (take_text(&arguments[1], "replace")?, take_text(&arguments[2], "replace")?);
    let limit = take_limit(arguments.get(3), "replace")?;
    budget.scan(2 * text.len())?;
    let count = text.matches(from.as_ref()).take(limit).count();
    let length = (text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len()));
    make_text(length, budget, || text.replacen(from.as_ref(), to, count))
}

fn take_limit(argument: Option<&Value>, function: &str) -> Result<usize, Fault> {
    // A negative limit is none.
    argument.map_or(Ok(usize::MAX), |value| Ok(usize::try_from(take_int(value, function)?).unwrap_or(usize::MAX)))
}
