//! `text.render`.

use std::collections::BTreeMap;

use minijinja::value::{Serde, Value as TemplateValue};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use sandkeep_sdk::TaskError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The work that one rendering may do: instructions, and a unit for each 64 bytes that the template makes. It bounds
/// the time of a hostile template (well under a second) and its memory (about 16 MB).
const FUEL: u64 = 250_000;

/// How deep macros may nest: the guest's stack is small. What recursion the parser leaves unguarded ends as a trap.
const RECURSION_MAX: usize = 50;

/// What to render.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// A Jinja template, such as `Dear {{ name }}, you owe {{ total_cents | cents }} EUR.`
    template: String,
    /// The values that it names.
    #[serde(default)]
    values: Map<String, Value>,
}

/// What was rendered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rendered {
    /// The text.
    text: String,
}

/// Renders a template. Nothing is escaped: the output is text, not HTML.
///
/// A value that is not there is an error where it is printed, and false where it is tested.
pub fn render(input: Template) -> Result<Rendered, TaskError> {
    let values = TemplateValue::from(Serde(&input.values));
    environment().render_str(&input.template, values).map(|text| Rendered { text }).map_err(task_error)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);
    environment.add_filter("cents", cents);
    environment
}

/// Writes an amount in cents with two decimals: 1234567 becomes `12345.67`.
fn cents(amount: i64) -> String {
    let sign = if amount < 0 { "-" } else { "" };
    let amount = amount.unsigned_abs();
    format!("{sign}{}.{:02}", amount / 100, amount % 100)
}

fn task_error(error: minijinja::Error) -> TaskError {
    let code = match error.kind() {
        ErrorKind::OutOfFuel => "TEMPLATE_LIMIT",
        _ => "TEMPLATE_ERROR",
    };
    let details = error.line().map(|line| BTreeMap::from([("line", line)]));
    TaskError::permanent(code, error.to_string()).with_details(details)
}

#[cfg(test)]
mod tests {
    use sandkeep_sdk::run;
    use serde_json::json;

    use super::*;
    use crate::TASKS;

    fn rendered(template: &str, values: Value) -> Result<String, TaskError> {
        let input = json!({ "template": template, "values": values }).to_string();
        let output = run(TASKS, "text.render", &input)?;
        let output: Value = serde_json::from_str(&output).expect("an output is JSON");
        Ok(output["text"].as_str().expect("the text is a string").to_owned())
    }

    #[track_caller]
    fn check(template: &str, values: Value, text: &str) {
        assert_eq!(rendered(template, values).as_deref(), Ok(text));
    }

    #[track_caller]
    fn check_fails(template: &str, code: &str) {
        assert_eq!(rendered(template, json!({})).map_err(|error| error.code), Err(code.to_owned()), "{template}");
    }

    #[test]
    fn values_fill_the_template() {
        check("Dear {{ who.name }}!", json!({ "who": { "name": "Ada <3" } }), "Dear Ada <3!");
        check("{% for n in list %}{{ n }};{% endfor %}", json!({ "list": [1, 2.5, null, true] }), "1;2.5;None;True;");
        check(
            "{{ '%-6s|%6s' | format(sku, price | cents) }}",
            json!({ "sku": "lamp", "price": 1999 }),
            "lamp  | 19.99",
        );
        check("{% if coupon %}with{% else %}without{% endif %}", json!({}), "without");
        check("no values at all", json!({}), "no values at all");
    }

    #[test]
    fn cents_are_exact_for_every_amount() {
        for (amount, text) in [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (123_456, "1234.56"), (-100, "-1.00")] {
            check("{{ amount | cents }}", json!({ "amount": amount }), text);
        }
        check("{{ amount | cents }}", json!({ "amount": i64::MIN }), "-92233720368547758.08");
        check("{{ amount | cents }}", json!({ "amount": i64::MAX }), "92233720368547758.07");
    }

    #[test]
    fn faulty_templates_are_errors_with_a_line() {
        check_fails("{{ missing }}", "TEMPLATE_ERROR");
        check_fails("{% for %}", "TEMPLATE_ERROR");
        check_fails("{{ 'x' | nosuchfilter }}", "TEMPLATE_ERROR");
        check_fails("{{ 1.5 | cents }}", "TEMPLATE_ERROR");
        check_fails("{% include 'other' %}", "TEMPLATE_ERROR");
        let error = rendered("one\ntwo {{ missing }}", json!({})).expect_err("a value is missing");
        assert_eq!(error.details, Some(json!({ "line": 2 })));
    }

    #[test]
    fn hostile_templates_end() {
        let loops = "{% for a in range(10000) %}{% for b in range(10000) %}{{ b }}{% endfor %}{% endfor %}";
        let doubling =
            "{% set ns = namespace(s='x') %}{% for a in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
        let recursion = "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}";
        check_fails(loops, "TEMPLATE_LIMIT");
        check_fails(doubling, "TEMPLATE_LIMIT");
        check_fails("{{ 'x' * 1000000000 }}", "TEMPLATE_LIMIT");
        check_fails("{{ '%999999999d' | format(1) }}", "TEMPLATE_LIMIT");
        check_fails(recursion, "TEMPLATE_ERROR");
        check_fails(&"{% if 1 %}".repeat(100_000), "TEMPLATE_ERROR");
        check_fails(&format!("{{{{ {}1 }}}}", "(".repeat(100_000)), "TEMPLATE_ERROR");
    }
}
