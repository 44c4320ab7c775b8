//! `orders.price`.

use std::collections::BTreeMap;

use sandkeep_sdk::{TaskError, log};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coupon::find_coupon;
use crate::money::{Cents, allocate, share};
use crate::order::{Discount, QUANTITY_MAX, UNIT_PRICE_CENTS_MAX, ValidLine, ValidOrder};
use crate::tax::rate_basis_points;
use crate::validate::{check_discounts, check_size};

/// A priced order. All amounts are whole cents, and every sum is that of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricedOrder {
    /// The order's number.
    pub id: String,
    /// The currency of all amounts.
    pub currency: String,
    /// The priced lines, in the order's order.
    pub lines: Vec<PricedLine>,
    /// Pieces times price, of all lines.
    pub subtotal_cents: Cents,
    /// What came off, by discounts of lines, of the order and by the coupon.
    pub discount_cents: Cents,
    /// What is left of it, before tax.
    pub net_cents: Cents,
    /// The tax by rate, the lowest first.
    pub taxes: Vec<Tax>,
    /// All tax.
    pub tax_cents: Cents,
    /// What is to be paid.
    pub total_cents: Cents,
}

/// A priced line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricedLine {
    /// The article.
    pub sku: String,
    /// Its name.
    pub title: String,
    /// How many pieces.
    pub quantity: u32,
    /// The price of a piece before tax.
    pub unit_price_cents: Cents,
    /// Pieces times price.
    pub subtotal_cents: Cents,
    /// What came off, the line's share of the order's discounts included.
    pub discount_cents: Cents,
    /// What is left of it, before tax.
    pub net_cents: Cents,
    /// The rate of tax, in hundredths of a percent.
    pub tax_basis_points: u32,
    /// The tax.
    pub tax_cents: Cents,
    /// What is to be paid for the line.
    pub total_cents: Cents,
}

/// The tax of one rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tax {
    /// The rate, in hundredths of a percent.
    pub basis_points: u32,
    /// What it was taken of.
    pub net_cents: Cents,
    /// The tax.
    pub tax_cents: Cents,
}

/// Prices a valid order.
///
/// First each line: pieces times price, less its discounts in their order. Then the order: its discounts in their
/// order and the coupon at last, off the sum of the lines and shared among them in proportion, to the cent. Then tax,
/// line by line. The rule of rounding is told in [`money`](crate::money).
///
/// | code | when |
/// |---|---|
/// | `EMPTY_ORDER`, `TOO_MANY_LINES`, `INVALID_LINE`, `INVALID_DISCOUNT`, `UNKNOWN_COUPON` | the order did not come from `orders.validate` |
/// | `COUPON_NOT_APPLICABLE` | the lines come to less than the coupon asks for; details `{minimum_cents, lines_cents}` |
pub fn price(order: ValidOrder) -> Result<PricedOrder, TaskError> {
    check(&order)?;
    let after_own: Vec<Cents> = order.lines.iter().map(after_own_discounts).collect();
    let shared = allocate(order_discount(&order, after_own.iter().sum())?, &after_own);

    let nets = after_own.iter().zip(shared).map(|(own, shared)| own - shared);
    let lines = order.lines.iter().zip(nets).map(|(line, net)| priced_line(&order, line, net)).collect();
    let priced = total(order.id, lines);
    log::info(&format!("order {} comes to {} cents", priced.id, priced.total_cents));
    Ok(priced)
}

/// Checks what the arithmetic relies on: the input may come from anywhere.
fn check(order: &ValidOrder) -> Result<(), TaskError> {
    check_size(order.lines.len())?;
    for line in &order.lines {
        check_line(line)
            .map_err(|problem| TaskError::permanent("INVALID_LINE", format!("`{}`: {problem}", line.sku)))?;
    }
    check_discounts(&order.discounts).map_err(|problem| TaskError::permanent("INVALID_DISCOUNT", problem))
}

fn check_line(line: &ValidLine) -> Result<(), String> {
    if !(1..=QUANTITY_MAX).contains(&line.quantity) {
        return Err(format!("the quantity is {}, not between 1 and {QUANTITY_MAX}", line.quantity));
    }
    if !(0..=UNIT_PRICE_CENTS_MAX).contains(&line.unit_price_cents) {
        return Err(format!("the price is {}, not between 0 and {UNIT_PRICE_CENTS_MAX}", line.unit_price_cents));
    }
    check_discounts(&line.discounts)
}

fn subtotal(line: &ValidLine) -> Cents {
    Cents::from(line.quantity) * line.unit_price_cents
}

fn after_own_discounts(line: &ValidLine) -> Cents {
    line.discounts.iter().fold(subtotal(line), |left, discount| left - taken(discount, left))
}

/// Returns what the order's discounts and its coupon take off the sum of its lines.
fn order_discount(order: &ValidOrder, lines_cents: Cents) -> Result<Cents, TaskError> {
    let coupon = order.coupon.as_deref().map(|code| coupon_discount(code, lines_cents)).transpose()?;
    let left = order.discounts.iter().chain(coupon).fold(lines_cents, |left, discount| left - taken(discount, left));
    Ok(lines_cents - left)
}

fn coupon_discount(code: &str, lines_cents: Cents) -> Result<&'static Discount, TaskError> {
    let coupon = find_coupon(code)
        .ok_or_else(|| TaskError::permanent("UNKNOWN_COUPON", format!("there is no coupon `{code}`")))?;
    if lines_cents < coupon.minimum_cents {
        let message = format!("the coupon `{code}` asks for {} cents of goods", coupon.minimum_cents);
        let amounts = BTreeMap::from([("minimum_cents", coupon.minimum_cents), ("lines_cents", lines_cents)]);
        return Err(TaskError::permanent("COUPON_NOT_APPLICABLE", message).with_details(amounts));
    }
    Ok(&coupon.discount)
}

/// Returns what a discount takes of what is left.
fn taken(discount: &Discount, left: Cents) -> Cents {
    match *discount {
        Discount::Percent { basis_points } => share(left, basis_points),
        Discount::Fixed { amount_cents } => amount_cents.min(left),
    }
}

fn priced_line(order: &ValidOrder, line: &ValidLine, net_cents: Cents) -> PricedLine {
    let tax_basis_points = rate_basis_points(order.country, line.category);
    let tax_cents = share(net_cents, tax_basis_points);
    PricedLine {
        sku: line.sku.clone(),
        title: line.title.clone(),
        quantity: line.quantity,
        unit_price_cents: line.unit_price_cents,
        subtotal_cents: subtotal(line),
        discount_cents: subtotal(line) - net_cents,
        net_cents,
        tax_basis_points,
        tax_cents,
        total_cents: net_cents + tax_cents,
    }
}

fn total(id: String, lines: Vec<PricedLine>) -> PricedOrder {
    let sum = |amount: fn(&PricedLine) -> Cents| lines.iter().map(amount).sum();
    PricedOrder {
        id,
        currency: "EUR".to_owned(),
        subtotal_cents: sum(|line| line.subtotal_cents),
        discount_cents: sum(|line| line.discount_cents),
        net_cents: sum(|line| line.net_cents),
        taxes: taxes(&lines),
        tax_cents: sum(|line| line.tax_cents),
        total_cents: sum(|line| line.total_cents),
        lines,
    }
}

fn taxes(lines: &[PricedLine]) -> Vec<Tax> {
    let mut by_rate: BTreeMap<u32, Tax> = BTreeMap::new();
    for line in lines {
        let basis_points = line.tax_basis_points;
        let tax = by_rate.entry(basis_points).or_insert(Tax { basis_points, net_cents: 0, tax_cents: 0 });
        tax.net_cents += line.net_cents;
        tax.tax_cents += line.tax_cents;
    }
    by_rate.into_values().collect()
}
