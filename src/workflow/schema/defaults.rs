//! Filling in what an input leaves out.

use serde_json::Value;

/// Adds the `default` of every property of `schema` that `value` lacks. Goes down through `properties` alone, so what
/// it adds is never more than the schema itself holds.
pub fn fill(schema: &Value, value: &mut Value) -> bool {
    let (Some(properties), Some(object)) = (schema.get("properties").and_then(Value::as_object), value.as_object_mut())
    else {
        return false;
    };
    let mut added = false;
    for (name, property) in properties {
        if !object.contains_key(name)
            && let Some(default) = property.get("default")
        {
            object.insert(name.clone(), default.clone());
            added = true;
        }
        if let Some(member) = object.get_mut(name) {
            added |= fill(property, member);
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn only_missing_properties_are_filled() {
        let schema = json!({
            "properties": {
                "currency": {"default": "EUR"},
                "note": {"default": null},
                "address": {"default": {"street": "?"}, "properties": {"country": {"default": "NL"}}},
                "seller": {"properties": {"id": {"default": 7}}},
                "lines": {"items": {"properties": {"count": {"default": 1}}}},
                "anything": true
            },
            "allOf": [{"properties": {"hidden": {"default": 1}}}]
        });
        for (before, after) in [
            (json!({}), json!({"currency": "EUR", "note": null, "address": {"street": "?", "country": "NL"}})),
            (
                json!({"currency": null, "note": 1, "address": 5, "seller": {}, "lines": [{}]}),
                json!({"currency": null, "note": 1, "address": 5, "seller": {"id": 7}, "lines": [{}]}),
            ),
            (json!([1]), json!([1])),
        ] {
            let mut value = before.clone();
            assert_eq!(super::fill(&schema, &mut value), before != after);
            assert_eq!(value, after);
            assert!(!super::fill(&schema, &mut value), "filled once is filled");
        }
        assert!(!super::fill(&json!(true), &mut json!({})));
    }
}
