//! Expressions that would never end or fill the memory: the budget ends all of them, and a small stack holds the rest.

use super::super::Template;
use super::*;

/// Checks that the budget ends an expression.
#[track_caller]
fn check_over_budget(text: &str) {
    let error = evaluate(text).expect_err(text);
    assert!(error.over_budget, "{text}: {}", error.message);
}

#[test]
fn budget_ends_every_bomb() {
    let doubled = format!("'aaaaaaaaaaaaaaaa'{}", ".replace('a', 'aa')".repeat(40));
    let added = format!("['x']{}[0]", ".map(x, x + x)".repeat(40));
    let laughs = format!("[['ha']]{}", ".map(x, [x, x, x, x])".repeat(30));
    let nested = "range(1000).map(a, range(1000).map(b, range(1000).map(c, a + b + c)))";
    for text in [
        nested,
        "range(1000).map(a, range(1000).map(b, a))",
        "range(1000).all(a, range(1000).all(b, range(1000).all(c, true)))",
        "range(10000).exists(a, range(10000).exists(b, a + b < 0))",
        "coalesce(range(1000).map(a, range(1000).map(b, a)), 1)",
        "range(1000).map(a, range(1000).map(b, a)) == [] || true",
        "[1].exists(x, size(range(10000).map(a, range(10000))) > 0) || true",
        &doubled,
        &added,
        &laughs,
        "size(range(10000).map(x, '%.100f'.format([x])))",
        "join(range(10000).map(x, 'abcdefghijklmnopqrstuvwxyz'), 'ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ')",
        "range(10000).map(x, range(10000))",
        "range(10000).map(x, sort(range(10000)))",
        "range(10000).map(x, join(range(1000)).matches('([0-9]+)*1'))",
        "range(10000).map(x, 'a'.matches('a{' + string(x) + '}'))",
        "range(10000).map(x, sha256(join(range(1000))))",
        "range(10000).map(x, json_encode(range(1000)))",
        "range(10000).filter(x, x in range(10000).filter(y, y > 10000))",
        "range(10000).map(x, distinct(range(10000)))",
        "range(10000).map(x, input.lines == [1] ? 1 : size(input.lines.map(l, merge(l, l))))",
    ] {
        check_over_budget(text);
    }
}

#[test]
fn a_shared_value_is_charged_each_time_it_is_walked() {
    // Thirty levels of four references to one value: small in memory, 4^30 values when walked.
    let laughs = format!("[[1]]{}", ".map(x, [x, x, x, x])".repeat(30));
    for text in [
        format!("{laughs} == {laughs}"),
        format!("sort({laughs}.map(x, 1)) == [1] && distinct({laughs}) == []"),
        format!("flatten({laughs}, 40)"),
        format!("json_encode({laughs})"),
        format!("'%s'.format([{laughs}])"),
        format!("join([{laughs}])"),
    ] {
        check_over_budget(&text);
    }
}

#[test]
fn too_long_ranges_are_plain_errors() {
    check_fails("range(2000000000)", "at most 10000 elements");
    check_fails("range(-9223372036854775807, 9223372036854775807)", "at most 10000 elements");
    check_fails("'%.1000000000f'.format([1.0])", "precision of 0 to 100");
    check_fails("'%.99999999999999999999999f'.format([1.0])", "precision");
}

#[test]
fn a_template_has_one_budget() {
    let hole = "${ size(range(900).map(x, x + x)) }";
    let one = Template::parse(&serde_json::json!([hole]), "").unwrap();
    let many = Template::parse(&serde_json::json!(vec![hole; 50]), "/steps/0/input").unwrap();
    let mut budget = Budget::default();
    assert!(one.render(&order(), &mut budget).is_ok());
    assert!(budget.steps_spent() > 900 && budget.bytes_made() > 900);
    let error = many.render(&order(), &mut Budget::default()).unwrap_err();
    assert!(error.over_budget);
    assert!(error.pointer.starts_with("/steps/0/input/"), "{}", error.pointer);
}

#[test]
fn large_inputs_are_read_in_part() {
    let lines: Vec<_> = (0..2_000).map(|n| serde_json::json!({ "sku": format!("sku-{n}"), "qty": n })).collect();
    let input =
        serde_json::json!({ "lines": lines, "id": "o-1", "junk": "x".repeat((1 << 20) + (1 << 18)) }).to_string();
    let scope = Fake { roots: BTreeMap::from([("input", input)]), ..Fake::default() };
    let mut budget = Budget::default();
    let expression = Expression::parse("input.id", "").unwrap();
    assert_eq!(expression.evaluate_text(&scope, &mut budget).as_deref(), Ok("\"o-1\""));
    assert!(budget.bytes_made() < 100);
    assert_eq!(evaluate_in(&scope, "sum(input.lines.map(line, line.qty))").as_deref(), Ok("1999000"));
    // What does not fit the budget is not made.
    assert!(evaluate_in(&scope, "input.junk + input.junk").unwrap_err().over_budget);
    assert!(evaluate_in(&scope, "input.junk").unwrap_err().over_budget);
    // An element looked up in a loop does not scan the text each time.
    assert_eq!(evaluate_in(&scope, "sum(range(2000).map(i, input.lines[i].qty))").as_deref(), Ok("1999000"));
}

#[test]
fn deep_texts_and_values_fit_a_small_stack() {
    let brackets = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
    let chain = format!("1{}", "+1".repeat(190));
    let loops = format!("{}1{}", "[1].map(x, ".repeat(19), ")".repeat(19));
    let deep_json = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let run = move || {
        for text in [brackets(5_000), "[".repeat(5_000), format!("1{}", "+1".repeat(5_000)), "a.".repeat(5_000) + "a"] {
            let problem = Expression::parse(&text, "").unwrap_err();
            assert!(problem.code.starts_with("EXPRESSION_TOO_"), "{:.20}: {problem}", text);
        }
        for text in [brackets(39), chain.clone(), loops.clone()] {
            assert!(evaluate(&text).is_ok(), "{text}");
        }
        let longest = format!("1{}", "+1".repeat(590));
        assert_eq!(Expression::parse(&longest, "").unwrap_err().code, "EXPRESSION_TOO_DEEP");
        let scope = Fake { roots: BTreeMap::from([("input", deep_json.clone())]), ..Fake::default() };
        for text in
            ["input == input", "flatten(input, 200)", "json_decode(json_encode(input))", "distinct([input, input])"]
        {
            assert!(evaluate_in(&scope, text).is_ok(), "{text}");
        }
        assert!(evaluate_in(&scope, "[[[[[[[[input]]]]]]]]").unwrap_err().message.contains("inside one another"));
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}
