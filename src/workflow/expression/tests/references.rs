//! What a text is said to read.

use super::super::{References, Template, is_cel_word, is_reserved_name};
use super::*;

fn spelled(references: &References) -> String {
    let steps = references.steps.iter().map(|(id, field)| format!("{id}.{field}"));
    references.roots.iter().cloned().chain(steps).collect::<Vec<_>>().join(" ")
}

#[test]
fn free_names_are_found_and_bound_ones_are_not() {
    for (text, expected) in [
        ("1 + 2", ""),
        ("input.a + now_ms", "input now_ms"),
        ("steps.a.output.x.y[0] && steps.b.status == 'FAILED'", "a.output b.status"),
        ("[steps.a.error, steps.a.finished_at_ms]", "a.error a.finished_at_ms"),
        ("input.lines.map(x, x.qty * y)", "input y"),
        ("x.map(x, x)", "x"),
        ("[1].map(x, [2].map(y, x + y + z))", "z"),
        ("[1].map(x, [2].map(x, x)) == [x]", "x"),
        ("[1].map(input, input.a)", ""),
        ("[1].map(steps, steps)", ""),
        ("[1].map(input, .input.a)", "input"),
        ("[1].exists(x, steps.a.output == x)", "a.output"),
        ("has(steps.a.output.x) ? input.b : index", "index input a.output"),
        ("steps.a.output[steps.b.output]", "a.output b.output"),
        ("{input.k: last}", "input last"),
        ("get(steps.a.output, 'x', failure)", "failure a.output"),
        ("type(x) == int", "x"),
        ("steps.steps.output", "steps.output"),
        ("execution.id + execution.run", "execution"),
        ("foo.bar()", ""),
    ] {
        if text == "foo.bar()" {
            assert!(Expression::parse(text, "").is_err());
            continue;
        }
        assert_eq!(spelled(Expression::parse(text, "").unwrap().references()), expected, "{text}");
    }
}

#[test]
fn a_template_says_where_each_name_stands() {
    let json = serde_json::json!({ "a": "${ steps.x.output }", "b/c": ["t ${ input.n } ${ steps.x.error }"], "d": 1 });
    let template = Template::parse(&json, "/steps/2/input").unwrap();
    let places: Vec<_> =
        template.expressions().map(|(pointer, names)| format!("{pointer} {}", spelled(names))).collect();
    assert_eq!(places, ["/steps/2/input/a x.output", "/steps/2/input/b~1c/0 input", "/steps/2/input/b~1c/0 x.error"]);
    assert_eq!(spelled(&template.references()), "input x.output x.error");
    assert_eq!(template.references().step_ids().collect::<Vec<_>>(), ["x"]);
}

#[test]
fn words_of_cel_are_known() {
    for word in ["in", "true", "null", "if", "for", "void", "namespace"] {
        assert!(is_cel_word(word) && is_reserved_name(word), "{word}");
    }
    for name in ["charge", "list", "int", "index", "steps", ""] {
        assert!(!is_cel_word(name), "{name}");
    }
    for name in ["int", "list", "map", "steps", "type"] {
        assert!(is_reserved_name(name), "{name}");
    }
    // A word that the parser refuses as a name is in the list.
    for word in ["as", "break", "const", "let", "loop", "package", "return", "var", "while", "function", "import"] {
        assert!(is_cel_word(word) && Expression::parse(word, "").is_err(), "{word}");
    }
}
