//! How the forms of operands are read.

use super::super::Template;
use super::*;

struct Forms;

impl Scope for Forms {
    fn root(&self, name: &str) -> Option<Operand<'_>> {
        Some(match name {
            "json" => Operand::Json(
                r#"{ "a": {"b": [10, 20, {"c": "deep"}]}, "é\"": 1, "t": "x", "a2": 1, "n": null, "t": "last" }"#,
            ),
            "text" => Operand::Text("plain \"text\""),
            "int" | "number" => Operand::Int(-5),
            "nothing" => Operand::Null,
            "execution" => Operand::Record(vec![
                ("id", Operand::Text("e-1")),
                ("run", Operand::Int(2)),
                ("parent", Operand::Null),
                ("details", Operand::Json(r#"{"x":[1,2]}"#)),
            ]),
            "broken" => Operand::Json("{\"a\":"),
            "big" => Operand::Json("18446744073709551615"),
            _ => return None,
        })
    }

    fn step(&self, _: &str, _: StepField) -> Option<Operand<'_>> {
        None
    }
}

#[test]
fn each_form_is_read_along_paths() {
    for (text, expected) in [
        ("json.a.b[2].c", Ok("\"deep\"")),
        ("json.a.b[1] + json.a.b[0] + json.a2", Ok("31")),
        ("json['é\"']", Ok("1")),
        ("json.t", Ok("\"last\"")),
        ("json.t + json.t", Ok("\"lastlast\"")),
        ("json.n", Ok("null")),
        ("json.a.b[3]", Err("`json.a.b[3]` is missing: the list has 3 elements")),
        ("json.a[0]", Err("`json.a[0]` is missing")),
        ("json.a2.x", Err("`json.a2` is of type number")),
        ("json.t.x", Err("`json.t` is of type string")),
        ("json.n.x", Err("`json.n` is null")),
        ("json.a.b.x", Err("`json.a.b` is of type list")),
        ("text", Ok(r#""plain \"text\"""#)),
        ("size(text)", Ok("12")),
        ("text.x", Err("`text` is of type string")),
        ("number + 1", Ok("-4")),
        ("nothing", Ok("null")),
        ("nothing.x", Err("`nothing` is null")),
        ("execution.id + string(execution.run)", Ok("\"e-12\"")),
        ("execution.details.x[1]", Ok("2")),
        ("execution.details", Ok(r#"{"x":[1,2]}"#)),
        ("execution", Ok(r#"{"details":{"x":[1,2]},"id":"e-1","parent":null,"run":2}"#)),
        ("execution.nope", Err("`execution.nope` is missing")),
        ("execution.parent.id", Err("`execution.parent` is null")),
        ("has(execution.parent) || has(execution.nope)", Ok("false")),
        ("broken.a", Err("not JSON")),
        ("broken", Err("not JSON")),
        ("big", Err("past the range of integers")),
        ("string(big)", Ok("\"18446744073709551615\"")),
        ("unknown", Err("`unknown` is not known here")),
    ] {
        let actual = evaluate_in(&Forms, text);
        match expected {
            Ok(expected) => assert_eq!(actual.as_deref(), Ok(expected), "{text}"),
            Err(part) => {
                let message = actual.expect_err(text).message;
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }
}

#[test]
fn a_template_copies_what_the_scope_holds_as_text() {
    let template =
        Template::parse(&serde_json::json!({ "b": "${ json.a.b }", "t": "${ text }", "d": "${ big }" }), "").unwrap();
    let rendered = template.render(&Forms, &mut Budget::default());
    let expected = r#"{"b":[10, 20, {"c": "deep"}],"d":18446744073709551615,"t":"plain \"text\""}"#;
    assert_eq!(rendered.as_deref(), Ok(expected));
}

#[test]
fn many_reads_of_one_source_agree() {
    let holes: Vec<_> = (0..12).map(|n| format!("${{ json.a.b[{}] }}", n % 3)).collect();
    let template = Template::parse(&serde_json::json!(holes), "").unwrap();
    let rendered = template.render_value(&Forms, &mut Budget::default()).unwrap();
    let one_round = serde_json::json!([10, 20, { "c": "deep" }]);
    for (index, value) in rendered.as_array().unwrap().iter().enumerate() {
        assert_eq!(value, &one_round[index % 3]);
    }
}
