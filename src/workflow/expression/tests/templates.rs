//! What templates render to.

use super::super::Template;
use super::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn render(json: &Json) -> Result<String, Error> {
    Template::parse(json, "/t").expect("a template").render(&order(), &mut Budget::default())
}

#[test]
fn holes_keep_types_and_texts_mix() {
    for (template, expected) in [
        (json!("${ 1 + 1 }"), "2"),
        (json!("${input.lines[0]}"), r#"{"sku":"A1","qty":2}"#),
        (json!("${ null }"), "null"),
        (json!("n=${ 1 + 1 }"), r#""n=2""#),
        (json!(" ${ 1 }"), r#"" 1""#),
        (json!("${ 1 }${ 2 }"), r#""12""#),
        (json!("a ${ input.name } b ${ 1.0 } c ${ true } d ${ null }"), r#""a Ann b 1.0 c true d null""#),
        (json!("${ input.lines[0] }!"), r#""{\"qty\":2,\"sku\":\"A1\"}!""#),
        (json!("at ${ timestamp(0) } for ${ duration('1m') }"), r#""at 1970-01-01T00:00:00Z for 60s""#),
        (json!("${ timestamp(0) }"), r#""1970-01-01T00:00:00Z""#),
        (json!("$${ input }"), r#""${ input }""#),
        (json!("$${ x } ${ 1 }"), r#""${ x } 1""#),
        (json!("\"quoted\" ${ '\"' }\n"), r#""\"quoted\" \"\n""#),
        (json!(""), r#""""#),
        (json!("plain"), r#""plain""#),
        (json!("${ '}' + \"}\" }"), r#""}}""#),
        (json!("${ {'a': {'b': '}'}} }"), r#"{"a":{"b":"}"}}"#),
        (json!({"b": [1, "${ 2 }", {"c": "x${ 3 }"}], "a": null}), r#"{"a":null,"b":[1,2,{"c":"x3"}]}"#),
        (json!({"${ key }": 1}), r#"{"${ key }":1}"#),
        (json!([]), "[]"),
        (json!({}), "{}"),
        (json!([1.0, -0.0, 9007199254740993_i64, 1e308]), "[1.0,-0.0,9007199254740993,1e+308]"),
        (json!("${ input }"), &order().roots["input"]),
        (json!(["${ steps.charge.output }"]), r#"[{"paid":true}]"#),
    ] {
        assert_eq!(render(&template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn errors_name_their_place() {
    for (template, pointer, part) in [
        (json!({"a": ["x", "${ input.absent }"]}), "/t/a/1", "`input.absent` is missing"),
        (json!({"a~/b": "x ${ input.absent }"}), "/t/a~0~1b", "`input.absent` is missing"),
        (json!("${ b'a' }"), "/t", "bytes"),
        (json!("x${ b'a' }"), "/t", "bytes"),
        (json!("${ type(1) }"), "/t", "type"),
    ] {
        let error = render(&template).unwrap_err();
        assert_eq!(error.pointer, pointer);
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let template = json!({"a": "${ 1 + }", "b": "${ ", "c": ["ok ${ 1 }", "${ nope() } ${ steps }"]});
    let problems = Template::parse(&template, "/in").unwrap_err();
    let found: Vec<_> = problems.iter().map(|problem| (problem.pointer.as_str(), problem.code)).collect();
    assert_eq!(
        found,
        [
            ("/in/a", "EXPRESSION_SYNTAX"),
            ("/in/b", "EXPRESSION_UNTERMINATED"),
            ("/in/c/1", "UNKNOWN_FUNCTION"),
            ("/in/c/1", "STEPS_MISUSED"),
        ]
    );
}

#[test]
fn a_template_without_holes_is_a_literal() {
    for json in [json!({"a": [1, "x", null]}), json!(1), json!("x"), json!("")] {
        let template = Template::parse(&json, "").unwrap();
        assert_eq!(template.literal(), Some(&json));
        assert!(!template.is_expression());
    }
    assert_eq!(Template::parse(&json!(["$${ a }"]), "").unwrap().literal(), Some(&json!(["${ a }"])));
    assert_eq!(Template::parse(&json!(["${ 1 }"]), "").unwrap().literal(), None);
    assert!(Template::parse(&json!("${ 1 }"), "").unwrap().is_expression());
}

#[test]
fn conditions_are_bools() {
    let condition = |json: Json| Template::parse(&json, "/when").unwrap().render_bool(&order(), &mut Budget::default());
    assert_eq!(condition(json!("${ input.name == 'Ann' }")), Ok(true));
    assert_eq!(condition(json!(false)), Ok(false));
    for json in [json!("${ 1 }"), json!("${ null }"), json!("true"), json!("x${ true }"), json!(1)] {
        assert!(condition(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn depth_is_bounded() {
    let nest = |depth: usize, inner: Json| (0..depth).fold(inner, |json, _| json!([json]));
    assert!(Template::parse(&nest(127, json!(1)), "").is_ok());
    assert_eq!(Template::parse(&nest(128, json!(1)), "").unwrap_err()[0].code, "TEMPLATE_TOO_DEEP");
    assert!(render(&nest(124, json!("${ input }"))).is_ok());
    assert!(render(&nest(125, json!("${ input }"))).unwrap_err().message.contains("inside one another"));
    assert!(render(&nest(126, json!("${ [1] }"))).is_ok());
    assert!(render(&nest(126, json!("${ [[1]] }"))).is_err());
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_filter("finite", |double| double.is_finite()).prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        r#"[${} 1"'\\]{0,12}"#.prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(".{0,6}", inner, 0..5).prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

/// Doubles every `${`, so that nothing is an expression.
fn escape(json: &Json) -> Json {
    match json {
        Json::String(text) => Json::String(text.replace("${", "$${")),
        Json::Array(items) => items.iter().map(escape).collect(),
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), escape(value))).collect(),
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn escaped_json_renders_to_itself(json in any_json()) {
        let template = Template::parse(&escape(&json), "").unwrap();
        prop_assert_eq!(template.literal(), Some(&json));
        prop_assert_eq!(template.render(&Fake::default(), &mut Budget::default()), Ok(json.to_string()));
    }

    #[test]
    fn any_json_parses_or_is_refused(json in any_json()) {
        let rendered = Template::parse(&json, "").ok().map(|template| template.render(&order(), &mut Budget::default()));
        if let Some(Ok(text)) = rendered {
            prop_assert!(serde_json::from_str::<Json>(&text).is_ok());
        }
    }
}
