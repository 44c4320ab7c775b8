//! `orders.validate`.

use std::collections::BTreeMap;

use sandkeep_sdk::{TaskError, log};
use serde::Serialize;

use crate::catalogue::{Article, find_article};
use crate::coupon::find_coupon;
use crate::money::WHOLE_BASIS_POINTS;
use crate::order::{DISCOUNTS_MAX, Discount, LINES_MAX, Line, Order, QUANTITY_MAX, ValidLine, ValidOrder};

/// Checks an order and fills in what the catalogue knows.
///
/// The checks go from the form to the facts, and an error names everything that is wrong in the same way:
///
/// | code | when | details |
/// |---|---|---|
/// | `EMPTY_ORDER` | there is no line | |
/// | `TOO_MANY_LINES` | there are more than [`LINES_MAX`] | |
/// | `INVALID_LINE` | a quantity or a discount of a line makes no sense | `[{line, problem}]` |
/// | `INVALID_DISCOUNT` | a discount of the order makes no sense | |
/// | `UNKNOWN_SKU` | an article is not in the catalogue | `[sku]` |
/// | `UNKNOWN_COUPON` | there is no such coupon | |
/// | `PRICE_CHANGED` | the customer saw another price | `[{sku, seen_cents, unit_price_cents}]` |
/// | `OUT_OF_STOCK` | all lines of an article together want more than there is | `[{sku, wanted, available}]` |
pub fn validate(order: Order) -> Result<ValidOrder, TaskError> {
    check_size(order.lines.len())?;
    check_lines(&order.lines)?;
    check_discounts(&order.discounts).map_err(|problem| TaskError::permanent("INVALID_DISCOUNT", problem))?;
    let coupon = order.coupon.as_deref().map(known_coupon).transpose()?;
    let articles = known_articles(&order.lines)?;
    check_prices(&order.lines, &articles)?;
    check_stock(&order.lines, &articles)?;

    log::info(&format!("order {} is valid", order.id));
    let lines = order.lines.into_iter().zip(articles).map(|(line, article)| valid_line(line, article)).collect();
    Ok(ValidOrder { id: order.id, country: order.country, lines, discounts: order.discounts, coupon })
}

/// A line that makes no sense.
#[derive(Debug, Serialize)]
struct InvalidLine {
    /// Its place, from 0.
    line: usize,
    problem: String,
}

/// An article that costs something else than the customer saw.
#[derive(Debug, Serialize)]
struct ChangedPrice {
    sku: &'static str,
    seen_cents: i64,
    unit_price_cents: i64,
}

/// An article that there is too little of.
#[derive(Debug, Serialize)]
struct Shortage {
    sku: &'static str,
    wanted: u32,
    available: u32,
}

/// Checks the number of lines.
pub fn check_size(lines: usize) -> Result<(), TaskError> {
    match lines {
        0 => Err(TaskError::permanent("EMPTY_ORDER", "the order has no lines")),
        1..=LINES_MAX => Ok(()),
        _ => Err(TaskError::permanent("TOO_MANY_LINES", format!("an order has {LINES_MAX} lines at most"))),
    }
}

fn check_lines(lines: &[Line]) -> Result<(), TaskError> {
    let problem_of = |line: &Line| match line.quantity {
        1..=QUANTITY_MAX => check_discounts(&line.discounts).err(),
        quantity => Some(format!("the quantity is {quantity}, not between 1 and {QUANTITY_MAX}")),
    };
    let invalid: Vec<InvalidLine> = lines
        .iter()
        .enumerate()
        .filter_map(|(place, line)| problem_of(line).map(|problem| InvalidLine { line: place, problem }))
        .collect();
    refuse_any("INVALID_LINE", "some lines make no sense", &invalid)
}

/// Checks the discounts of a line or of an order; the error is a sentence.
pub fn check_discounts(discounts: &[Discount]) -> Result<(), String> {
    if discounts.len() > DISCOUNTS_MAX {
        return Err(format!("there are more than {DISCOUNTS_MAX} discounts"));
    }
    discounts.iter().try_for_each(|discount| match *discount {
        Discount::Percent { basis_points } if basis_points > WHOLE_BASIS_POINTS => {
            Err(format!("a discount takes {basis_points} basis points, more than {WHOLE_BASIS_POINTS}"))
        }
        Discount::Fixed { amount_cents } if amount_cents < 0 => Err(format!("a discount takes {amount_cents} cents")),
        _ => Ok(()),
    })
}

fn known_coupon(code: &str) -> Result<String, TaskError> {
    find_coupon(code)
        .map(|coupon| coupon.code.to_owned())
        .ok_or_else(|| TaskError::permanent("UNKNOWN_COUPON", format!("there is no coupon `{code}`")))
}

fn known_articles(lines: &[Line]) -> Result<Vec<&'static Article>, TaskError> {
    let unknown: Vec<&str> =
        lines.iter().map(|line| line.sku.as_str()).filter(|sku| find_article(sku).is_none()).collect();
    refuse_any("UNKNOWN_SKU", "some articles are not in the catalogue", &unknown)?;
    Ok(lines.iter().filter_map(|line| find_article(&line.sku)).collect())
}

fn check_prices(lines: &[Line], articles: &[&'static Article]) -> Result<(), TaskError> {
    let changed: Vec<ChangedPrice> = lines
        .iter()
        .zip(articles)
        .filter_map(|(line, article)| {
            let seen_cents = line.unit_price_cents.filter(|&seen| seen != article.unit_price_cents)?;
            Some(ChangedPrice { sku: article.sku, seen_cents, unit_price_cents: article.unit_price_cents })
        })
        .collect();
    refuse_any("PRICE_CHANGED", "some prices are not what the customer saw", &changed)
}

fn check_stock(lines: &[Line], articles: &[&'static Article]) -> Result<(), TaskError> {
    let mut wanted: BTreeMap<&str, (u32, &Article)> = BTreeMap::new();
    for (line, article) in lines.iter().zip(articles) {
        wanted.entry(article.sku).or_insert((0, article)).0 += line.quantity;
    }
    let short: Vec<Shortage> = wanted
        .into_values()
        .filter(|(wanted, article)| *wanted > article.stock)
        .map(|(wanted, article)| Shortage { sku: article.sku, wanted, available: article.stock })
        .collect();
    refuse_any("OUT_OF_STOCK", "there is too little of some articles", &short)
}

fn refuse_any(code: &str, message: &str, found: &[impl Serialize]) -> Result<(), TaskError> {
    if found.is_empty() { Ok(()) } else { Err(TaskError::permanent(code, message).with_details(found)) }
}

fn valid_line(line: Line, article: &Article) -> ValidLine {
    ValidLine {
        sku: line.sku,
        title: article.title.to_owned(),
        category: article.category,
        quantity: line.quantity,
        unit_price_cents: article.unit_price_cents,
        discounts: line.discounts,
    }
}
