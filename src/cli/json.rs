//! Lays JSON text out again without reading its values, so that numbers and order stay as the server sent them.

/// Returns valid JSON over several lines, two blanks a level.
pub(super) fn pretty(text: &str) -> String {
    let mut layout = Layout { out: String::with_capacity(text.len() * 2), depth: 0, opened: false };
    for token in tokens(text) {
        layout.push(token);
    }
    layout.out
}

/// Returns valid JSON on one line.
pub(super) fn compact(text: &str) -> String {
    tokens(text).collect()
}

/// Cuts valid JSON into brackets, commas, colons, texts and other scalars, without the white space between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match rest.as_bytes().first()? {
            b'"' => text_length(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest.find(['{', '}', '[', ']', ',', ':', ' ', '\t', '\n', '\r', '"']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// Returns the length of the text that `rest` begins with, its quotes included.
fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

struct Layout {
    out: String,
    depth: usize,
    /// Whether the last token opened a list, whose first item decides if it gets lines.
    opened: bool,
}

impl Layout {
    fn push(&mut self, token: &str) {
        let closes = matches!(token, "}" | "]");
        if closes {
            self.depth = self.depth.saturating_sub(1);
        }
        if self.opened != closes {
            // Before the first item, and before the end of a list that has items.
            self.break_line();
        }
        self.opened = false;
        self.out.push_str(token);
        match token {
            "{" | "[" => {
                self.depth += 1;
                self.opened = true;
            }
            "," => self.break_line(),
            ":" => self.out.push(' '),
            _ => {}
        }
    }

    fn break_line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_is_laid_out_as_written() {
        let text = r#" {"b":[1.0,{"x":{}},[]],"a":"q\"{[,:\\","n":18446744073709551615,"e":[ ]}"#;
        let lines = "{\n  \"b\": [\n    1.0,\n    {\n      \"x\": {}\n    },\n    []\n  ],\n  \"a\": \"q\\\"{[,:\\\\\",\n  \
                     \"n\": 18446744073709551615,\n  \"e\": []\n}";
        assert_eq!(pretty(text), lines);
        assert_eq!(compact(lines), r#"{"b":[1.0,{"x":{}},[]],"a":"q\"{[,:\\","n":18446744073709551615,"e":[]}"#);
        for scalar in ["1", "null", "\"\"", "-1e5", "{}", "[]"] {
            assert_eq!((pretty(scalar), compact(scalar)), (scalar.to_owned(), scalar.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn a_layout_changes_no_value(text in r#"[\[\]{}",:0-9a\\ \n]{0,40}"#) {
            let laid_out = (pretty(&text), compact(&text));
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&laid_out.0).unwrap(), value.clone());
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&laid_out.1).unwrap(), value);
            }
        }
    }
}
