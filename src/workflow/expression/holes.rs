//! Splits a text of a template into plain parts and the expressions between `${` and `}`.

use super::guard::{self, Refusal};
use super::problem::code;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// Plain text, `$${` already turned into `${`.
    Plain(String),
    /// What stands between `${` and its `}`.
    Expression(&'t str),
}

/// Splits a text. Two plain parts never follow each other, and an empty text has no parts.
pub(super) fn split(text: &str) -> Result<Vec<Part<'_>>, Refusal> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            plain.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let end = hole_end(after)?;
            if !plain.is_empty() {
                parts.push(Part::Plain(std::mem::take(&mut plain)));
            }
            parts.push(Part::Expression(&after[..end]));
            rest = &after[end + 1..];
        } else {
            plain.push('$');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Plain(plain));
    }
    Ok(parts)
}

/// Finds the `}` that closes a hole, outside text literals and inner braces.
fn hole_end(text: &str) -> Result<usize, Refusal> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 0_usize);
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' | b'\'' => guard::literal_end(bytes, at, false)?,
            byte if guard::is_word(byte) => guard::word_end(bytes, at)?,
            b'}' if open == 0 => return Ok(at),
            b'}' => {
                open -= 1;
                at + 1
            }
            b'{' => {
                open += 1;
                at + 1
            }
            _ => at + 1,
        };
    }
    Err((code::UNTERMINATED, "`${` has no matching `}`; write `$${` for the characters themselves".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Part<'static> {
        Part::Plain(text.to_owned())
    }

    #[test]
    fn holes_end_at_their_own_brace() {
        use Part::Expression;
        let rows = [
            ("", vec![]),
            ("plain", vec![plain("plain")]),
            ("${ a }", vec![Expression(" a ")]),
            ("a${b}c", vec![plain("a"), Expression("b"), plain("c")]),
            ("${a}${b}", vec![Expression("a"), Expression("b")]),
            ("${ {'a': {'b': 1}} }", vec![Expression(" {'a': {'b': 1}} ")]),
            ("${ '}' }", vec![Expression(" '}' ")]),
            (r#"${ "\"}" }"#, vec![Expression(r#" "\"}" "#)]),
            (r#"${ r"\" }"#, vec![Expression(r#" r"\" "#)]),
            ("${ '''}'}''' }", vec![Expression(" '''}'}''' ")]),
            ("${ \"\"\"}\"\"\" }", vec![Expression(" \"\"\"}\"\"\" ")]),
            ("$${a}", vec![plain("${a}")]),
            ("$$${a}", vec![plain("$${a}")]),
            ("$ {a} $", vec![plain("$ {a} $")]),
            ("5$ ${a}", vec![plain("5$ "), Expression("a")]),
            ("é${'é'}é", vec![plain("é"), Expression("'é'"), plain("é")]),
        ];
        for (text, expected) in rows {
            assert_eq!(split(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn open_holes_are_refused() {
        for text in ["${", "a ${ b", "${ {a }", "${ \"}", "${ '}\n' }"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn splitting_never_panics(text in r#"[${}'"\\rb aé\n]{0,40}"#) {
            let _ = split(&text);
        }

        #[test]
        fn escaped_text_comes_back(text in ".{0,40}") {
            let escaped = text.replace("${", "$${");
            let parts = split(&escaped).unwrap();
            let joined: String = parts.into_iter().map(|part| match part {
                Part::Plain(plain) => plain,
                Part::Expression(_) => panic!("an escaped text has no holes"),
            }).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
