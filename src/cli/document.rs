//! Workflow documents from files: JSON as it is, YAML turned into JSON.

use std::{fmt, io, path::Path};

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use crate::model::json::DEPTH_MAX;

use super::{Error, input};

/// The largest document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// Reads a document as JSON text. A file that is not named like YAML is JSON, and not looked into here.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let bytes = if path == Path::new("-") {
        input::limited(io::stdin().lock(), path, DOCUMENT_BYTES_MAX)?
    } else {
        input::file(path, DOCUMENT_BYTES_MAX)?
    };
    let text = String::from_utf8(bytes).map_err(|_| Error::Usage(format!("`{}` is not UTF-8", path.display())))?;
    if !is_yaml(path) {
        return Ok(text);
    }
    yaml_to_json(&text).map_err(|problem| Error::Usage(format!("`{}` is not usable YAML: {problem}", path.display())))
}

/// Returns whether a file is named like YAML.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Returns what a JSON pointer is called; the whole document has none.
pub(super) fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "document" } else { pointer }
}

/// Turns one YAML document into JSON: keys in their order and once each, numbers as exact as JSON's, `on` and `yes` as
/// the texts that they are.
pub(super) fn yaml_to_json(text: &str) -> Result<String, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Merge,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
    };
    let Json(json) = serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    Ok(json)
}

/// A JSON text, written while something else is read.
struct Json(String);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut json = String::new();
        Writer { json: &mut json, depth: 0 }.deserialize(deserializer)?;
        Ok(Self(json))
    }
}

struct Writer<'a> {
    json: &'a mut String,
    depth: usize,
}

impl Writer<'_> {
    fn write<E: de::Error>(self, value: &impl serde::Serialize) -> Result<(), E> {
        self.json.push_str(&serde_json::to_string(value).map_err(E::custom)?);
        Ok(())
    }

    fn deeper<E: de::Error>(&mut self) -> Result<Writer<'_>, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format_args!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Writer { json: self.json, depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what JSON can hold")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        if value.is_finite() { self.write(&value) } else { Err(E::custom("JSON has no such number")) }
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.json.push('[');
        let begin = self.json.len();
        // An element writes itself only when it turns out to be there, so the comma goes in behind it.
        while items.next_element_seed(self.deeper()?)?.is_some() {
            self.json.push(',');
        }
        if self.json.len() > begin {
            self.json.pop();
        }
        self.json.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.json.push('{');
        let begin = self.json.len();
        while let Some(key) = entries.next_key::<String>()? {
            self.deeper()?.write(&key)?;
            self.json.push(':');
            entries.next_value_seed(self.deeper()?)?;
            self.json.push(',');
        }
        if self.json.len() > begin {
            self.json.pop();
        }
        self.json.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_means_what_its_json_means() {
        for (yaml, json) in [
            (
                "name: order\nsteps:\n  - id: a\n    sleep: 1s\n  - {}\nlist: []\n",
                r#"{"name":"order","steps":[{"id":"a","sleep":"1s"},{}],"list":[]}"#,
            ),
            ("on: {failure: []}\nyes: no", r#"{"on":{"failure":[]},"yes":"no"}"#),
            (
                "[9007199254740993, 18446744073709551615, -9223372036854775808, 0.1, 1.0, 1e300]",
                "[9007199254740993,18446744073709551615,-9223372036854775808,0.1,1.0,1e+300]",
            ),
            ("[null, ~, true, 'true', \"1\", 1_000, 007]", r#"[null,null,true,"true","1","1_000","007"]"#),
            ("when: '${ a == \"b: c\" }'\n", r#"{"when":"${ a == \"b: c\" }"}"#),
            ("text: |\n  one\n  two\n", r#"{"text":"one\ntwo\n"}"#),
            ("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", r#"{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1}}"#),
        ] {
            assert_eq!(yaml_to_json(yaml).as_deref(), Ok(json), "{yaml}");
        }
    }

    #[test]
    fn yaml_that_json_cannot_hold_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
            + &(b'b'..=b'k')
                .map(|at| format!("{0}: &{0} [{1}]\n", at as char, vec![format!("*{}", (at - 1) as char); 9].join(",")))
                .collect::<String>();
        for yaml in ["a: 1\na: 2\n", "a: .nan", "a: .inf", "a: [", "a: !custom x", "a: 1\n---\nb: 2\n", &deep, &bomb] {
            assert!(yaml_to_json(yaml).is_err(), "{}", &yaml[..yaml.len().min(40)]);
        }
    }

    #[test]
    fn the_name_tells_the_language() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(written("a.yaml", "a: 1").unwrap(), r#"{"a":1}"#);
        assert_eq!(written("a.yml", "a: 1").unwrap(), r#"{"a":1}"#);
        assert_eq!(written("a.json", " {\"a\": 1}\n").unwrap(), " {\"a\": 1}\n");
        assert_eq!(written("b.yaml", "a: 1\na: 1").unwrap_err().exit_code(), 2);
    }
}
