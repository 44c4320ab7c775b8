//! Time as a value: instants and spans in milliseconds, and the duration texts of documents.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the instant `span` later; it stops at the end of time instead of wrapping.
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }

    /// Returns how long after `earlier` this is; nothing when it is before.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A span in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// The longest span that a document may name: ten years of 365 days and three leap days.
pub const SPAN_MAX: Millis = Millis(3_653 * 86_400_000);

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text does not read like `500ms`, `30s`, `5m`, `1h30m` or `7d`.
    #[error("a duration reads like `500ms`, `30s`, `5m`, `1h30m` or `7d`")]
    Form,
    /// The duration is longer than ten years.
    #[error("a duration is at most 10 years (3653d)")]
    TooLong,
}

impl Millis {
    /// Reads a duration text: numbers with a unit (`d`, `h`, `m`, `s`, `ms`), largest unit first, each at most once.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let mut rest = text;
        let mut total: u64 = 0;
        let mut unit_before = u64::MAX;
        if rest.is_empty() {
            return Err(DurationError::Form);
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
            let unit = match &rest[digits..digits + letters] {
                "d" => 86_400_000,
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1_000,
                "ms" => 1,
                _ => return Err(DurationError::Form),
            };
            if digits == 0 || unit >= unit_before {
                return Err(DurationError::Form);
            }
            let number: u64 = rest[..digits].parse().map_err(|_| DurationError::TooLong)?;
            total = number.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or(DurationError::TooLong)?;
            unit_before = unit;
            rest = &rest[digits + letters..];
        }
        if total > SPAN_MAX.0 { Err(DurationError::TooLong) } else { Ok(Self(total)) }
    }
}

impl From<Millis> for std::time::Duration {
    fn from(span: Millis) -> Self {
        Self::from_millis(span.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")] {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_read_as_documented() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
            ("1s500ms", 1_500),
        ] {
            assert_eq!(Millis::parse(text), Ok(Millis(ms)), "{text}");
        }
        for text in ["", "5", "-5s", "1.5s", "s", "30s5m", "1s1s", "5 s", "5S", "5µs", "1h "] {
            assert_eq!(Millis::parse(text), Err(DurationError::Form), "{text}");
        }
        for text in ["3654d", "99999999999999999999d", "18446744073709551615h"] {
            assert_eq!(Millis::parse(text), Err(DurationError::TooLong), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_shown_duration_reads_back(ms in 0..=SPAN_MAX.0) {
            prop_assert_eq!(Millis::parse(&Millis(ms).to_string()), Ok(Millis(ms)));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,20}") {
            let _ = Millis::parse(&text);
        }
    }
}
