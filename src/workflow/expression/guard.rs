//! Measures a text before the parser sees it.
//!
//! The parser of the `cel` crate, the visit of its tree and the drop of it are recursive: a chain of 5,000 `+` overflows
//! the stack of a thread. The guard reads tokens only, without recursion, and refuses what is longer or deeper than a
//! person writes. It reads texts and comments exactly as the lexer does, and refuses a text literal that the lexer would
//! refuse, since the lexer goes on inside such a literal as if it were code.

use super::problem::code;

/// Longest expression, in bytes.
const MAX_LENGTH: usize = 16 * 1024;
/// Most brackets and conditionals inside one another.
const MAX_NESTING: usize = 40;
/// Most operators, calls and brackets on one way from the root of the tree to a leaf.
const MAX_CHAIN: usize = 600;

/// Why a text was refused: a code of [`code`] and a sentence.
pub(super) type Refusal = (&'static str, String);

/// Checks the length and the nesting of an expression.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_LENGTH {
        return Err((code::TOO_LONG, format!("the expression is longer than {MAX_LENGTH} bytes")));
    }
    let mut depth = Depth::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' | b'\'' => literal_end(bytes, at, false)?,
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            byte if is_word(byte) => word_end(bytes, at)?,
            b'(' | b'[' | b'{' => {
                depth.open()?;
                at + 1
            }
            b')' | b']' | b'}' => {
                depth.close();
                at + 1
            }
            b',' => {
                depth.next_item();
                at + 1
            }
            b'?' => {
                depth.conditional()?;
                at + 1
            }
            byte if is_operator(byte) => {
                depth.operator()?;
                at + 1
            }
            _ => at + 1,
        };
    }
    Ok(())
}

/// Returns where the literal that opens at `at` ends, one past its closing quote.
pub(super) fn literal_end(bytes: &[u8], at: usize, raw: bool) -> Result<usize, Refusal> {
    let quote = bytes[at];
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut next = at + width;
    while next < bytes.len() {
        let byte = bytes[next];
        if byte == quote && (!triple || bytes[next..].starts_with(&[quote; 3])) {
            return Ok(next + width);
        }
        if !triple && matches!(byte, b'\n' | b'\r') {
            break;
        }
        next += if byte == b'\\' && !raw { escape_width(&bytes[next..])? } else { 1 };
    }
    Err((code::SYNTAX, format!("the text literal that opens at byte {at} is not closed")))
}

/// Returns the width of the escape sequence at the start of `bytes`.
fn escape_width(bytes: &[u8]) -> Result<usize, Refusal> {
    let digits = |from: usize, count: usize, test: fn(&u8) -> bool| {
        bytes.get(from..from + count).is_some_and(|digits| digits.iter().all(test))
    };
    let width = match bytes.get(1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'\'' | b'"' | b'`' | b'?') => Some(2),
        Some(b'x' | b'X') if digits(2, 2, u8::is_ascii_hexdigit) => Some(4),
        Some(b'u') if digits(2, 4, u8::is_ascii_hexdigit) => Some(6),
        Some(b'U') if digits(2, 8, u8::is_ascii_hexdigit) => Some(10),
        Some(b'0'..=b'3') if digits(2, 2, |digit| matches!(digit, b'0'..=b'7')) => Some(4),
        _ => None,
    };
    width.ok_or_else(|| (code::SYNTAX, "a text literal holds an unknown escape sequence".to_owned()))
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |offset| at + offset)
}

/// Reads a word; `r`, `b` and `br` before a quote belong to the literal that follows.
pub(super) fn word_end(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let end = bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |offset| at + offset);
    let quoted = matches!(bytes.get(end), Some(b'"' | b'\''));
    let raw = match &bytes[at..end] {
        [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R'] if quoted => true,
        [b'b' | b'B'] if quoted => false,
        _ => return Ok(end),
    };
    literal_end(bytes, end, raw)
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_operator(byte: u8) -> bool {
    matches!(byte, b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|')
}

/// How deep a tree can get, from the brackets and operators seen so far.
#[derive(Default)]
struct Depth {
    open: Vec<Level>,
    level: Level,
    conditionals: usize,
}

/// One pair of brackets.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Operators in the item that is being read.
    operators: usize,
    /// Deepest bracket in that item.
    inner: usize,
    /// Deepest item before it.
    deepest: usize,
    /// Conditionals in that item.
    conditionals: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.deepest.max(self.operators + self.inner)
    }
}

impl Depth {
    fn open(&mut self) -> Result<(), Refusal> {
        // A bracket after an operand is an index or a call, and so a link of the chain too.
        self.operator()?;
        self.open.push(std::mem::take(&mut self.level));
        self.check_nesting()
    }

    fn close(&mut self) {
        let Some(outer) = self.open.pop() else { return };
        let depth = self.level.depth() + 1;
        self.conditionals -= self.level.conditionals;
        self.level = outer;
        self.level.inner = self.level.inner.max(depth);
    }

    fn next_item(&mut self) {
        self.conditionals -= self.level.conditionals;
        self.level = Level { deepest: self.level.depth(), ..Level::default() };
    }

    fn conditional(&mut self) -> Result<(), Refusal> {
        self.level.conditionals += 1;
        self.conditionals += 1;
        self.check_nesting()?;
        self.operator()
    }

    fn operator(&mut self) -> Result<(), Refusal> {
        self.level.operators += 1;
        let outer: usize = self.open.iter().map(|level| level.operators).sum();
        if outer + self.level.depth() > MAX_CHAIN {
            return Err((code::TOO_DEEP, format!("the expression has more than {MAX_CHAIN} operators in one chain")));
        }
        Ok(())
    }

    fn check_nesting(&self) -> Result<(), Refusal> {
        if self.open.len() + self.conditionals > MAX_NESTING {
            let message =
                format!("the expression has more than {MAX_NESTING} brackets or conditionals inside one another");
            return Err((code::TOO_DEEP, message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<&'static str> {
        check(text).err().map(|(code, _)| code)
    }

    #[test]
    fn deep_and_long_texts_are_refused() {
        let rows = [
            ("(".repeat(5_000) + "1" + &")".repeat(5_000), Some(code::TOO_DEEP)),
            ("[".repeat(5_000), Some(code::TOO_DEEP)),
            ("1".to_owned() + &"+1".repeat(5_000), Some(code::TOO_DEEP)),
            ("a".to_owned() + &".a".repeat(5_000), Some(code::TOO_DEEP)),
            ("a".to_owned() + &"[0]".repeat(5_000), Some(code::TOO_DEEP)),
            ("a ? 1 : ".repeat(500) + "2", Some(code::TOO_DEEP)),
            ("!".repeat(5_000) + "a", Some(code::TOO_DEEP)),
            ("1".repeat(20_000), Some(code::TOO_LONG)),
            ("[".to_owned() + &"1 + 1, ".repeat(1_000) + "2]", None),
            ("(".repeat(30) + "1" + &")".repeat(30), None),
            ("'".to_owned() + &"(".repeat(5_000) + "'", None),
            ("1 // ".to_owned() + &"(".repeat(5_000), None),
        ];
        for (text, expected) in rows {
            assert_eq!(refusal(&text), expected, "{:.40}", text);
        }
    }

    #[test]
    fn text_literals_are_read_as_the_lexer_reads_them() {
        let deep = "(".repeat(5_000);
        let rows = [
            (format!("'{deep}'"), None),
            (format!("'''\n' {deep}'''"), None),
            (format!("\"\"\" \" {deep}\"\"\""), None),
            (format!(r#"r"\" {deep}"#), Some(code::TOO_DEEP)),
            (format!(r#"bR'\' {deep}"#), Some(code::TOO_DEEP)),
            (format!(r#"xr"\" {deep}"#), Some(code::SYNTAX)),
            (format!(r#""\" {deep}"#), Some(code::SYNTAX)),
            (format!("// '\n{deep}"), Some(code::TOO_DEEP)),
            (format!("'a\nb' {deep}"), Some(code::SYNTAX)),
            (format!(r"'\q' {deep}"), Some(code::SYNTAX)),
            (format!(r"'\é' {deep}"), Some(code::SYNTAX)),
            (format!(r"'\u00e' {deep}"), Some(code::SYNTAX)),
            (r"'\u00e9\x41\101\U0001f431\n\''".to_owned(), None),
        ];
        for (text, expected) in rows {
            assert_eq!(refusal(&text), expected, "{:.20}", text);
        }
    }
}
