//! What expressions mean: the published table and what is too fine for it.

use super::super::problem::code;
use super::*;
use proptest::prelude::*;

#[test]
fn published_table_holds() {
    let rows = include_str!("../semantics.md").lines().skip(2);
    let mut count = 0;
    for row in rows {
        let (expression, result) = row.trim_matches('|').rsplit_once(" | ").expect(row);
        let expression = expression.trim().trim_matches('`').replace("\\|", "|");
        let result = result.trim();
        match result.strip_prefix("error: ") {
            Some(part) => check_fails(&expression, part),
            None => check(&expression, result.trim_matches('`')),
        }
        count += 1;
    }
    assert!(count >= 60, "{count} rows");
}

#[test]
fn numbers_keep_their_type_and_value() {
    let rows = [
        ("9007199254740993", "9007199254740993"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775807", "9223372036854775807"),
        ("0.1", "0.1"),
        ("1.0", "1.0"),
        ("1e308", "1e+308"),
        ("0x1F", "31"),
        ("7u", "7"),
        ("4.0 / 2", "2.0"),
        ("double(3)", "3.0"),
        ("int(-2.9)", "-2"),
        ("uint(3) - uint(1)", "2"),
        ("string(9223372036854775807)", "\"9223372036854775807\""),
        ("string(18446744073709551615u)", "\"18446744073709551615\""),
        ("9223372036854775807 < 9223372036854775808.0", "true"),
        ("18446744073709551615u > 9223372036854775807", "true"),
    ];
    for (text, expected) in rows {
        check(text, expected);
    }
    let failures = [
        ("1u - 2u", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-9223372036854775808 % -1 == 0 ? 1 / 0 : 2", "division by zero"),
        ("int(1e19)", "out of range"),
        ("uint(-1)", "out of range"),
        ("int('12x')", "int() cannot read"),
        ("double('NaN')", "double() cannot read"),
        ("double('1e400')", "double() cannot read"),
        ("1 + true", "`+` does not take int and bool"),
        ("-'a'", "`-` cannot negate string"),
        ("!1", "`!` takes a bool, not int"),
    ];
    for (text, part) in failures {
        check_fails(text, part);
    }
}

#[test]
fn order_stays_within_a_family() {
    for text in
        ["'a' < 'b'", "false < true", "b'a' < b'b'", "duration('1s') < duration('1m')", "[1] != [2]", "null == null"]
    {
        check(text, "true");
    }
    for text in [
        "null < 1",
        "null < null",
        "[1] < [2]",
        "'a' < 1",
        "1 < 'a'",
        "true < 1",
        "{} < {}",
        "max([null])",
        "sort([[1]])",
    ] {
        check_fails(text, "cannot order");
    }
}

#[test]
fn errors_are_absorbed_only_by_what_decides() {
    for (text, expected) in [
        ("1 / 0 == 1 || true", "true"),
        ("[0, 1].exists(x, 1 / x == 1)", "true"),
        ("[0, 2].all(x, 1 / x == 1)", "false"),
        ("1 > 0 || 'a' > 1", "true"),
        ("false && 'a'", "false"),
        ("[].all(x, x)", "true"),
        ("[].exists(x, x)", "false"),
    ] {
        check(text, expected);
    }
    check_fails("[0, 2].exists(x, 1 / x == 1)", "division by zero");
    check_fails("[0, 1].all(x, 1 / x == 1)", "division by zero");
    check_fails("[0, 1].exists_one(x, 1 / x == 1)", "division by zero");
    check_fails("true && 1", "`&&` takes a bool, not int");
    check_fails("coalesce(1 / 0, 2)", "division by zero");
}

#[test]
fn missing_paths_are_named_as_they_were_written() {
    for (text, part) in [
        ("input.lines[0].price.net", "`input.lines[0].price` is missing"),
        ("input[\"ab sent\"]", "`input.ab sent` is missing"),
        ("input.lines.map(line, line.price.net)", "`line.price` is missing"),
        ("input.lines[now_ms]", "`input.lines[1700000000000]` is missing: the list has 2 elements"),
        ("input.lines[-1]", "`input.lines[-1]` is missing"),
        ("input.lines['x']", "cannot be read: `input.lines` is of type list"),
        ("keys(input)[9]", "`keys(…)[9]` is missing"),
        ("[{'a': 1}].map(x, x.b)", "`x.b` is missing"),
        ("input.nothing.deep.er", "`input.nothing.deep` is missing: `input.nothing` is null"),
        ("input.lines.map(l, l.qty)[0].x", "is of type int"),
        ("absent.x", "`absent` is not known here"),
        ("input.lines.filter(line, line.absent == null)", "`line.absent` is missing"),
        ("get(input.name, 'x', 1)", "of type string"),
        ("input.name.map(x, x)", "`input.name` is not a list or map but string"),
    ] {
        check_fails(text, part);
    }
}

#[test]
fn missing_null_and_members_of_null_are_alike() {
    for inner in
        ["input.absent", "input.absent.x", "input.nothing", "input.nothing.x", "input.lines[9]", "input.lines[9].sku"]
    {
        check(&format!("coalesce({inner}, 7)"), "7");
        check(&format!("get({inner}, 'x', 7)"), "7");
        if !inner.ends_with(']') {
            check(&format!("has({inner})"), "false");
        }
    }
    check("coalesce(input.absent, null)", "null");
    check("has(input.lines)", "true");
    check("has(steps.charge.output)", "true");
    check("has(steps.charge.output.paid)", "true");
    check("has({'a': null}.a)", "false");
}

#[test]
fn variables_shadow_and_nest() {
    for (text, expected) in [
        ("[1, 2].map(input, input)", "[1,2]"),
        ("[1, 2].map(steps, steps + 1)", "[2,3]"),
        ("[[1, 2], [3]].map(x, x.map(x, x * 10))", "[[10,20],[30]]"),
        ("[1, 2].map(x, [10, 20].map(y, x + y))", "[[11,21],[12,22]]"),
        ("[1].map(input, .input.name)", "[\"Ann\"]"),
        ("[1].map(x, [2].map(y, x)).map(x, x[0])", "[1]"),
        ("[3].map(int, int)", "[3]"),
        ("[1, 2, 3].filter(x, [2, 3].exists(x, x == 3) && x > 1)", "[2,3]"),
    ] {
        check(text, expected);
    }
}

#[test]
fn functions_may_be_called_both_ways() {
    for (text, expected) in [
        ("'abc'.size() == size('abc')", "true"),
        ("contains('abc', 'b') && 'abc'.contains('b')", "true"),
        ("[1, 2].sum()", "3"),
        ("input.get('name', 1)", "\"Ann\""),
        ("'a'.startsWith('a') && 'a'.endsWith('a')", "true"),
        ("['b', 'a'].sort().join(',')", "\"a,b\""),
    ] {
        check(text, expected);
    }
}

#[test]
fn texts_and_lists_at_their_edges() {
    for (text, expected) in [
        ("''.split('')", "[]"),
        ("'héé'.split('')", r#"["h","é","é"]"#),
        ("'a,b,c'.split(',', 2)", r#"["a","b,c"]"#),
        ("'abc'.split('', 2)", r#"["a","bc"]"#),
        ("'a,b'.split(',', 0)", "[]"),
        ("'a,b'.split(',', -1)", r#"["a","b"]"#),
        ("''.split(',')", r#"[""]"#),
        ("'aaa'.replace('a', 'b', 2)", "\"bba\""),
        ("'ab'.replace('', '-')", "\"-a-b-\""),
        ("'ab'.replace('x', 'y')", "\"ab\""),
        ("''.trim() + ' a b '.trim()", "\"a b\""),
        ("lower('İ')", "\"i\u{307}\""),
        ("upper('ß')", "\"SS\""),
        ("sum([])", "0"),
        ("sum([duration('1h'), duration('30m')])", "\"5400s\""),
        ("join([])", "\"\""),
        ("join(['a', 'b'])", "\"ab\""),
        ("min(2, 1, 3)", "1"),
        ("max(['b', 'a'])", "\"b\""),
        ("sort([])", "[]"),
        ("sort([true, false])", "[false,true]"),
        ("distinct(['b', 'a', 'b'])", r#"["b","a"]"#),
        ("distinct([{'a': 1}, {'a': 1.0}, {'a': 2}])", r#"[{"a":1},{"a":2}]"#),
        ("flatten([[1, [2, [3]]]], 2)", "[1,2,[3]]"),
        ("flatten([[1]], 0)", "[[1]]"),
        ("range(0)", "[]"),
        ("range(-5)", "[]"),
        ("range(3, 1)", "[]"),
        ("size(range(10000))", "10000"),
        ("merge({}, {'a': {'b': 1}}, {'a': {'c': 2}})", r#"{"a":{"c":2}}"#),
        ("size({'a': 1}) + size([1]) + size(b'ab') + size('')", "4"),
        ("'%s %s'.format([[1, 'a'], null])", r#""[1,\"a\"] null""#),
        ("'%e|%.0f|%b|%o|%X'.format([1500, 2.5, -5, 8, 255])", "\"1.500000e+03|2|-101|10|FF\""),
        ("json_decode('[1, {\"a\": \"\\\\u00e9\"}]')", r#"[1,{"a":"é"}]"#),
        ("json_encode(input.nothing)", "\"null\""),
        ("base64_encode(b'\\xff\\xfe')", "\"//4=\""),
        ("sha256(b'')", "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""),
        ("'a\\u00e9\\n\"'", r#""aé\n\"""#),
        ("bool('true') && !bool('0')", "true"),
        ("dyn(1) == 1", "true"),
        ("type(type(1)) == type && type(null) == null_type", "true"),
        ("type(timestamp(0)) == google.protobuf.Timestamp", "true"),
    ] {
        check(text, expected);
    }
    for (text, part) in [
        ("min([])", "min() of an empty list"),
        ("sum(['a'])", "sum() takes a list of numbers, not string"),
        ("flatten([[1]], -1)", "depth"),
        ("'%d'.format([1.5])", "`%d` takes an integer, not double"),
        ("'%s'.format([])", "more verbs than values"),
        ("''.format([1])", "more values than verbs"),
        ("'%z'.format([1])", "no verb `%z`"),
        ("'%'.format([])", "single `%`"),
        ("'%5d'.format([1])", "no verb `%5`"),
        ("json_decode('{')", "not JSON"),
        ("json_decode('1 2')", "not JSON"),
        ("base64_decode('*')", "not base64"),
        ("string(b'\\xff')", "not UTF-8"),
        ("string([1])", "json_encode()"),
        ("join([b'a'])", "bytes"),
        ("size(1)", "size() takes"),
        ("merge({}, null)", "merge() takes a map, not null_type"),
        ("{'a': 1, 'a': 2}", "same key twice"),
        ("{null: 1}", "a key of a map cannot be null_type"),
        ("1 in 'a'", "`in` looks into a list or map, not string"),
        ("'a'.matches('(' + '')", "the pattern is refused"),
        ("[1]['a']", "a list is indexed by an int"),
    ] {
        check_fails(text, part);
    }
}

#[test]
fn times_are_cel_texts() {
    for (text, expected) in [
        ("timestamp(now_ms / 1000)", "\"2023-11-14T22:13:20Z\""),
        ("timestamp('2024-01-01T01:00:00+01:00')", "\"2024-01-01T00:00:00Z\""),
        ("int(timestamp('1970-01-01T00:01:00Z'))", "60"),
        ("timestamp('2024-03-01T00:00:00Z').getMonth()", "2"),
        ("timestamp('2024-03-03T00:00:00Z').getDayOfWeek()", "0"),
        ("timestamp('2024-12-31T00:00:00Z').getDayOfYear()", "365"),
        ("timestamp('2024-03-03T00:00:00Z').getDate() - timestamp('2024-03-03T00:00:00Z').getDayOfMonth()", "1"),
        ("timestamp('2024-03-03T01:02:03.456Z').getMilliseconds()", "456"),
        ("duration('90m').getHours() + duration('90m').getMinutes()", "91"),
        ("duration('7d') == duration('168h')", "true"),
        ("'in ' + string(duration('1.5s'))", "\"in 1.5s\""),
        ("-duration('1s')", "\"-1s\""),
        ("duration('1s') - duration('2s')", "\"-1s\""),
        ("timestamp('9999-12-30T00:00:00Z').getFullYear()", "9999"),
    ] {
        check(text, expected);
    }
    for text in [
        "timestamp('9999-12-30T00:00:00Z') + duration('2d')",
        "timestamp('0001-01-01T00:00:00Z') - duration('1d')",
        "timestamp('yesterday')",
        "timestamp(9223372036854775807)",
        "duration('1y')",
        "timestamp(0).getHours('Europe/Paris')",
        "timestamp(0) + 1",
    ] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}

#[test]
fn messages_are_short_whatever_is_quoted() {
    let scope = Fake { roots: BTreeMap::from([("input", format!("\"{}\"", "é".repeat(100_000)))]), ..Fake::default() };
    for text in [
        "timestamp(input)",
        "duration(input)",
        "int(input)",
        "get({}.map(x, x), 'a', {})[input]",
        "{}[input]",
        "timestamp(0).getHours(input)",
    ] {
        let message = evaluate_in(&scope, text).unwrap_err().message;
        assert!(message.len() <= 1_000, "{text}: {} bytes", message.len());
    }
}

#[test]
fn wrong_texts_are_problems_with_a_code() {
    for (text, expected, part) in [
        ("", code::SYNTAX, "empty"),
        ("1 +", code::SYNTAX, "line 1, column 4"),
        ("1 2", code::SYNTAX, ""),
        ("a = b", code::SYNTAX, ""),
        ("a ? b", code::SYNTAX, "mismatched input"),
        ("'\\ud800'", code::SYNTAX, ""),
        ("9223372036854775808", code::SYNTAX, "invalid int literal"),
        ("if", code::SYNTAX, "reserved"),
        ("has(1)", code::SYNTAX, "has()"),
        ("[1].map(1, 2)", code::SYNTAX, "simple name"),
        ("'open", code::SYNTAX, "not closed"),
        ("Foo{a: 1}", code::UNSUPPORTED, "message"),
        ("sise('a')", code::UNKNOWN_FUNCTION, "did you mean `size`?"),
        ("'a'.startswith('b')", code::UNKNOWN_FUNCTION, "did you mean `startsWith`?"),
        ("[1].mapp(x, x)", code::UNKNOWN_FUNCTION, "did you mean `map`?"),
        ("frobnicate(1)", code::UNKNOWN_FUNCTION, "unknown function `frobnicate`"),
        ("size()", code::WRONG_ARGUMENTS, "`size` takes 1 argument, not 0"),
        ("split('a')", code::WRONG_ARGUMENTS, "takes 2 to 3"),
        ("coalesce()", code::WRONG_ARGUMENTS, "at least 1"),
        ("get(input, 'a')", code::WRONG_ARGUMENTS, "takes 3"),
        ("'a'.matches('(')", code::INVALID_PATTERN, "the pattern is refused"),
        ("'a'.matches('(?=b)')", code::INVALID_PATTERN, "look-around"),
        ("steps", code::STEPS_MISUSED, "`steps.ID.output`"),
        ("size(steps)", code::STEPS_MISUSED, ""),
        ("steps.a", code::STEPS_MISUSED, "`steps.a.output`"),
        ("has(steps.a)", code::STEPS_MISUSED, ""),
        ("steps[input.x].output", code::STEPS_MISUSED, ""),
        ("steps['a'].output", code::STEPS_MISUSED, ""),
        ("steps.a['output']", code::STEPS_MISUSED, ""),
        ("steps.a.outputs", code::UNKNOWN_STEP_FIELD, "did you mean `output`?"),
        ("steps.a.xyzzy.b", code::UNKNOWN_STEP_FIELD, "use one of output, status, error, finished_at_ms"),
    ] {
        let problem = Expression::parse(text, "/steps/0/when").expect_err(text);
        assert_eq!(problem.code, expected, "{text}: {}", problem.message);
        assert!(problem.message.contains(part), "{text}: {}", problem.message);
        assert_eq!(problem.pointer, "/steps/0/when");
    }
}

/// Texts made of what expressions are made of, so that many of them parse.
fn expression_like() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "1",
        "2.5",
        "'a'",
        "\"b\"",
        "true",
        "null",
        "input",
        "steps.charge.output",
        "x",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        "!",
        "?",
        ":",
        ",",
        ".",
        " in ",
        ".map(x, ",
        ".filter(x, ",
        "has(",
        "size(",
        ".lines",
        "[0]",
        "get(input, 'lines.0', ",
        "coalesce(",
        "b'x'",
        "7u",
        "range(5)",
        ".exists_one(x, ",
        "\\",
        "é",
        "//",
        "\n",
        "r'",
        "'''",
        "`",
        "$",
        "0x",
        "1e9",
        ".?a",
        "{a: 1}",
        "sort(",
        "json_encode(",
        "-9223372036854775808",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_panics(text in prop_oneof![3 => expression_like(), 1 => ".{0,60}"]) {
        if let Ok(expression) = Expression::parse(&text, "") {
            let mut budget = Budget::new(2_000, 20_000);
            let _ = expression.evaluate(&order(), &mut budget);
            prop_assert!(budget.steps_spent() <= 2_000 && budget.bytes_made() <= 20_000);
        }
    }

    #[test]
    fn text_literals_come_back(text in any::<String>()) {
        let literal = format!("\"{}\"", text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect::<String>());
        prop_assume!(literal.len() < 8_000);
        prop_assert_eq!(evaluate(&literal), Ok(serde_json::to_string(&text).unwrap()));
    }

    #[test]
    fn json_comes_back_through_encode_and_decode(text in any::<String>(), int in any::<i64>(), double in any::<f64>()) {
        prop_assume!(double.is_finite());
        let input = serde_json::json!({ "text": text, "list": [int, double, null, true] });
        let scope = Fake { roots: BTreeMap::from([("input", input.to_string())]), ..Fake::default() };
        for text in ["json_decode(json_encode(input))", "merge(input, {})", "coalesce(input)", "input"] {
            prop_assert_eq!(evaluate_in(&scope, text), Ok(input.to_string()));
        }
    }

    #[test]
    fn integer_operators_agree_with_wide_arithmetic(left in any::<i64>(), right in any::<i64>()) {
        let wide = i128::from(left) + i128::from(right);
        let sum = evaluate(&format!("{left} + {right}")).ok();
        prop_assert_eq!(sum, i64::try_from(wide).ok().map(|sum| sum.to_string()));
        prop_assert_eq!(evaluate(&format!("{left} < {right}")), Ok((left < right).to_string()));
    }
}
