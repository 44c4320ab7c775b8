//! Conversions between types, as in CEL. A number becomes text as JSON writes it.

use std::sync::Arc;

use super::{Outcome, take_int, wrong};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::number;
use crate::workflow::expression::problem::{Fault, quote};
use crate::workflow::expression::time;
use crate::workflow::expression::value::Value;
use crate::workflow::expression::write;

/// From a number without its fraction, a text of digits, or a timestamp as epoch seconds.
pub(super) fn int(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Int(int) => Ok(Value::Int(*int)),
        Value::Uint(uint) => i64::try_from(*uint).map(Value::Int).map_err(|_| out_of_range("int", uint)),
        Value::Double(double) => {
            let whole = double.trunc();
            // 2^63 itself is a double and is past the range.
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
                Ok(Value::Int(whole as i64))
            } else {
                Err(out_of_range("int", double))
            }
        }
        Value::Text(text) => parse(text, "int", budget, |text| text.parse().ok().map(Value::Int)),
        Value::Timestamp(timestamp) => Ok(Value::Int(timestamp.as_second())),
        other => Err(wrong("int", "a number, string or timestamp", other)),
    }
}

pub(super) fn uint(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Uint(uint) => Ok(Value::Uint(*uint)),
        Value::Int(int) => u64::try_from(*int).map(Value::Uint).map_err(|_| out_of_range("uint", int)),
        Value::Double(double) => {
            let whole = double.trunc();
            if (0.0..18_446_744_073_709_551_616.0).contains(&whole) {
                Ok(Value::Uint(whole as u64))
            } else {
                Err(out_of_range("uint", double))
            }
        }
        Value::Text(text) => parse(text, "uint", budget, |text| text.parse().ok().map(Value::Uint)),
        other => Err(wrong("uint", "a number or string", other)),
    }
}

pub(super) fn double(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Double(double) => Ok(Value::Double(*double)),
        Value::Int(int) => Ok(Value::Double(*int as f64)),
        Value::Uint(uint) => Ok(Value::Double(*uint as f64)),
        Value::Text(text) => parse(text, "double", budget, |text| number::finite(text.parse().ok()?).ok()),
        other => Err(wrong("double", "a number or string", other)),
    }
}

pub(super) fn boolean(arguments: &[Value], _: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Bool(flag) => Ok(Value::Bool(*flag)),
        Value::Text(text) => match text.as_ref() {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unreadable("bool", text)),
        },
        other => Err(wrong("bool", "a bool or string", other)),
    }
}

/// From anything but lists, maps, null and types; bytes must be UTF-8.
pub(super) fn string(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Bytes(bytes) => {
            budget.make(bytes.len())?;
            let text = std::str::from_utf8(bytes).map_err(|_| Fault::failed("string(): the bytes are not UTF-8"))?;
            Ok(Value::text(text))
        }
        Value::List(_) | Value::Map(_) | Value::Null | Value::Type(_) => {
            Err(wrong("string", "a scalar (json_encode() takes any value)", &arguments[0]))
        }
        Value::Uint(uint) => {
            budget.make(20)?;
            Ok(Value::text(&uint.to_string()))
        }
        scalar => write::plain_text(scalar, budget).map(Value::Text),
    }
}

pub(super) fn bytes(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Bytes(bytes) => Ok(Value::Bytes(Arc::clone(bytes))),
        Value::Text(text) => {
            budget.make(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        other => Err(wrong("bytes", "a string or bytes", other)),
    }
}

/// From an RFC 3339 text or epoch seconds.
pub(super) fn timestamp(arguments: &[Value], budget: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Timestamp(timestamp) => Ok(Value::Timestamp(*timestamp)),
        Value::Text(text) => {
            budget.scan(text.len())?;
            time::parse_timestamp(text).map(Value::Timestamp)
        }
        seconds => time::from_seconds(take_int(seconds, "timestamp")?).map(Value::Timestamp),
    }
}

pub(super) fn duration(arguments: &[Value], _: &mut Budget) -> Outcome {
    match &arguments[0] {
        Value::Duration(duration) => Ok(Value::Duration(*duration)),
        Value::Text(text) => time::parse_duration(text).map(Value::Duration),
        other => Err(wrong("duration", "a string", other)),
    }
}

pub(super) fn type_of(arguments: &[Value], _: &mut Budget) -> Outcome {
    Ok(Value::Type(arguments[0].kind()))
}

/// Types are known at run time only, so that `dyn` changes nothing.
pub(super) fn dynamic(arguments: &[Value], _: &mut Budget) -> Outcome {
    Ok(arguments[0].clone())
}

fn parse(text: &str, name: &str, budget: &mut Budget, parse: impl FnOnce(&str) -> Option<Value>) -> Outcome {
    budget.scan(text.len())?;
    parse(text).ok_or_else(|| unreadable(name, text))
}

fn unreadable(name: &str, text: &str) -> Fault {
    Fault::failed(format!("{name}() cannot read {}", quote(text)))
}

fn out_of_range(name: &str, value: &impl std::fmt::Display) -> Fault {
    Fault::failed(format!("{name}(): {value} is out of range"))
}
