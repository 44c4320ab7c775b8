//! JSON pointers (RFC 6901): where something stands in a document.

use std::{cmp::Ordering, fmt};

/// A place in a document. The empty pointer is the whole of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// Returns the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the place of a member of the object that stands here.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + key.len() + 1);
        text.push_str(&self.0);
        text.push('/');
        for character in key.chars() {
            match character {
                '~' => text.push_str("~0"),
                '/' => text.push_str("~1"),
                other => text.push(other),
            }
        }
        Self(text)
    }

    /// Returns the place of an element of the array that stands here.
    #[must_use]
    pub fn item(&self, at: usize) -> Self {
        Self(format!("{}/{at}", self.0))
    }

    /// Returns the place that `tail`, a pointer from here on, names.
    #[must_use]
    pub fn join(&self, tail: &str) -> Self {
        Self(format!("{}{tail}", self.0))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Pointer {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Compares two pointers by place: element 10 comes after element 2.
pub fn by_place(left: &str, right: &str) -> Ordering {
    let mut ours = left.split('/');
    let mut theirs = right.split('/');
    loop {
        let order = match (ours.next(), theirs.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(one), Some(other)) => match (one.parse::<u64>(), other.parse::<u64>()) {
                (Ok(one), Ok(other)) => one.cmp(&other),
                _ => one.cmp(other),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_finds_what_it_names() {
        let document = serde_json::json!({"a/b": {"~": [0, {"": 7}]}});
        let place = Pointer::root().key("a/b").key("~").item(1).key("");
        assert_eq!(place.as_str(), "/a~1b/~0/1/");
        assert_eq!(document.pointer(place.as_str()), Some(&serde_json::json!(7)));
    }

    #[test]
    fn elements_are_in_the_order_of_their_numbers() {
        let mut places = ["/steps/10/id", "/steps/2", "", "/name", "/steps/2/id", "/steps"];
        places.sort_by(|one, other| by_place(one, other));
        assert_eq!(places, ["", "/name", "/steps", "/steps/2", "/steps/2/id", "/steps/10/id"]);
    }
}
