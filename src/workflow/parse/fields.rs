//! Reading typed values out of JSON, with a problem for each that is not what it must be.

use std::{ops::RangeInclusive, str::FromStr};

use serde_json::{Map, Value};

use super::{
    super::{
        pointer::Pointer,
        problem::{Code, Problems},
    },
    hint,
};
use crate::model::id::Invalid;

/// A value of the document with its place.
#[derive(Clone, Debug)]
pub struct Part<'v> {
    /// The value.
    pub value: &'v Value,
    /// Where it stands.
    pub at: Pointer,
}

/// An object of the document with its place.
#[derive(Clone, Debug)]
pub struct Fields<'v> {
    map: &'v Map<String, Value>,
    /// Where it stands.
    pub at: Pointer,
}

impl<'v> Fields<'v> {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<Part<'v>> {
        self.map.get(key).map(|value| Part { value, at: self.at.key(key) })
    }

    /// Returns a member that must be there.
    pub fn need(&self, key: &str, problems: &mut Problems) -> Option<Part<'v>> {
        let part = self.get(key);
        if part.is_none() {
            problems.push(&self.at, Code::MissingKey, format!("`{key}` is missing"));
        }
        part
    }

    /// Returns every member.
    pub fn all(&self) -> impl Iterator<Item = (&'v str, Part<'v>)> + use<'v, '_> {
        self.map.iter().map(|(key, value)| (key.as_str(), Part { value, at: self.at.key(key) }))
    }

    /// Returns whether there is a member of that name.
    pub fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Adds a problem for every key that is in neither list: what is read, and what is not supported yet.
    pub fn check_keys(&self, known: &[&str], later: &[&str], problems: &mut Problems) {
        for (key, part) in self.all() {
            if later.contains(&key) {
                problems.push(&part.at, Code::Unsupported, not_yet(key));
            } else if !known.contains(&key) {
                problems.push(&part.at, Code::UnknownKey, hint::unknown("key", key, known.iter().copied()));
            }
        }
    }
}

/// Returns the sentence for a form of the language that does not run yet.
pub fn not_yet(form: &str) -> String {
    format!("`{form}` is not supported yet")
}

/// Returns what kind of JSON a value is, in words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'v> Part<'v> {
    /// Adds a problem about the value.
    pub fn wrong(&self, message: impl Into<String>, problems: &mut Problems) {
        problems.push(&self.at, Code::InvalidValue, message);
    }

    fn not_a(&self, wanted: &str, problems: &mut Problems) {
        self.wrong(format!("it must be {wanted}, not {}", kind_of(self.value)), problems);
    }

    /// Reads an object.
    pub fn fields(&self, problems: &mut Problems) -> Option<Fields<'v>> {
        let map = self.value.as_object();
        if map.is_none() {
            self.not_a("an object", problems);
        }
        map.map(|map| Fields { map, at: self.at.clone() })
    }

    /// Reads a list.
    pub fn items(&self, problems: &mut Problems) -> Option<Vec<Part<'v>>> {
        let items = self.value.as_array();
        if items.is_none() {
            self.not_a("a list", problems);
        }
        let part = |(at, value)| Part { value, at: self.at.item(at) };
        items.map(|items| items.iter().enumerate().map(part).collect())
    }

    /// Reads a string.
    pub fn text(&self, problems: &mut Problems) -> Option<&'v str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.not_a("a string", problems);
        }
        text
    }

    /// Reads a string that keeps the rule of an id.
    pub fn id<T: FromStr<Err = Invalid>>(&self, problems: &mut Problems) -> Option<T> {
        let read: Result<T, Invalid> = self.text(problems)?.parse();
        read.map_err(|invalid| self.wrong(invalid.to_string(), problems)).ok()
    }

    /// Reads one of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)], problems: &mut Problems) -> Option<T> {
        let text = self.text(problems)?;
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        if chosen.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.wrong(format!("it must be one of {}", words.join(", ")), problems);
        }
        chosen
    }

    /// Reads a whole number within a range.
    pub fn whole(&self, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let number = self.value.as_u64().filter(|number| range.contains(number));
        if number.is_none() {
            self.wrong(format!("it must be a whole number from {} to {}", range.start(), range.end()), problems);
        }
        number
    }

    /// Reads a number that `good` accepts; `rule` says which those are.
    pub fn number(&self, rule: &str, good: impl Fn(f64) -> bool, problems: &mut Problems) -> Option<f64> {
        let number = self.value.as_f64().filter(|number| number.is_finite() && good(*number));
        if number.is_none() {
            self.wrong(format!("it must be a number {rule}"), problems);
        }
        number
    }
}
