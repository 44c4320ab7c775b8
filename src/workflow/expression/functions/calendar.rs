//! Fields of timestamps and durations, CEL's getters. A zone is UTC or a fixed offset.

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::{Outcome, take_text, wrong};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::time;
use crate::workflow::expression::value::Value;

/// How a getter reads a point in time.
type Field = fn(DateTime) -> i64;

pub(super) fn full_year(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getFullYear", |civil| civil.year().into())
}

/// From 0 for January.
pub(super) fn month(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getMonth", |civil| i64::from(civil.month()) - 1)
}

/// From 1.
pub(super) fn date(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getDate", |civil| civil.day().into())
}

/// From 0.
pub(super) fn day_of_month(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getDayOfMonth", |civil| i64::from(civil.day()) - 1)
}

/// From 0 for Sunday.
pub(super) fn day_of_week(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getDayOfWeek", |civil| civil.weekday().to_sunday_zero_offset().into())
}

/// From 0.
pub(super) fn day_of_year(arguments: &[Value], _: &mut Budget) -> Outcome {
    civil_field(arguments, "getDayOfYear", |civil| i64::from(civil.day_of_year()) - 1)
}

pub(super) fn hours(arguments: &[Value], _: &mut Budget) -> Outcome {
    field(arguments, "getHours", |civil| civil.hour().into(), |duration| duration.as_secs() / 3_600)
}

pub(super) fn minutes(arguments: &[Value], _: &mut Budget) -> Outcome {
    field(arguments, "getMinutes", |civil| civil.minute().into(), |duration| duration.as_secs() / 60)
}

pub(super) fn seconds(arguments: &[Value], _: &mut Budget) -> Outcome {
    field(arguments, "getSeconds", |civil| civil.second().into(), |duration| duration.as_secs())
}

/// Of the second, in both cases.
pub(super) fn milliseconds(arguments: &[Value], _: &mut Budget) -> Outcome {
    let of_duration = |duration: SignedDuration| i64::from(duration.subsec_nanos() / 1_000_000);
    field(arguments, "getMilliseconds", |civil| i64::from(civil.subsec_nanosecond() / 1_000_000), of_duration)
}

/// A field that durations have too.
fn field(arguments: &[Value], name: &str, of_time: Field, of_duration: fn(SignedDuration) -> i64) -> Outcome {
    match arguments {
        [Value::Duration(duration)] => Ok(Value::Int(of_duration(*duration))),
        _ => civil_field(arguments, name, of_time),
    }
}

fn civil_field(arguments: &[Value], name: &str, field: Field) -> Outcome {
    let Value::Timestamp(timestamp) = &arguments[0] else {
        return Err(wrong(name, "a timestamp", &arguments[0]));
    };
    let zone = arguments.get(1).map(|zone| take_text(zone, name)).transpose()?;
    time::civil(*timestamp, zone.map(AsRef::as_ref)).map(|civil| Value::Int(field(civil)))
}
