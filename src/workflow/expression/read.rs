//! Reading JSON text: only the part that a path leads to, and into values only what an expression looks at.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::budget::{Budget, PLACE_BYTES};
use super::number;
use super::problem::Fault;
use super::tree::Segment;
use super::value::{Key, Map, Value, kind};

/// Why a path ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The map has no such key.
    NoKey,
    /// The list has only so many elements.
    Short(usize),
    /// The value is null.
    Null,
    /// The value is neither a map nor, for an index, a list.
    Scalar(&'static str),
}

impl Stop {
    /// The fault for `whole`, a path whose part `before` was reached.
    pub(super) fn fault(&self, whole: &str, before: &str) -> Fault {
        match self {
            Self::NoKey => Fault::Missing(format!("`{whole}` is missing")),
            Self::Short(length) => Fault::Missing(format!("`{whole}` is missing: the list has {length} elements")),
            Self::Null => Fault::Missing(format!("`{whole}` is missing: `{before}` is null")),
            Self::Scalar(kind) => Fault::failed(format!("`{whole}` cannot be read: `{before}` is of type {kind}")),
        }
    }
}

/// Follows one segment into a value.
pub(super) fn follow<'v>(value: &'v Value, segment: &Segment) -> Result<&'v Value, Stop> {
    match (value, segment) {
        (Value::Map(map), Segment::Name(name)) => map.get_text(name).ok_or(Stop::NoKey),
        (Value::Map(map), Segment::Index(index)) => {
            i64::try_from(*index).ok().and_then(|index| map.get(&Key::Int(index))).ok_or(Stop::NoKey)
        }
        (Value::List(items), Segment::Index(index)) => items.get(*index).ok_or(Stop::Short(items.len())),
        (Value::Null, _) => Err(Stop::Null),
        (other, _) => Err(Stop::Scalar(other.kind())),
    }
}

/// Follows one segment into JSON text without building values; of equal keys the last counts, as when values are built.
pub(super) fn seek<'t>(text: &'t str, segment: &Segment, budget: &mut Budget) -> Result<Result<&'t str, Stop>, Fault> {
    budget.scan(text.len())?;
    let opens = text.trim_ascii_start().as_bytes().first().copied();
    let found = match (opens, segment) {
        (Some(b'{'), Segment::Name(name)) => run(text, Pick::Key(name))?.ok_or(Stop::NoKey),
        (Some(b'{'), Segment::Index(_)) => Err(Stop::NoKey),
        (Some(b'['), Segment::Index(index)) => {
            let mut length = 0;
            run(text, Pick::Element(*index, &mut length))?.ok_or(Stop::Short(length))
        }
        (Some(b'n'), _) => Err(Stop::Null),
        (opens, _) => Err(Stop::Scalar(kind_of(opens))),
    };
    Ok(found.map(RawValue::get))
}

fn kind_of(opens: Option<u8>) -> &'static str {
    match opens {
        Some(b'"') => kind::STRING,
        Some(b't' | b'f') => kind::BOOL,
        Some(b'[') => kind::LIST,
        Some(b'{') => kind::MAP,
        _ => "number",
    }
}

fn run<'t, S: DeserializeSeed<'t>>(text: &'t str, seed: S) -> Result<S::Value, Fault> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::failed(format!("the text is not JSON: {error}"))
}

/// Picks one part of a map or list and skips the rest.
enum Pick<'p> {
    Key(&'p str),
    /// The place, and where to count the elements.
    Element(usize, &'p mut usize),
}

impl<'t> DeserializeSeed<'t> for Pick<'_> {
    type Value = Option<&'t RawValue>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Pick<'_> {
    type Value = Option<&'t RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let wanted = if let Pick::Key(key) = self { key } else { "" };
        let mut found = None;
        while let Some(same) = map.next_key_seed(SameKey(wanted))? {
            if same {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let Pick::Element(wanted, length) = self else { return Ok(None) };
        let mut found = None;
        loop {
            if *length == wanted {
                let Some(element) = sequence.next_element()? else { return Ok(None) };
                found = Some(element);
            } else if sequence.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            *length += 1;
        }
    }
}

/// Compares a key without making a text of it.
struct SameKey<'k>(&'k str);

impl<'t> DeserializeSeed<'t> for SameKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for SameKey<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// Builds the value of a JSON text that the scope holds. Charges steps, not bytes: the text was made by someone else.
pub(super) fn parse_held(text: &str, budget: &mut Budget) -> Result<Value, Fault> {
    parse_as(text, false, budget)
}

/// Builds the value of a JSON text that an expression holds, for `json_decode`: charges the bytes made too.
pub(super) fn parse_made(text: &str, budget: &mut Budget) -> Result<Value, Fault> {
    parse_as(text, true, budget)
}

fn parse_as(text: &str, made: bool, budget: &mut Budget) -> Result<Value, Fault> {
    budget.scan(text.len())?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = Build { made, budget: &mut *budget }.deserialize(&mut deserializer);
    let result = result.and_then(|value| deserializer.end().map(|()| value));
    result.map_err(|error| budget.exceeded().map_or_else(|| unreadable(&error), Fault::Spent))
}

/// Builds a [`Value`], charging for each one. Depth is bounded by the reader of `serde_json`.
struct Build<'b> {
    made: bool,
    budget: &'b mut Budget,
}

impl Build<'_> {
    fn charge<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let charged = self.budget.value_read();
        let charged = if self.made { charged.and_then(|()| self.budget.make(bytes)) } else { charged };
        charged.map_err(E::custom)
    }

    fn again(&mut self) -> Build<'_> {
        Build { made: self.made, budget: self.budget }
    }
}

impl<'t> DeserializeSeed<'t> for Build<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Build<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(Value::Int(int))
    }

    fn visit_u64<E>(self, uint: u64) -> Result<Value, E> {
        Ok(i64::try_from(uint).map_or(Value::Uint(uint), Value::Int))
    }

    fn visit_f64<E: serde::de::Error>(self, double: f64) -> Result<Value, E> {
        number::finite(double).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<Value, E> {
        self.charge(text.len())?;
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(self.again())? {
            self.charge(PLACE_BYTES)?;
            items.push(item);
        }
        Ok(Value::list(items))
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(BuildKey)? {
            self.charge(2 * PLACE_BYTES + key.len())?;
            let value = map.next_value_seed(self.again())?;
            entries.push((Key::Text(key), value));
        }
        Ok(Value::Map(Arc::new(Map::from_entries(entries))))
    }
}

struct BuildKey;

impl<'t> DeserializeSeed<'t> for BuildKey {
    type Value = Arc<str>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Arc<str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for BuildKey {
    type Value = Arc<str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Arc<str>, E> {
        Ok(Arc::from(key))
    }
}
