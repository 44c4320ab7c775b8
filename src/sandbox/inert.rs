//! Makes texts of guests harmless to whoever prints them: no control characters, no escapes, nothing that reverses the
//! direction of writing, and none longer than it may be.

use std::fmt::Write;

use crate::model::code::cut;

/// Returns `text` on one line: what it could forge or steer a terminal with is shown as an escape. At most `bytes_max`.
pub(super) fn line(text: String, bytes_max: usize) -> String {
    made_inert(text, bytes_max, |character| character == '\t')
}

/// Returns `text` with its line breaks, and otherwise as [`line`] does.
pub(super) fn paragraph(text: String, bytes_max: usize) -> String {
    made_inert(text, bytes_max, |character| matches!(character, '\n' | '\t'))
}

fn made_inert(text: String, bytes_max: usize, kept: fn(char) -> bool) -> String {
    // Cut first, so that the work does not depend on what the guest sent, and give back what the cut left unused.
    let mut text = cut(text, bytes_max);
    text.shrink_to_fit();
    let is_active = |character: char| steers(character) && !kept(character);
    if !text.contains(is_active) {
        return text;
    }
    let mut inert = String::with_capacity(text.len() + 32);
    for character in text.chars() {
        match character {
            '\n' if is_active(character) => inert.push_str("\\n"),
            '\r' => inert.push_str("\\r"),
            _ if is_active(character) => {
                write!(inert, "\\u{{{:x}}}", u32::from(character)).expect("a string takes what is written");
            }
            _ => inert.push(character),
        }
    }
    cut(inert, bytes_max)
}

/// Whether a character does something to a terminal or a line instead of being shown.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_instead() {
        for (text, shown) in [
            ("plain, naïve", "plain, naïve"),
            ("a\0b", "a\\u{0}b"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("one\ntwo\r\n", "one\\ntwo\\r\\n"),
            ("\u{202e}abc", "\\u{202e}abc"),
            ("a\tb", "a\tb"),
            ("\u{9b}1m", "\\u{9b}1m"),
        ] {
            assert_eq!(line(text.to_owned(), 100), shown);
        }
        assert_eq!(paragraph("one\n\u{1b}two".to_owned(), 100), "one\n\\u{1b}two");
    }

    #[test]
    fn long_texts_are_cut_and_give_memory_back() {
        let long = line("x".repeat(1 << 20), 1_000);
        assert!(long.len() <= 1_000 && long.capacity() < 2_000);
        assert!(line("\0".repeat(1 << 20), 1_000).len() <= 1_000);
    }
}
