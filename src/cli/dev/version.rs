//! The version under which an edited document is registered: `VERSION+dev.HASH8`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::model::json;

/// The longest version, in characters.
const VERSION_CHARS_MAX: usize = 64;

/// Returns a document under a version of its own: the same content always has the same, other content another.
///
/// Returns none for what is not a document at all; the server says what is wrong with it.
pub(super) fn edited(document: &str) -> Option<String> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document).ok()?;
    let version: String = serde_json::from_str(fields.get("version")?.get()).ok()?;
    // White space and the order of keys make no other content, as with the server's own hash.
    let content = serde_json::to_string(&json::parse(document.as_bytes()).ok()?).ok()?;
    let suffix = format!("+dev.{}", hash8(&content));
    let kept: String = version.chars().take(VERSION_CHARS_MAX - suffix.len()).collect();
    fields.insert("version".to_owned(), serde_json::value::to_raw_value(&(kept + &suffix)).ok()?);
    // It was the hash of the document under its own version.
    fields.remove("definition_hash");
    serde_json::to_string(&fields).ok()
}

/// Returns the first eight digits of a content's SHA-256.
fn hash8(content: &str) -> String {
    Sha256::digest(content).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(document: &str) -> String {
        let fields: serde_json::Value = serde_json::from_str(&edited(document).unwrap()).unwrap();
        fields["version"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_same_content_has_the_same_version() {
        assert_eq!(hash8("abc"), "ba7816bf");
        let one = version(r#"{"name":"a","version":"1.0","steps":[]}"#);
        assert!(one.starts_with("1.0+dev.") && one.len() == 16, "{one}");
        assert_eq!(version(" {\"steps\": [], \"version\":\"1.0\",\n\"name\":\"a\"}"), one);
        assert_ne!(version(r#"{"name":"a","version":"1.0","steps":[1]}"#), one);
    }

    #[test]
    fn everything_else_stays_as_it_was() {
        let text = edited(r#"{"n":18446744073709551615,"f":1.0,"version":"1","definition_hash":"sha256:0"}"#).unwrap();
        assert!(text.contains("\"n\":18446744073709551615") && text.contains("\"f\":1.0"), "{text}");
        assert!(!text.contains("definition_hash"));
    }

    #[test]
    fn a_long_version_keeps_its_beginning() {
        let long = "9".repeat(VERSION_CHARS_MAX);
        let version = version(&format!(r#"{{"version":"{long}"}}"#));
        assert_eq!(version.len(), VERSION_CHARS_MAX);
        assert!(version.starts_with("999") && version.contains("+dev."));
    }

    #[test]
    fn what_is_no_document_has_no_version() {
        for text in ["", "[]", "{}", r#"{"version":1}"#, r#"{"version":"1","a":1,"a":2}"#] {
            assert_eq!(edited(text), None, "{text}");
        }
    }
}
