//! What schemas refuse, what they say, and what hostile ones cost.

use serde_json::{Value, json};

use super::*;

fn schema(source: &Value) -> Schema {
    Schema::parse(source, "").unwrap_or_else(|problems| panic!("{source} is refused: {problems:?}"))
}

fn refusal(source: &Value) -> Vec<(String, Code, String)> {
    let problems = Schema::parse(source, "/input").expect_err("it must be refused");
    problems.into_iter().map(|problem| (problem.pointer, problem.code, problem.message)).collect()
}

fn nested(levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |inner, _| json!([inner]))
}

/// `$defs` a0 to aN: each made by `link` from a reference to the next, the last `end`.
fn chain(count: usize, link: impl Fn(Value) -> Value, end: Value) -> Value {
    let mut defs = serde_json::Map::new();
    for at in 0..count - 1 {
        defs.insert(format!("a{at}"), link(json!({"$ref": format!("#/$defs/a{}", at + 1)})));
    }
    defs.insert(format!("a{}", count - 1), end);
    json!({"$ref": "#/$defs/a0", "$defs": defs})
}

#[test]
fn violations_name_place_and_reason() {
    let schema = schema(&json!({
        "type": "object",
        "required": ["lines"],
        "properties": {
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1},
            "method": {"anyOf": [{"const": "card"}, {"const": "cash"}]},
            "one": {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            "never": {"not": {"type": "string"}}
        },
        "additionalProperties": false,
        "$defs": {"line": {"properties": {"sku": {"type": "string", "pattern": "^[A-Z]+$"}}}}
    }));
    assert_eq!(schema.check(&json!({"lines": [{"sku": "A"}], "method": "card", "one": 1.5, "never": 1})), Ok(()));
    for (value, pointer, part) in [
        (json!({}), "", "\"lines\" is a required property"),
        (json!({"lines": []}), "/lines", "less than 1 item"),
        (json!({"lines": [{"sku": "A"}, {"sku": 5}]}), "/lines/1/sku", "not of type \"string\""),
        (json!({"lines": [{"sku": "a"}]}), "/lines/0/sku", "does not match"),
        (json!({"lines": [1], "x": 1}), "", "'x' was unexpected"),
        (json!({"lines": [1], "method": "wire"}), "/method", "fits none of the alternatives"),
        (json!({"lines": [1], "one": 2}), "/one", "exactly one"),
        (json!({"lines": [1], "never": "s"}), "/never", "fits what `not` excludes"),
    ] {
        let found = schema.check(&value).expect_err("it does not fit");
        assert!(found.iter().any(|v| v.pointer == pointer && v.message.contains(part)), "{value}: {found:?}");
    }
}

#[test]
fn violations_are_few_and_short() {
    let schema = schema(&json!({"items": {"enum": ["x".repeat(5_000)]}, "additionalProperties": false}));
    let found = schema.check(&json!(vec!["y".repeat(1_000); 500])).expect_err("it does not fit");
    assert_eq!(found.len(), explain::VIOLATIONS_MAX);
    assert!(found.iter().all(|violation| violation.message.len() <= 256), "{found:?}");
    let wide: Value =
        (0..10_000).map(|at| (format!("name{at}"), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    assert!(schema.check(&wide).expect_err("it does not fit")[0].message.len() <= 256);
}

#[test]
fn unusable_schemas_are_refused_with_their_place() {
    for (source, pointer, code, part) in [
        (json!({"properties": {"a": {"type": "strin"}}}), "/input/properties/a/type", Code::Schema, "a type is one of"),
        (json!({"required": "a"}), "/input/required", Code::Schema, "not of type"),
        (json!({"minLength": -1}), "/input/minLength", Code::Schema, ""),
        (json!(5), "/input", Code::Schema, "not of type"),
        (json!({"items": {"pattern": "(?=a)b"}}), "/input/items/pattern", Code::Schema, "look-around"),
        (json!({"pattern": "(a"}), "/input/pattern", Code::Schema, ""),
        (json!({"pattern": "(\\w{900}){900}"}), "/input/pattern", Code::Schema, "huge repetitions"),
        (json!({"$ref": "https://example.com/a.json"}), "/input/$ref", Code::Schema, "nothing outside"),
        (json!({"$ref": "file:///etc/passwd"}), "/input/$ref", Code::Schema, "nothing outside"),
        (
            json!({"$id": "https://example.com/", "items": {"$ref": "b"}}),
            "/input/items/$ref",
            Code::Schema,
            "nothing outside",
        ),
        (json!({"items": {"$ref": "#/nope"}}), "/input/items/$ref", Code::Schema, "no schema at `#/nope`"),
        (json!({"$ref": "#/enum/0", "enum": [{}]}), "/input/$ref", Code::Schema, "no schema at"),
        (json!({"$ref": "#"}), "/input/$ref", Code::Schema, "leads back to itself"),
        (json!({"items": {"allOf": [{"$ref": "#/items"}]}}), "/input/items/allOf/0/$ref", Code::Schema, "leads back"),
        (json!({"$dynamicRef": "#a"}), "/input/$dynamicRef", Code::Schema, "not supported"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "/input/$schema", Code::Schema, "2020-12"),
        (json!({"items": {"$id": "x"}}), "/input/items/$id", Code::Schema, "only at the top"),
        (json!({"$anchor": "a", "not": {"$anchor": "a"}}), "/input/not/$anchor", Code::Schema, "twice"),
    ] {
        let found = refusal(&source);
        assert!(found.iter().any(|(p, c, m)| p == pointer && *c == code && m.contains(part)), "{source}: {found:?}");
    }
}

#[test]
fn problems_of_a_schema_come_together() {
    let found = refusal(&json!({"properties": {"a": {"type": 5}, "b": {"$ref": "x"}, "c": {"required": 1}}}));
    let places: std::collections::BTreeSet<_> = found.iter().map(|(pointer, _, _)| pointer.as_str()).collect();
    assert_eq!(
        places.into_iter().collect::<Vec<_>>(),
        ["/input/properties/a/type", "/input/properties/b/$ref", "/input/properties/c/required"]
    );
}

#[test]
fn references_inside_the_schema_work() {
    let schema = schema(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/tree",
        "properties": {
            "left": {"$ref": "#"},
            "right": {"$ref": "#node"},
            "odd": {"$ref": "#/$defs/a%20b~1c"},
            "list": {"items": {"$ref": "#"}}
        },
        "$anchor": "node",
        "$defs": {"a b/c": {"type": "integer"}},
        "additionalProperties": false
    }));
    assert_eq!(schema.check(&json!({"left": {"right": {"odd": 1}}, "list": [{}]})), Ok(()));
    let found = schema.check(&json!({"left": {"right": {"odd": "x"}}})).expect_err("it does not fit");
    assert_eq!(found[0].pointer, "/left/right/odd");
}

#[test]
fn schemas_that_would_run_for_ever_are_refused() {
    let doubling = |next: Value| json!({"allOf": [next, next]});
    assert_eq!(refusal(&chain(25, doubling, json!({"type": "integer"})))[0].1, Code::Limit);
    let below = |next: Value| json!({"allOf": [{"items": next}, {"items": next}]});
    assert_eq!(refusal(&chain(60, below, json!({"type": "integer"})))[0].1, Code::Limit);
    assert_eq!(refusal(&chain(5_000, |next| next, json!({})))[0].1, Code::Limit);
    assert_eq!(refusal(&json!({"enum": vec![1; 60_000]}))[0].1, Code::Limit);
    assert_eq!(refusal(&json!({"allOf": vec![json!({"pattern": "a"}); 300]}))[0].1, Code::Limit);
    let leftovers = (0..20).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}));
    assert_eq!(refusal(&leftovers)[0].1, Code::Limit);
}

#[test]
fn many_types_that_name_each_other_are_fine() {
    let mut defs = serde_json::Map::new();
    for at in 0..40 {
        let others: Vec<_> = (0..40).map(|other| json!({"$ref": format!("#/$defs/t{other}")})).collect();
        defs.insert(format!("t{at}"), json!({"properties": {"next": {"anyOf": others}}, "required": ["next"]}));
    }
    let schema = schema(&json!({"$ref": "#/$defs/t0", "$defs": defs}));
    let value = (0..120).fold(json!({}), |inner, _| json!({"next": inner}));
    assert!(schema.check(&value).is_err());
}

#[test]
fn deep_values_and_alternatives_end() {
    let branches = json!([{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "type": "array"}]);
    for keyword in ["anyOf", "oneOf"] {
        let found = schema(&json!({keyword: branches})).check(&nested(127, json!("x"))).expect_err("it does not fit");
        assert!(!found.is_empty());
    }
    // Both sides are listed for every level: 2^127 findings without a budget.
    let both =
        schema(&json!({"type": ["array", "integer"], "allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}));
    assert_eq!(both.check(&nested(127, json!(1))), Ok(()));
    assert!(!both.check(&nested(127, json!("x"))).expect_err("it does not fit").is_empty());
}

#[test]
fn the_deepest_check_fits_a_small_stack() {
    let link = |next: Value| json!({"if": {"type": "integer"}, "else": {"oneOf": [{"type": "boolean"}, next]}, "unevaluatedItems": false});
    let end = json!({"type": ["array", "string"], "items": {"$ref": "#"}, "allOf": [{"minItems": 1}]});
    let schema = schema(&chain(8, link, end));
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let checked = small.spawn(move || schema.check(&nested(127, json!(null))).is_err());
    assert!(checked.expect("a thread").join().expect("no panic"));
}

#[test]
fn the_longest_chain_fits_at_the_deepest_value() {
    for link in [
        (|next| json!({"allOf": [next]})) as fn(Value) -> Value,
        |next| json!({"anyOf": [{"type": "boolean"}, next]}),
        |next| json!({"if": true, "then": next}),
        |next| json!({"not": {"not": next}}),
    ] {
        let end = json!({"type": "array", "items": {"$ref": "#"}});
        let longest = (2..40).rev().find_map(|count| Schema::parse(&chain(count, link, end.clone()), "").ok());
        let schema = longest.expect("some length is accepted");
        assert!(schema.check(&nested(127, json!(1))).is_err());
        assert_eq!(schema.check(&nested(127, json!([]))), Ok(()));
    }
}

#[test]
fn many_alternatives_for_many_values_end() {
    let branches: Vec<_> = (0..4_000).map(|at| json!({"const": at + 10})).collect();
    let schema = schema(&json!({"contains": {"anyOf": branches}}));
    assert!(schema.check(&json!(vec![1; 2_000])).is_err());
    let found = schema.check(&json!(vec![1; 400_000])).expect_err("nobody knows");
    assert!(found[0].message.contains("too large for a schema"), "{found:?}");
    assert_eq!(
        self::schema(&json!({"items": {"enum": (0..40_000).collect::<Vec<_>>()}})).check(&json!(vec![39_999; 50_000])),
        Ok(())
    );
}

#[test]
fn long_lists_of_violations_end() {
    let schema = schema(&json!({"allOf": vec![json!({"items": {"type": "string"}}); 50]}));
    let found = schema.check(&json!(vec![1; 400_000])).expect_err("it does not fit");
    assert!(!found.is_empty() && found.len() <= explain::VIOLATIONS_MAX);
    let required: Vec<_> = (0..5_000).map(|at| format!("p{at}")).collect();
    let schema = self::schema(&json!({"items": {"required": required}}));
    assert!(!schema.check(&json!(vec![json!({}); 5_000])).expect_err("it does not fit").is_empty());
}
