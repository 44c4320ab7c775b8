//! What an author may have meant.

/// Longer words get no hint: comparing costs the product of both lengths.
const WORD_BYTES_MAX: usize = 64;

/// Returns the word of `known` that is nearest to `word`, when one is near.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let far = 2 + word.len() / 3;
    let lower = word.to_lowercase();
    let near = known.into_iter().filter(|other| other.len().abs_diff(word.len()) < far).map(|other| {
        let distance = strsim::osa_distance(&lower, other);
        (distance, other.len().abs_diff(word.len()), other)
    });
    near.filter(|(distance, _, other)| *distance < far && *distance < other.len()).min().map(|(_, _, other)| other)
}

/// Returns `unknown KIND "WORD"`, with the nearest known word when one is near.
pub fn unknown<'k>(kind: &str, word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let shown: String = word.chars().take(WORD_BYTES_MAX).flat_map(char::escape_debug).collect();
    match nearest(word, known) {
        Some(near) => format!("unknown {kind} \"{shown}\"; did you mean \"{near}\"?"),
        None => format!("unknown {kind} \"{shown}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_near_words_are_offered() {
        let known = ["steps", "signals", "timeout", "timeouts", "queue", "id"];
        for (word, near) in [
            ("step", Some("steps")),
            ("Steps", Some("steps")),
            ("stesp", Some("steps")),
            ("time_out", Some("timeout")),
            ("timeoust", Some("timeouts")),
            ("qeue", Some("queue")),
            ("x", None),
            ("completely_different", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word}");
        }
        assert_eq!(nearest(&"s".repeat(100_000), known), None);
    }
}
