//! Parsing and checking a document, and rendering a template of it.

use sandkeep::workflow::{
    self,
    expression::{Budget, Operand, Scope, StepField, Template},
};
use serde_json::json;

use super::{Failure, harness::Harness};

const ORDER: &[u8] = include_bytes!("../../examples/order/order.json");

pub fn measure(harness: &Harness) -> Result<(), Failure> {
    harness.measure(
        "document: parse and check the order",
        || (),
        |()| workflow::parse(ORDER).map_err(|problems| format!("it has problems: {problems:?}").into()),
    )?;

    let template = json!({
        "order": "${ steps.price.output }",
        "total": "${ steps.price.output.total_cents + 100 }",
        "greeting": "Dear ${ input.customer.name }, your order ${ input.id } is on its way",
        "large": "${ input.lines.filter(l, l.quantity > 1).map(l, l.sku) }",
    });
    let template = Template::parse(&template, "/input").map_err(|problems| format!("{problems:?}"))?;
    harness.measure(
        "template: render four expressions",
        || (),
        |()| template.render(&Order, &mut Budget::default()).map_err(|error| error.message.into()),
    )
}

/// What the template reads.
struct Order;

impl Scope for Order {
    fn root(&self, name: &str) -> Option<Operand<'_>> {
        let input = r#"{"id":"order-417","customer":{"name":"Kim"},"lines":[{"sku":"A1","quantity":2},{"sku":"B2","quantity":1}]}"#;
        (name == "input").then_some(Operand::Json(input))
    }

    fn step(&self, id: &str, field: StepField) -> Option<Operand<'_>> {
        let output = r#"{"total_cents":1999,"currency":"EUR"}"#;
        (id == "price" && field == StepField::Output).then_some(Operand::Json(output))
    }
}
