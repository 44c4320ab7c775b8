//! Texts that were written to hurt.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::{accepted::order, *};
use crate::workflow::problem;

#[test]
fn hostile_texts_have_one_problem() {
    let deep = format!("{{\"ir_version\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, code, part) in [
        ("{", Code::InvalidJson, "EOF"),
        ("", Code::InvalidJson, ""),
        (r#"{"name":"a","name":"b"}"#, Code::InvalidJson, "`name` occurs twice"),
        (r#"{"steps":[{"id":"a","id":"b"}]}"#, Code::InvalidJson, "`id` occurs twice"),
        (r#"{"name":"\ud800"}"#, Code::InvalidJson, ""),
        (deep.as_str(), Code::Limit, "128 levels"),
        (&" ".repeat(1024 * 1024 + 1), Code::Limit, "1048577 bytes"),
    ] {
        let found = parse(text.as_bytes()).expect_err("it is refused");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].pointer.as_str(), found[0].code), ("", code));
        assert!(found[0].message.contains(part), "{found:?}");
    }
}

#[test]
fn hostile_expressions_are_problems() {
    let nested = format!("${{ {}1{} }}", "(".repeat(5_000), ")".repeat(5_000));
    refused(&with(json!({"result": nested})), "/result", Code::Expression, "");
    let found = problems(&with_step(json!({"compute": 1, "when": nested})));
    assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/steps/1/when"));
}

#[test]
fn the_number_of_steps_is_limited() {
    let steps =
        |count: usize| -> Value { (0..count).map(|at| json!({"id": format!("s{at}"), "compute": at})).collect() };
    assert_eq!(definition(&with(json!({"steps": steps(1_000)}))).steps.len(), 1_000);
    refused(&with(json!({"steps": steps(1_001)})), "/steps", Code::Limit, "1001 steps; at most 1000");
    let few = Limits { steps: 2, ..Limits::default() };
    assert!(parse_within(with(json!({"steps": steps(3)})).to_string().as_bytes(), &few).is_err());
    assert!(definition(&with(json!({"steps": []}))).steps.is_empty());
}

#[test]
fn a_document_of_nothing_but_problems_is_answered() {
    let mut text = String::from(r#"{"steps":["#);
    for at in 0..900 {
        write!(
            text,
            r#"{{"id":"s{at}","task":"t","after":["zz{at}"],"input":["${{steps.qq{at}.output}}"],"x{at}":1}},"#
        )
        .expect("it is written");
    }
    text.push_str("1]}");
    let found = parse(text.as_bytes()).expect_err("it is refused");
    assert_eq!(found.len(), problem::PROBLEMS_MAX + 1);
}

#[test]
fn the_schemas_of_a_document_share_one_allowance() {
    let big = json!({"enum": (0..30_000).collect::<Vec<_>>()});
    assert!(problems(&with(json!({"input": big}))).is_empty());
    refused(&with(json!({"input": big, "output": big})), "/output", Code::Limit, "together");
}

proptest! {
    #[test]
    fn any_step_is_answered(
        keys in prop::collection::btree_map(
            prop::sample::select(vec!["id", "task", "compute", "sleep", "await", "after", "when", "input", "retry", "timeouts",
                "timeout", "on_timeout", "module", "node", "target", "priority", "for_each", "x"]),
            prop::sample::select(vec![json!(null), json!("a"), json!("1s"), json!("${ input.a }"), json!("${ steps.a.output }"),
                json!(["a", "reserve"]), json!({"max": "1s"}), json!({"total": "${ steps.reserve.output }"}), json!(5), json!("${ ("), json!("approve")]),
            0..6,
        )
    ) {
        let step: Value = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<serde_json::Map<_, _>>().into();
        let document = with(json!({"steps": [{"id": "reserve", "task": "t"}, step]}));
        match parse(document.to_string().as_bytes()) {
            Ok(parsed) => prop_assert_eq!(parsed.definition.steps.len(), 2),
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    let (parent, _) = problem.pointer.rsplit_once('/').unwrap_or(("", ""));
                    prop_assert!(document.pointer(parent).is_some(), "{:?} points at nothing", problem);
                }
            }
        }
    }

    #[test]
    fn the_hash_survives_reading_and_printing(spaces in "[ \n\t]{0,3}", text in "\\PC{0,12}") {
        let mut document = order();
        let hash = definition(&document).hash;
        document["description"] = text.clone().into();
        document["steps"][0]["description"] = text.into();
        let printed = serde_json::to_string_pretty(&document).expect("it prints").replace("\n  ", &format!("\n{spaces}"));
        prop_assert_eq!(parse(printed.as_bytes()).expect("accepted").definition.hash, hash);
    }
}
