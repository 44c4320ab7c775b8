//! JSON payloads: kept as the bytes that came, checked once at every entrance by one rule.
//!
//! The rule: UTF-8, at most [`DEPTH_MAX`] levels deep, no key twice in an object, no lone surrogate, every number within
//! the range of i64, u64 or a finite double. White space between tokens is not kept, everything else is, byte for byte.

use std::{fmt, sync::Arc};

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// How deep arrays and objects may nest, at every entrance.
pub const DEPTH_MAX: usize = 128;

/// The largest payload: start input, signal, unit input, output and error details, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Why bytes are not an acceptable JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Deeper than [`DEPTH_MAX`].
    #[error("JSON is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// Not JSON, or against the rule; the sentence says what and where.
    #[error("{0}")]
    Invalid(String),
}

/// A JSON text that keeps the rule of this module. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

impl Payload {
    /// Checks `bytes` and keeps them without the white space between tokens.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        check(bytes)?;
        let text = std::str::from_utf8(bytes).expect("the check read it as UTF-8");
        Ok(Self::trusted(&compact(text)))
    }

    /// Keeps a text that is known to be compact JSON within the rule: what this process printed or stored itself.
    pub fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns `null`.
    pub fn null() -> Self {
        Self::trusted("null")
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the size of the text in bytes.
    pub fn size_bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the payload as a tree.
    pub fn to_value(&self) -> serde_json::Value {
        parse(self.0.as_bytes()).expect("a payload keeps the rule")
    }

    /// Returns the text of a tree that this process made.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A raw value is written as it is. `from_str` only scans; it does not build a tree.
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Reads a payload within a text that was checked as a whole, or that was serialised here.
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::trusted(&compact(raw.get())))
    }
}

/// Reads a field that may be absent; JSON `null` is a payload, too.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Payload>, D::Error> {
    Payload::deserialize(deserializer).map(Some)
}

/// Returns the text without white space between tokens.
fn compact(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if matches!(character, ' ' | '\n' | '\r' | '\t') {
            continue;
        } else {
            in_string = character == '"';
        }
        kept.push(character);
    }
    kept.into()
}

/// Checks `bytes` against the rule without building a tree.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    read(bytes, Reader { depth: 0, build: false }).map(|_| ())
}

/// Reads `bytes` as a tree, by the same rule.
pub fn parse(bytes: &[u8]) -> Result<serde_json::Value, Error> {
    read(bytes, Reader { depth: 0, build: true })
}

const TOO_DEEP: &str = "nested too deep";

fn read(bytes: &[u8], reader: Reader) -> Result<serde_json::Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    let value = reader.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        let text = error.to_string();
        if text.starts_with(TOO_DEEP) { Error::TooDeep } else { Error::Invalid(text) }
    })
}

/// Walks a JSON text; builds the tree only when asked to.
#[derive(Clone, Copy)]
struct Reader {
    depth: usize,
    build: bool,
}

impl Reader {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH_MAX { Err(E::custom(TOO_DEEP)) } else { Ok(Self { depth: self.depth + 1, ..self }) }
    }
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = serde_json::Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = serde_json::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(serde_json::Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        serde_json::Number::from_f64(value).map(Into::into).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(if self.build { value.into() } else { serde_json::Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            if self.build {
                items.push(item);
            }
        }
        Ok(serde_json::Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let inner = self.deeper()?;
        let mut entries = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if entries.contains_key(&key) {
                let shown: String = key.chars().take(80).collect();
                return Err(de::Error::custom(format_args!("key `{shown}` occurs twice")));
            }
            let value = map.next_value_seed(inner)?;
            entries.insert(key, value);
        }
        Ok(serde_json::Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_depth_limit_holds_everywhere() {
        for (depth, good) in [(127, true), (128, true), (129, false), (100_000, false)] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            assert_eq!(check(text.as_bytes()), if good { Ok(()) } else { Err(Error::TooDeep) }, "C099 {depth}");
            assert_eq!(parse(text.as_bytes()).is_ok(), good);
        }
        assert_eq!(check("[".repeat(100_000).as_bytes()), Err(Error::TooDeep));
    }

    #[test]
    fn hostile_texts_are_refused() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#""\ud800""#,
            "NaN",
            "1e400",
            "",
            "{",
            "[1,]",
            "1 2",
            r#"{"a":{"b":1,"b":2}}"#,
            "\u{feff}1",
        ] {
            assert!(matches!(Payload::parse(text.as_bytes()), Err(Error::Invalid(_))), "C108 {text}");
        }
        assert!(Payload::parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn accepted_texts_are_kept_byte_for_byte() {
        for text in [
            "9007199254740993",
            "18446744073709551615",
            "0.1",
            "1.0",
            "-0.0",
            "1e308",
            "1E-400",
            r#"{"s":"a\u0000b","k\u0000":1}"#,
        ] {
            assert_eq!(Payload::parse(text.as_bytes()).unwrap().as_str(), text, "C084 C076");
        }
        assert_eq!(
            Payload::parse(b" { \"a b\" : [ 1 , \"x \\\" y\" ] }\n").unwrap().as_str(),
            r#"{"a b":[1,"x \" y"]}"#
        );
    }

    proptest! {
        #[test]
        fn a_kept_text_means_what_it_meant(text in r#"[\[\]{}",:0-9a\\ \n]{0,40}"#) {
            if let Ok(payload) = Payload::parse(text.as_bytes()) {
                prop_assert_eq!(payload.to_value(), parse(text.as_bytes()).unwrap());
                let stored = serde_json::to_string(&payload).unwrap();
                prop_assert_eq!(serde_json::from_str::<Payload>(&stored).unwrap(), payload);
            }
        }
    }
}
