//! The tasks as a workflow sees them: JSON in, JSON or a typed error out.

use sandkeep_sdk::{TaskError, run};
use serde_json::{Value, json};

use crate::TASKS;
use crate::order::{LINES_MAX, QUANTITY_MAX, UNIT_PRICE_CENTS_MAX};

fn call(task: &str, input: &Value) -> Result<Value, TaskError> {
    run(TASKS, task, &input.to_string()).map(|output| serde_json::from_str(&output).expect("an output is JSON"))
}

fn validated_and_priced(order: &Value) -> Result<Value, TaskError> {
    call("orders.price", &call("orders.validate", order)?)
}

fn order(lines: Value) -> Value {
    json!({ "id": "o-1", "country": "DE", "lines": lines })
}

fn with(mut order: Value, field: &str, value: Value) -> Value {
    order[field] = value;
    order
}

fn one_line(quantity: u32, unit_price_cents: i64, discounts: Value) -> Value {
    order(json!([{
        "sku": "X", "title": "x", "category": "general",
        "quantity": quantity, "unit_price_cents": unit_price_cents, "discounts": discounts,
    }]))
}

/// Asserts `[subtotal, discount, net, tax, total]` of a priced order.
#[track_caller]
fn check_totals(priced: &Value, amounts: [i64; 5]) {
    let fields = ["subtotal_cents", "discount_cents", "net_cents", "tax_cents", "total_cents"];
    assert_eq!(fields.map(|field| priced[field].as_i64().expect("an amount")), amounts, "{priced:#}");
    for field in fields {
        let lines = priced["lines"].as_array().expect("lines");
        let sum: i64 = lines.iter().map(|line| line[field].as_i64().expect("an amount")).sum();
        assert_eq!(priced[field], sum, "{field} is not the sum of its lines");
    }
}

#[track_caller]
fn check_refused(task: &str, input: &Value, code: &str, details: Value) {
    let error = call(task, input).expect_err("the order is refused");
    assert_eq!((error.code.as_str(), error.retryable), (code, false), "{error}");
    assert_eq!(error.details.unwrap_or_default(), details);
}

/// The README shows this order and its outcome.
#[test]
fn example_of_the_readme_is_true() {
    let readme = include_str!("../README.md");
    let mut blocks = readme.split("```json\n").skip(1).map(|rest| {
        let text = rest.split("```").next().expect("a block ends");
        serde_json::from_str::<Value>(text).expect("a block is JSON")
    });
    let mut next = || blocks.next().expect("the README has three blocks");
    let (order, valid, priced) = (next(), next(), next());
    assert_eq!(call("orders.validate", &order).expect("it is valid"), valid);
    assert_eq!(call("orders.price", &valid).expect("it can be priced"), priced);
}

#[test]
fn validation_fills_in_the_catalogue() {
    let valid = call("orders.validate", &order(json!([{ "sku": "HOME-LAMP", "quantity": 3 }]))).expect("it is valid");
    let line = &valid["lines"][0];
    assert_eq!(
        (&line["title"], &line["category"], &line["unit_price_cents"]),
        (&json!("Desk lamp, brass"), &json!("general"), &json!(7_999))
    );
}

#[test]
fn orders_are_refused_with_typed_errors() {
    let lamp = |quantity: u32| json!({ "sku": "HOME-LAMP", "quantity": quantity });
    let discounted = |discount: Value| json!([{ "sku": "FOOD-TEA", "quantity": 1, "discounts": [discount] }]);
    let many = vec![json!({ "sku": "FOOD-TEA", "quantity": 1 }); LINES_MAX + 1];
    let cases = [
        (order(json!([])), "EMPTY_ORDER", Value::Null),
        (order(json!(many)), "TOO_MANY_LINES", Value::Null),
        (
            order(json!([lamp(1), lamp(0)])),
            "INVALID_LINE",
            json!([{ "line": 1, "problem": "the quantity is 0, not between 1 and 10000" }]),
        ),
        (
            order(discounted(json!({ "kind": "percent", "basis_points": 10_001 }))),
            "INVALID_LINE",
            json!([{ "line": 0, "problem": "a discount takes 10001 basis points, more than 10000" }]),
        ),
        (
            with(order(json!([lamp(1)])), "discounts", json!([{ "kind": "fixed", "amount_cents": -1 }])),
            "INVALID_DISCOUNT",
            Value::Null,
        ),
        (
            order(json!([{ "sku": "NOPE", "quantity": 1 }, lamp(1), { "sku": "", "quantity": 1 }])),
            "UNKNOWN_SKU",
            json!(["NOPE", ""]),
        ),
        (with(order(json!([lamp(1)])), "coupon", json!("FREE")), "UNKNOWN_COUPON", Value::Null),
        (
            order(json!([{ "sku": "HOME-LAMP", "quantity": 1, "unit_price_cents": 6_999 }])),
            "PRICE_CHANGED",
            json!([{ "sku": "HOME-LAMP", "seen_cents": 6_999, "unit_price_cents": 7_999 }]),
        ),
        (
            order(json!([lamp(2), lamp(2), { "sku": "PAPER-A5", "quantity": 1 }])),
            "OUT_OF_STOCK",
            json!([
                { "sku": "HOME-LAMP", "wanted": 4, "available": 3 },
                { "sku": "PAPER-A5", "wanted": 1, "available": 0 },
            ]),
        ),
    ];
    for (order, code, details) in cases {
        check_refused("orders.validate", &order, code, details);
    }
}

#[test]
fn unreadable_orders_are_invalid_input() {
    let lines = json!([{ "sku": "FOOD-TEA", "quantity": 1 }]);
    for order in [
        json!(null),
        with(order(lines.clone()), "country", json!("XX")),
        with(order(lines.clone()), "cupon", json!("WELCOME10")),
        order(json!([{ "sku": "FOOD-TEA", "quantity": -1 }])),
        order(json!([{ "sku": "FOOD-TEA", "quantity": 1.5 }])),
    ] {
        check_refused("orders.validate", &order, "INVALID_INPUT", Value::Null);
    }
}

#[test]
fn discounts_follow_each_other_and_end_at_zero() {
    let percent = |basis_points: u32| json!({ "kind": "percent", "basis_points": basis_points });
    let fixed = |amount_cents: i64| json!({ "kind": "fixed", "amount_cents": amount_cents });
    // Quantity, price, discounts, and [subtotal, discount, net, tax at 19 %, total].
    let cases = [
        (1, 1_000, json!([]), [1_000, 0, 1_000, 190, 1_190]),
        (1, 1_000, json!([percent(1_000), fixed(100)]), [1_000, 200, 800, 152, 952]),
        (1, 1_000, json!([fixed(100), percent(1_000)]), [1_000, 190, 810, 154, 964]),
        (1, 1_000, json!([percent(1_000), percent(1_000)]), [1_000, 190, 810, 154, 964]),
        (1, 1_000, json!([fixed(2_000)]), [1_000, 1_000, 0, 0, 0]),
        (1, 1_000, json!([percent(10_000), fixed(1)]), [1_000, 1_000, 0, 0, 0]),
        (3, 5, json!([percent(1_000)]), [15, 2, 13, 2, 15]),
        (1, 0, json!([fixed(1)]), [0, 0, 0, 0, 0]),
    ];
    for (quantity, unit_price_cents, discounts, amounts) in cases {
        let priced = call("orders.price", &one_line(quantity, unit_price_cents, discounts)).expect("it can be priced");
        check_totals(&priced, amounts);
    }
}

#[test]
fn tax_is_rounded_half_up_per_line() {
    // 50 cents at 19 % are 9.5 cents of tax: ten per line, not 19 for both.
    let line = json!({ "sku": "X", "title": "x", "category": "general", "quantity": 1, "unit_price_cents": 50 });
    let priced = call("orders.price", &order(json!([line, line]))).expect("it can be priced");
    check_totals(&priced, [100, 0, 100, 20, 120]);
}

#[test]
fn order_discount_is_shared_to_the_cent() {
    let line = json!({ "sku": "X", "title": "x", "category": "general", "quantity": 1, "unit_price_cents": 333 });
    let order = with(order(json!([line, line, line])), "discounts", json!([{ "kind": "fixed", "amount_cents": 100 }]));
    let priced = call("orders.price", &order).expect("it can be priced");
    let shares: Vec<&Value> =
        priced["lines"].as_array().expect("lines").iter().map(|line| &line["discount_cents"]).collect();
    assert_eq!(shares, [34, 33, 33]);
    check_totals(&priced, [999, 100, 899, 171, 1_070]);
}

#[test]
fn tax_depends_on_country_and_category() {
    let lines = json!([{ "sku": "HOME-TOWEL", "quantity": 4 }, { "sku": "BOOK-BREAD", "quantity": 2 }]);
    let taxes = |country: &str| {
        let priced = validated_and_priced(&with(order(lines.clone()), "country", json!(country))).expect("it is valid");
        let taxes = priced["taxes"].as_array().expect("taxes").clone();
        taxes
            .iter()
            .map(|tax| [&tax["basis_points"], &tax["tax_cents"]].map(|n| n.as_i64().expect("a number")))
            .collect::<Vec<_>>()
    };
    assert_eq!(taxes("AT"), [[1_000, 450], [2_000, 1_020]]);
    assert_eq!(taxes("DE"), [[700, 315], [1_900, 969]]);
    assert_eq!(taxes("FR"), [[550, 248], [2_000, 1_020]]);
    assert_eq!(taxes("IE"), [[0, 0], [2_300, 1_173]]);
}

#[test]
fn coupon_comes_last_and_has_a_minimum() {
    let lamp = |coupon: &str| with(order(json!([{ "sku": "HOME-LAMP", "quantity": 1 }])), "coupon", json!(coupon));
    check_totals(&validated_and_priced(&lamp("welcome10")).expect("it applies"), [7_999, 800, 7_199, 1_368, 8_567]);
    check_totals(&validated_and_priced(&lamp(" FiveOff ")).expect("it applies"), [7_999, 500, 7_499, 1_425, 8_924]);

    let discounted = with(lamp("WELCOME10"), "discounts", json!([{ "kind": "fixed", "amount_cents": 999 }]));
    check_totals(&validated_and_priced(&discounted).expect("it applies"), [7_999, 1_699, 6_300, 1_197, 7_497]);

    let tea = with(order(json!([{ "sku": "FOOD-TEA", "quantity": 1 }])), "coupon", json!("FIVEOFF"));
    let valid = call("orders.validate", &tea).expect("it is valid");
    let details = json!({ "minimum_cents": 5_000, "lines_cents": 649 });
    check_refused("orders.price", &valid, "COUPON_NOT_APPLICABLE", details);
}

#[test]
fn pricing_trusts_no_input() {
    check_refused("orders.price", &one_line(0, 1, json!([])), "INVALID_LINE", Value::Null);
    check_refused("orders.price", &one_line(QUANTITY_MAX + 1, 1, json!([])), "INVALID_LINE", Value::Null);
    check_refused("orders.price", &one_line(1, -1, json!([])), "INVALID_LINE", Value::Null);
    check_refused("orders.price", &one_line(1, i64::MAX, json!([])), "INVALID_LINE", Value::Null);
    check_refused("orders.price", &order(json!([])), "EMPTY_ORDER", Value::Null);
    let coupon = with(one_line(1, 1, json!([])), "coupon", json!("FREE"));
    check_refused("orders.price", &coupon, "UNKNOWN_COUPON", Value::Null);
}

#[test]
fn largest_order_is_priced_exactly() {
    let line = one_line(QUANTITY_MAX, UNIT_PRICE_CENTS_MAX, json!([]))["lines"][0].clone();
    let discounts = json!([{ "kind": "percent", "basis_points": 3_333 }, { "kind": "fixed", "amount_cents": 1 }]);
    let order = with(order(json!(vec![line; LINES_MAX])), "discounts", discounts);
    let priced = call("orders.price", &order).expect("it can be priced");
    let subtotal = 200_000_000_000_000;
    let net = subtotal - 66_660_000_000_000 - 1;
    // 199 lines keep a net of 666,700,000,000 cents and one has a cent less; none of their taxes needs rounding up.
    check_totals(&priced, [subtotal, subtotal - net, net, 25_334_600_000_000, net + 25_334_600_000_000]);
}
