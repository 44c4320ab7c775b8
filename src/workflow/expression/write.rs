//! Writing values as compact JSON text, charged before it is made.

use std::sync::Arc;

use serde::Serialize;

use super::budget::Budget;
use super::problem::Fault;
use super::time;
use super::value::{Key, Map, Value};

/// Deepest nesting of a result, its outermost list or map included. JSON readers with the usual limit of 128, that of
/// `serde_json` among them, read what is below it.
pub(super) const MAX_DEPTH: usize = 127;

/// Writes `value` at the end of `out`; `depth` lists and maps of the result are open around it.
pub(super) fn write_json(out: &mut Vec<u8>, value: &Value, depth: usize, budget: &mut Budget) -> Result<(), Fault> {
    budget.steps(1)?;
    match value {
        Value::List(items) => write_list(out, items, depth + 1, budget),
        Value::Map(map) => write_map(out, map, depth + 1, budget),
        scalar => write_scalar(out, scalar, budget),
    }
}

fn write_list(out: &mut Vec<u8>, items: &[Value], depth: usize, budget: &mut Budget) -> Result<(), Fault> {
    check_depth(depth)?;
    budget.make(items.len() + 2)?;
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_json(out, item, depth, budget)?;
    }
    out.push(b']');
    Ok(())
}

fn write_map(out: &mut Vec<u8>, map: &Map, depth: usize, budget: &mut Budget) -> Result<(), Fault> {
    check_depth(depth)?;
    budget.make(2 * map.len() + 2)?;
    out.push(b'{');
    for (index, (key, value)) in map.entries().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let Key::Text(key) = key else {
            return Err(Fault::failed(format!("a map with keys of type {} is not JSON", key.to_value().kind())));
        };
        write_text(out, key, budget)?;
        out.push(b':');
        write_json(out, value, depth, budget)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_scalar(out: &mut Vec<u8>, value: &Value, budget: &mut Budget) -> Result<(), Fault> {
    match value {
        Value::Text(text) => write_text(out, text, budget),
        Value::Timestamp(_) | Value::Duration(_) => write_text(out, &time::to_text(value), budget),
        Value::Null => write_plain(out, &(), budget),
        Value::Bool(flag) => write_plain(out, flag, budget),
        Value::Int(int) => write_plain(out, int, budget),
        Value::Uint(uint) if i64::try_from(*uint).is_err() => {
            Err(Fault::failed(format!("the result {uint} is past the range of integers")))
        }
        Value::Uint(uint) => write_plain(out, uint, budget),
        Value::Double(double) => write_plain(out, double, budget),
        Value::Bytes(_) => Err(Fault::failed("a result of type bytes is not JSON: use base64_encode() or string()")),
        other => Err(Fault::failed(format!("a result of type {} is not JSON", other.kind()))),
    }
}

/// Writes a number, a bool or null.
fn write_plain(out: &mut Vec<u8>, value: &impl Serialize, budget: &mut Budget) -> Result<(), Fault> {
    let before = out.len();
    append(out, value);
    budget.make(out.len() - before)
}

/// Writes a text in quotes.
fn write_text(out: &mut Vec<u8>, text: &str, budget: &mut Budget) -> Result<(), Fault> {
    budget.make(2)?;
    out.push(b'"');
    write_escaped(out, text, budget)?;
    out.push(b'"');
    Ok(())
}

/// Writes a text as it stands between quotes.
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str, budget: &mut Budget) -> Result<(), Fault> {
    budget.make(text.len())?;
    let before = out.len();
    append_escaped(out, text);
    // An escape is at most six bytes for one: what it adds is charged when it is known.
    budget.make(out.len() - before - text.len())
}

/// Appends a text as it stands between quotes, free of charge.
pub(super) fn append_escaped(out: &mut Vec<u8>, text: &str) {
    let before = out.len();
    append(out, text);
    out.pop();
    out.remove(before);
}

fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("a scalar is written to memory");
}

fn check_depth(depth: usize) -> Result<(), Fault> {
    if depth > MAX_DEPTH {
        return Err(Fault::failed(format!("the result has more than {MAX_DEPTH} lists and maps inside one another")));
    }
    Ok(())
}

/// Copies JSON text that the scope holds, without reading it beyond its depth.
pub(super) fn copy_json(out: &mut Vec<u8>, text: &str, depth: usize, budget: &mut Budget) -> Result<(), Fault> {
    budget.make(text.len())?;
    if depth > 0 {
        budget.scan(text.len())?;
        check_depth(depth + nesting(text))?;
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Counts the lists and maps inside one another in a JSON text.
pub(super) fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the JSON text of a value that stands alone.
pub(super) fn json_text(value: &Value, budget: &mut Budget) -> Result<String, Fault> {
    let mut out = Vec::new();
    write_json(&mut out, value, 0, budget)?;
    Ok(into_text(out))
}

/// Returns a value as it stands inside a text: texts as they are, all else as JSON.
pub(super) fn plain_text(value: &Value, budget: &mut Budget) -> Result<Arc<str>, Fault> {
    match value {
        Value::Text(text) => Ok(Arc::clone(text)),
        Value::Timestamp(_) | Value::Duration(_) => {
            let text = time::to_text(value);
            budget.make(text.len())?;
            Ok(text.into())
        }
        other => json_text(other, budget).map(Arc::from),
    }
}

/// Makes a text of bytes written by this file.
pub(super) fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("only whole texts are written")
}

/// Returns a value as a `serde_json` one.
pub(super) fn to_json(value: &Value, budget: &mut Budget) -> Result<serde_json::Value, Fault> {
    let text = json_text(value, budget)?;
    serde_json::from_str(&text).map_err(|error| Fault::failed(format!("the result is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_ignores_brackets_in_texts() {
        let rows = [("1", 0), ("[]", 1), (r#"{"a":[1,{"b":[]}]}"#, 4), (r#"["[[[\"[",[]]"#, 2), (r#""\\""#, 0)];
        for (text, expected) in rows {
            assert_eq!(nesting(text), expected, "{text}");
        }
    }

    #[test]
    fn results_at_the_depth_limit_can_be_read_again() {
        let mut value = Value::Null;
        for _ in 0..MAX_DEPTH {
            value = Value::list(vec![value]);
        }
        assert!(to_json(&value, &mut Budget::default()).is_ok());
        assert!(to_json(&Value::list(vec![value]), &mut Budget::default()).is_err());
    }
}
