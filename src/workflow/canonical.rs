//! The canonical form of a document and its hash: what two texts must share to be the same definition.
//!
//! Keys sorted by code point, no white space, numbers and texts as serde_json prints them; without `definition_hash`,
//! `source_map` and `description` at the top, and without the `description` of a step. A `description` anywhere else,
//! in a schema or an input, is content.

use serde_json::{Map, Value};

use crate::model::{DefinitionHash, id::sha256_hex};

/// Returns the hash of `document`.
pub fn definition_hash(document: &Value) -> DefinitionHash {
    DefinitionHash::new(sha256_hex(canonical_text(document).as_bytes())).expect("a SHA-256 reads like a hash")
}

/// Returns the canonical form of `document` as text.
pub fn canonical_text(document: &Value) -> String {
    let mut text = String::new();
    match document {
        Value::Object(fields) => write_object(&mut text, fields, |key, value, text| match key {
            "definition_hash" | "source_map" | "description" => false,
            "steps" => write_steps(text, value),
            _ => write(text, value),
        }),
        other => {
            write(&mut text, other);
        }
    }
    text
}

/// Each writer returns whether it wrote anything; what it leaves out leaves no key behind.
fn write_steps(text: &mut String, steps: &Value) -> bool {
    let Value::Array(steps) = steps else { return write(text, steps) };
    write_array(text, steps, |text, step| match step {
        Value::Object(fields) => {
            write_object(text, fields, |key, value, text| key != "description" && write(text, value));
        }
        other => {
            write(text, other);
        }
    });
    true
}

fn write(text: &mut String, value: &Value) -> bool {
    match value {
        Value::Array(items) => write_array(text, items, |text, item| {
            write(text, item);
        }),
        Value::Object(fields) => write_object(text, fields, |_, value, text| write(text, value)),
        scalar => text.push_str(&scalar.to_string()),
    }
    true
}

fn write_array(text: &mut String, items: &[Value], mut write_item: impl FnMut(&mut String, &Value)) {
    text.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write_item(text, item);
    }
    text.push(']');
}

fn write_object(
    text: &mut String,
    fields: &Map<String, Value>,
    mut write_value: impl FnMut(&str, &Value, &mut String) -> bool,
) {
    // Sorted here, whatever order the map keeps: bytes of UTF-8 sort like code points.
    let mut keys: Vec<_> = fields.iter().collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    let start = text.len();
    for (key, value) in keys {
        let before = text.len();
        if before > start {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        if !write_value(key, value, text) {
            text.truncate(before);
        }
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_canonical_form_is_as_published() {
        let document: Value = serde_json::from_str(
            r#" { "steps" : [ {"id":"b", "description":"x", "compute": {"description":"kept","é":1,"z":1.50,"a":1e2}} ],
                  "name":"n", "description":"gone", "source_map":{"a":1}, "definition_hash":"gone",
                  "input":{"description":"kept"}, "big":9007199254740993, "\u0061\u0001/":"\u00e9\/" } "#,
        )
        .unwrap();
        assert_eq!(
            canonical_text(&document),
            r#"{"a\u0001/":"é/","big":9007199254740993,"input":{"description":"kept"},"name":"n","steps":[{"compute":{"a":100.0,"description":"kept","z":1.5,"é":1},"id":"b"}]}"#
        );
        // The published hash of `{"name":"n"}`: a change of the form would forget every registered document.
        assert_eq!(
            definition_hash(&json!({"name": "n"})).as_str(),
            "sha256:e5d7b2adb8fb9f9187638229b0a2cf241c5f155867cd31c82cbb20c642e62554"
        );
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter_map("finite", |number| serde_json::Number::from_f64(number).map(Value::from)),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-eé\u{10000}~/\"]{0,3}", inner, 0..5)
                    .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    /// Prints with keys backwards and white space everywhere.
    fn scattered(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("[ {} ]", items.iter().map(scattered).collect::<Vec<_>>().join(" ,\n")),
            Value::Object(fields) => {
                let fields: Vec<_> =
                    fields.iter().rev().map(|(key, value)| format!("{} :\t{}", json!(key), scattered(value))).collect();
                format!("{{\r\n{} }}", fields.join(" , "))
            }
            scalar => scalar.to_string(),
        }
    }

    proptest! {
        #[test]
        fn order_and_white_space_do_not_count(value in json_value()) {
            let other: Value = serde_json::from_str(&scattered(&value)).unwrap();
            prop_assert_eq!(definition_hash(&value), definition_hash(&other));
        }

        #[test]
        fn descriptions_of_document_and_steps_do_not_count(text in ".{0,9}", input in json_value()) {
            let plain = json!({"name": "n", "input": input, "steps": [{"id": "a", "compute": input}]});
            let mut told = plain.clone();
            told["description"] = text.clone().into();
            told["source_map"] = input.clone();
            told["definition_hash"] = "sha256:".into();
            told["steps"][0]["description"] = text.into();
            prop_assert_eq!(definition_hash(&plain), definition_hash(&told));
        }

        #[test]
        fn every_other_difference_counts(one in json_value(), other in json_value()) {
            let steps = |value: &Value| json!({"steps": [{"id": "a", "compute": value}]});
            prop_assert_eq!(one == other, definition_hash(&steps(&one)) == definition_hash(&steps(&other)));
        }
    }
}
