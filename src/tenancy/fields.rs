//! Reads the fields of a request, each with its place, and gathers everything that is wrong.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{code::cut, nearest};

/// The most problems that are gathered.
const PROBLEMS_MAX: usize = 100;
/// The most entries of a list.
const ENTRIES_MAX: usize = 1_000;

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, as a JSON pointer; empty: the whole.
    pub pointer: String,
    /// What, for people.
    pub message: String,
}

/// Everything that is wrong so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(Problem { pointer: pointer.into(), message: cut(message.into(), 500) });
        }
    }

    /// Returns what was read, where nothing is wrong.
    pub(super) fn unless_any<T>(self, read: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(read) } else { Err(self.0) }
    }
}

/// An object of the request, and where it stands.
pub(super) struct Fields<'a> {
    members: Option<&'a Map<String, Value>>,
    at: String,
}

impl<'a> Fields<'a> {
    /// Reads an object that has only these keys.
    pub(super) fn of(value: &'a Value, at: &str, known: &[&str], problems: &mut Problems) -> Self {
        let fields = Self { members: value.as_object(), at: at.to_owned() };
        match fields.members {
            None => problems.add(at, "it must be an object"),
            Some(members) => {
                for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
                    problems.add(fields.place(key), unknown(key, known));
                }
            }
        }
        fields
    }

    /// Returns a member and where it stands. One that is null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<(&'a Value, String)> {
        let value = self.members?.get(key).filter(|value| !value.is_null())?;
        Some((value, self.place(key)))
    }

    /// Returns the object below a member.
    pub(super) fn object(&self, key: &str, known: &[&str], problems: &mut Problems) -> Option<Fields<'a>> {
        let (value, at) = self.get(key)?;
        Some(Fields::of(value, &at, known, problems))
    }

    /// Returns a whole number that is at least `least`.
    pub(super) fn number(&self, key: &str, least: u64, problems: &mut Problems) -> Option<u64> {
        let (value, at) = self.get(key)?;
        let number = value.as_u64().filter(|number| *number >= least);
        if number.is_none() {
            problems.add(at, format!("it must be a whole number, at least {least}"));
        }
        number
    }

    /// Returns a truth.
    pub(super) fn flag(&self, key: &str, problems: &mut Problems) -> bool {
        let Some((value, at)) = self.get(key) else { return false };
        value.as_bool().unwrap_or_else(|| {
            problems.add(at, "it must be true or false");
            false
        })
    }

    /// Returns a list of texts, each read by its rule.
    pub(super) fn list<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        key: &str,
        problems: &mut Problems,
    ) -> Option<Vec<T>> {
        let (value, at) = self.get(key)?;
        let Some(entries) = value.as_array().filter(|entries| entries.len() <= ENTRIES_MAX) else {
            problems.add(at, format!("it must be a list of at most {ENTRIES_MAX} texts"));
            return None;
        };
        let mut read = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            match entry.as_str().map(str::parse::<T>) {
                Some(Ok(entry)) => read.push(entry),
                Some(Err(error)) => problems.add(format!("{at}/{index}"), error.to_string()),
                None => problems.add(format!("{at}/{index}"), "it must be a text"),
            }
        }
        Some(read)
    }

    /// Returns every member of the object.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value, String)> {
        self.members.into_iter().flatten().map(|(key, value)| (key.as_str(), value, self.place(key)))
    }

    fn place(&self, key: &str) -> String {
        let key: String = key.chars().take(80).collect();
        format!("{}/{}", self.at, key.replace('~', "~0").replace('/', "~1"))
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    match nearest(key, known) {
        Some(nearest) => format!("unknown key; did you mean `{nearest}`?"),
        None => format!("unknown key; known are `{}`", known.join("`, `")),
    }
}
