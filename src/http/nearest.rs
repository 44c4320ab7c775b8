//! What is said of a name that nobody reads: the nearest known one, or all of them.

use crate::{app::Error, model::nearest};

/// Returns the refusal of `name`, a `kind` of thing that is none of `known`.
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> Error {
    let shown: String = name.chars().take(80).flat_map(char::escape_default).collect();
    Error::invalid(match nearest(&shown, known) {
        Some(nearest) => format!("unknown {kind} `{shown}`; did you mean `{nearest}`?"),
        None if known.is_empty() => format!("unknown {kind} `{shown}`; none is known here"),
        None => format!("unknown {kind} `{shown}`; known are `{}`", known.join("`, `")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised() {
        let known = ["workflow", "version", "input", "execution_id"];
        for (name, end) in [
            ("worklfow", "did you mean `workflow`?"),
            ("inputs", "did you mean `input`?"),
            ("executionId", "did you mean `execution_id`?"),
            ("color", "known are `workflow`, `version`, `input`, `execution_id`"),
        ] {
            let message = unknown("key", name, &known).message;
            assert!(message.ends_with(end), "{message}");
        }
        assert_eq!(unknown("query key", "x", &[]).message, "unknown query key `x`; none is known here");
    }

    #[test]
    fn a_hostile_name_is_cut_and_escaped() {
        let message = unknown("key", &"\u{1b}".repeat(10_000), &["input"]).message;
        assert!(message.len() < 1_000 && !message.contains('\u{1b}'));
    }
}
