//! Values while an expression is evaluated: cheap to clone, since everything large is shared.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

/// A value of an expression. Doubles are always finite.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Vec<Value>>),
    Map(Arc<Map>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Type(&'static str),
}

/// The names of types, as `type(x)` gives them and messages use them.
pub(super) mod kind {
    pub const NULL: &str = "null_type";
    pub const BOOL: &str = "bool";
    pub const INT: &str = "int";
    pub const UINT: &str = "uint";
    pub const DOUBLE: &str = "double";
    pub const STRING: &str = "string";
    pub const BYTES: &str = "bytes";
    pub const LIST: &str = "list";
    pub const MAP: &str = "map";
    pub const TYPE: &str = "type";
    pub const TIMESTAMP: &str = "google.protobuf.Timestamp";
    pub const DURATION: &str = "google.protobuf.Duration";

    /// All of them.
    pub const ALL: [&str; 12] = [NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, LIST, MAP, TYPE, TIMESTAMP, DURATION];
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(items))
    }

    /// An integer from a length; no length of ours is past an `i64`.
    pub(super) fn length(length: usize) -> Self {
        Self::Int(i64::try_from(length).unwrap_or(i64::MAX))
    }

    /// Returns the name of the value's type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => kind::NULL,
            Self::Bool(_) => kind::BOOL,
            Self::Int(_) => kind::INT,
            Self::Uint(_) => kind::UINT,
            Self::Double(_) => kind::DOUBLE,
            Self::Text(_) => kind::STRING,
            Self::Bytes(_) => kind::BYTES,
            Self::List(_) => kind::LIST,
            Self::Map(_) => kind::MAP,
            Self::Timestamp(_) => kind::TIMESTAMP,
            Self::Duration(_) => kind::DURATION,
            Self::Type(_) => kind::TYPE,
        }
    }
}

/// A key of a map. JSON has texts only; CEL's literals may have the others, for tables such as `{1: "a", 2: "b"}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    /// An `int`, or a `uint` or a whole double of the same value.
    Int(i64),
    /// A `uint` past the range of an `int`.
    Uint(u64),
    Text(Arc<str>),
}

impl Key {
    /// The key that a value names; `None` when no map can have it.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Uint(uint) => Some(i64::try_from(*uint).map_or(Self::Uint(*uint), Self::Int)),
            Value::Double(double) => whole(*double).map(Self::Int),
            Value::Text(text) => Some(Self::Text(Arc::clone(text))),
            _ => None,
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(int) => Value::Int(*int),
            Self::Uint(uint) => Value::Uint(*uint),
            Self::Text(text) => Value::Text(Arc::clone(text)),
        }
    }

    /// Bytes that the key itself takes.
    pub(super) fn weight(&self) -> usize {
        if let Self::Text(text) = self { text.len() } else { 0 }
    }
}

/// The `i64` that a double is exactly.
fn whole(double: f64) -> Option<i64> {
    // 2^63 itself is a double and is past the range; below it the cast is exact for a whole number.
    (double.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&double))
        .then_some(double as i64)
}

/// A map: entries sorted by key, each key once.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    entries: Vec<(Key, Value)>,
}

impl Map {
    /// Builds a map of entries in any order; of equal keys the last wins, as in JSON readers.
    pub(super) fn from_entries(mut entries: Vec<(Key, Value)>) -> Self {
        if !entries.is_sorted_by(|left, right| left.0 < right.0) {
            // The sort is stable, so the last of equal keys is the one met first from the back.
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            entries.reverse();
            entries.dedup_by(|later, earlier| later.0 == earlier.0);
            entries.reverse();
        }
        Self { entries }
    }

    pub(super) fn entries(&self) -> &[(Key, Value)] {
        &self.entries
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.find(|candidate| candidate.cmp(key))
    }

    pub(super) fn get_text(&self, key: &str) -> Option<&Value> {
        self.find(|candidate| match candidate {
            Key::Text(text) => text.as_ref().cmp(key),
            _ => Ordering::Less,
        })
    }

    fn find(&self, order: impl Fn(&Key) -> Ordering) -> Option<&Value> {
        let at = self.entries.binary_search_by(|(key, _)| order(key)).ok()?;
        Some(&self.entries[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_of_equal_keys_wins() {
        let entry = |key: &str, int| (Key::Text(Arc::from(key)), Value::Int(int));
        let map = Map::from_entries(vec![entry("b", 1), entry("a", 2), entry("b", 3), entry("a", 4)]);
        assert_eq!(map.len(), 2);
        assert!(matches!(map.get_text("a"), Some(Value::Int(4))));
        assert!(matches!(map.get_text("b"), Some(Value::Int(3))));
        assert!(map.get_text("c").is_none());
    }

    #[test]
    fn equal_numbers_are_one_key() {
        for value in [Value::Int(7), Value::Uint(7), Value::Double(7.0)] {
            assert_eq!(Key::of(&value), Some(Key::Int(7)));
        }
        assert_eq!(Key::of(&Value::Double(7.5)), None);
        assert_eq!(Key::of(&Value::Double(9_223_372_036_854_775_808.0)), None);
        assert_eq!(Key::of(&Value::Uint(u64::MAX)), Some(Key::Uint(u64::MAX)));
    }
}
