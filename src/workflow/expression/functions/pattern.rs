//! `matches`: regular expressions of the `regex` crate, which take time in proportion to text times pattern.
//!
//! CEL's patterns are RE2's, in which `\d`, `\s`, `\w` and `\b` know ASCII only. The crate's own cover all scripts, and are
//! so large that `\w{1,64}` would be past any sensible limit.

use regex::{Regex, RegexBuilder};

use super::{Outcome, take_text};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::value::Value;

/// Longest pattern, in bytes.
const MAX_LENGTH: usize = 1_024;
/// Sizes of a compiled pattern, each with the steps that two bytes of text cost in it. The crate keeps the size of a
/// compiled pattern to itself, so that the smallest of these that holds it is found by trying. The steps are set for a
/// pattern that is made to be slow, which tracks all of its states at every byte: about 0.1 s for a whole budget.
const SIZES: [(usize, u64); 3] = [(8 << 10, 1), (32 << 10, 4), (128 << 10, 24)];
/// Steps for compiling a pattern that is not known beforehand.
const COMPILE_STEPS: u64 = 2_000;
/// Bytes that every text counts at least, since a search has a fixed cost too.
const LEAST_BYTES: usize = 16;

/// A compiled pattern.
#[derive(Debug)]
pub(in crate::workflow::expression) struct Pattern {
    regex: Regex,
    steps_per_pair: u64,
}

impl Pattern {
    /// Compiles a pattern, or says in a sentence why not.
    pub(in crate::workflow::expression) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("the pattern is longer than {MAX_LENGTH} bytes"));
        }
        let pattern = with_ascii_classes(pattern);
        for (size, steps_per_pair) in SIZES {
            match RegexBuilder::new(&pattern).size_limit(size).dfa_size_limit(256 << 10).nest_limit(50).build() {
                Ok(regex) => return Ok(Self { regex, steps_per_pair }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(first_lines(&error)),
            }
        }
        Err("the pattern is too large when compiled".to_owned())
    }

    /// Returns whether the pattern is found in a text.
    pub(in crate::workflow::expression) fn matches(&self, text: &Value, budget: &mut Budget) -> Outcome {
        let text = take_text(text, "matches")?;
        let pairs = (text.len() + LEAST_BYTES).div_ceil(2) as u64;
        budget.steps(pairs.saturating_mul(self.steps_per_pair))?;
        Ok(Value::Bool(self.regex.is_match(text)))
    }
}

/// Replaces the classes that RE2 limits to ASCII. A class in brackets may stand within another.
fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('s') => out.push_str(r"[\t\n\f\r ]"),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('b') => out.push_str(r"(?-u:\b)"),
            other => out.extend(['\\'].into_iter().chain(other)),
        }
    }
    out
}

/// The error of a pattern on one line, without the drawing that points at it.
fn first_lines(error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it is not a regular expression");
    let reason: String = reason.trim_start_matches("error: ").chars().take(200).collect();
    format!("the pattern is refused: {reason}")
}

/// `matches(text, pattern)` with a pattern that is made at run time.
pub(super) fn matches(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let pattern = take_text(&arguments[1], "matches")?;
    budget.steps(COMPILE_STEPS)?;
    Pattern::compile(pattern).map_err(Fault::failed)?.matches(&arguments[0], budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_patterns_compile_and_bombs_do_not() {
        for pattern in
            [r"^[\w.+-]+@[\w-]+\.[\w.]+$", r"^\d{4}-\d{2}-\d{2}$", "(?i)error", r"^[\w-]{1,64}$", "é+", r"\bx\b"]
        {
            assert!(Pattern::compile(pattern).is_ok(), "{pattern}");
        }
        for pattern in
            ["(a{1000}){1000}", r"(\w{100}){1000}", "a{", r"\", "(?=a)", r"(a)\1", &"(".repeat(200), &"a".repeat(2_000)]
        {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn classes_are_ascii_as_in_re2() {
        let rows = [
            (r"^\w+$", "a_9", true),
            (r"^\w+$", "é", false),
            (r"^\d$", "٣", false),
            (r"^[\w.]+$", "a.b", true),
            (r"^[^\w]$", "é", true),
            (r"^\W\S\D$", "ééé", true),
            (r"^\\w$", r"\w", true),
            (r"\bcat\b", "a cat.", true),
            (r"^.{3}$", "äöü", true),
        ];
        for (pattern, text, expected) in rows {
            let found = Pattern::compile(pattern).unwrap().matches(&Value::text(text), &mut Budget::default());
            assert!(matches!(found, Ok(Value::Bool(found)) if found == expected), "{pattern} {text}");
        }
    }
}
