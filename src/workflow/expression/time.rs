//! Points in time and durations as texts, in CEL's forms. Time zones are UTC and fixed offsets only: a table of names
//! would make a value depend on the machine that evaluates it.

use std::fmt::Write as _;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use super::problem::{Fault, quote};
use super::value::Value;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// Longest duration in seconds, about 10,000 years, as in CEL.
const MAX_SECONDS: i128 = 315_576_000_000;
/// 0001-01-01T00:00:00Z, the first second that RFC 3339 can write.
const FIRST_SECOND: i64 = -62_135_596_800;

/// Returns the RFC 3339 text of a timestamp or CEL's text of a duration; other values have none.
pub(super) fn to_text(value: &Value) -> String {
    match value {
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::Duration(duration) => duration_text(*duration),
        _ => String::new(),
    }
}

/// `90m` is `5400s`, 1.5 ms is `0.0015s`.
fn duration_text(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, fraction) = (nanos.abs() / NANOS_PER_SECOND, nanos.abs() % NANOS_PER_SECOND);
    let mut text = format!("{sign}{seconds}");
    if fraction != 0 {
        // Writing to a text cannot fail.
        let _ = write!(text, ".{fraction:09}");
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push('s');
    text
}

/// Reads an RFC 3339 text.
pub(super) fn parse_timestamp(text: &str) -> Result<Timestamp, Fault> {
    let timestamp = text.parse().map_err(|_| Fault::failed(format!("{} is not an RFC 3339 time", quote(text))))?;
    in_range(timestamp)
}

/// A timestamp from seconds since the epoch.
pub(super) fn from_seconds(seconds: i64) -> Result<Timestamp, Fault> {
    let timestamp = Timestamp::from_second(seconds).map_err(|_| out_of_range())?;
    in_range(timestamp)
}

/// Adds a duration to a timestamp.
pub(super) fn add(timestamp: Timestamp, duration: SignedDuration) -> Result<Timestamp, Fault> {
    in_range(timestamp.checked_add(duration).map_err(|_| out_of_range())?)
}

fn in_range(timestamp: Timestamp) -> Result<Timestamp, Fault> {
    if timestamp.as_second() < FIRST_SECOND { Err(out_of_range()) } else { Ok(timestamp) }
}

fn out_of_range() -> Fault {
    Fault::failed("the time is outside the years 0001 to 9999")
}

/// Adds two durations.
pub(super) fn add_durations(left: SignedDuration, right: SignedDuration) -> Result<SignedDuration, Fault> {
    duration_from_nanos(left.as_nanos() + right.as_nanos())
}

fn duration_from_nanos(nanos: i128) -> Result<SignedDuration, Fault> {
    if nanos.abs() > MAX_SECONDS * NANOS_PER_SECOND {
        return Err(Fault::failed("the duration is longer than 10,000 years"));
    }
    // In range, so that the seconds fit; the fraction is below a second.
    let seconds = i64::try_from(nanos / NANOS_PER_SECOND).unwrap_or_default();
    let fraction = i32::try_from(nanos % NANOS_PER_SECOND).unwrap_or_default();
    Ok(SignedDuration::new(seconds, fraction))
}

/// Reads a duration: CEL's units (`h`, `m`, `s`, `ms`, `us`, `ns`) and `d` for 24 hours, as in the document.
pub(super) fn parse_duration(text: &str) -> Result<SignedDuration, Fault> {
    let refused = || Fault::failed(format!("{} is not a duration such as \"1h30m\"", quote(text)));
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() || text.len() > 100 {
        return Err(refused());
    }
    let mut nanos = 0_i128;
    while !rest.is_empty() && rest != "0" {
        let (part, after) = take_part(rest).ok_or_else(refused)?;
        nanos = nanos.checked_add(part).ok_or_else(refused)?;
        rest = after;
    }
    duration_from_nanos(if negative { -nanos } else { nanos })
}

/// Takes a number and its unit from the front, in nanoseconds.
fn take_part(text: &str) -> Option<(i128, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(number_end);
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, after) = rest.split_at(unit_end);
    let unit: i128 = match unit {
        "d" => 86_400 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "s" => NANOS_PER_SECOND,
        "ms" => 1_000_000,
        "us" | "µs" | "μs" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok().map(i128::from) };
    // Digits past a nanosecond of the largest unit change nothing.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some((digits(whole)? * unit + digits(fraction)? * unit / scale, after))
}

/// Returns the calendar fields of a timestamp, in UTC or in a fixed offset such as `+05:30`.
pub(super) fn civil(timestamp: Timestamp, zone: Option<&str>) -> Result<DateTime, Fault> {
    let offset = zone.map_or(Ok(Offset::UTC), parse_zone)?;
    Ok(offset.to_datetime(timestamp))
}

fn parse_zone(zone: &str) -> Result<Offset, Fault> {
    let refused = || Fault::failed(format!("time zone {} is not \"UTC\" or an offset such as \"+05:30\"", quote(zone)));
    if matches!(zone, "UTC" | "Z") {
        return Ok(Offset::UTC);
    }
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = digits.split_once(':').ok_or_else(refused)?;
    let two_digits = |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok()).flatten();
    let (hours, minutes) = two_digits(hours).zip(two_digits(minutes)).ok_or_else(refused)?;
    if hours > 23 || minutes > 59 {
        return Err(refused());
    }
    Offset::from_seconds(sign * (i32::from(hours) * 3_600 + i32::from(minutes) * 60)).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_in_cel_form() {
        let rows = [
            ("1h30m", Some("5400s")),
            ("7d", Some("604800s")),
            ("1.5s", Some("1.5s")),
            ("-1.5h", Some("-5400s")),
            ("1500us", Some("0.0015s")),
            ("1ns", Some("0.000000001s")),
            ("0", Some("0s")),
            ("3652500d", Some("315576000000s")),
            ("3652501d", None),
            ("99999999999999999999s", None),
            ("1", None),
            ("", None),
            ("-", None),
            (".s", None),
            ("1.2.3s", None),
            ("1y", None),
            ("1é", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_duration(text).ok().map(duration_text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn zones_are_fixed_offsets() {
        let timestamp = parse_timestamp("2024-02-29T23:30:00Z").unwrap();
        let rows = [(None, Some(29)), (Some("UTC"), Some(29)), (Some("+01:00"), Some(1)), (Some("-08:00"), Some(29))];
        for (zone, expected) in rows {
            assert_eq!(civil(timestamp, zone).ok().map(|civil| civil.day()), expected, "{zone:?}");
        }
        for zone in ["Europe/Paris", "+1", "+24:00", "+00:60", "+-1:00", "é:00"] {
            assert!(civil(timestamp, Some(zone)).is_err(), "{zone}");
        }
    }
}
