//! What is sent and what is valid.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Category;
use crate::money::Cents;
use crate::tax::Country;

/// The most lines of one order.
pub const LINES_MAX: usize = 200;

/// The most pieces of one line.
pub const QUANTITY_MAX: u32 = 10_000;

/// The most discounts of one line, and of one order.
pub const DISCOUNTS_MAX: usize = 10;

/// The highest price of a piece, in cents: with the limits above no sum comes near the end of its type.
pub const UNIT_PRICE_CENTS_MAX: Cents = 100_000_000;

/// An order as a customer sends it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The order's number, as the shop knows it.
    pub id: String,
    /// Where it is sent, which decides the tax.
    pub country: Country,
    /// What is ordered.
    pub lines: Vec<Line>,
    /// What comes off the whole order.
    #[serde(default)]
    pub discounts: Vec<Discount>,
    /// A code such as `WELCOME10`; upper and lower case are the same.
    #[serde(default)]
    pub coupon: Option<String>,
}

/// A line of an order.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The article.
    pub sku: String,
    /// How many pieces.
    pub quantity: u32,
    /// The price that the customer saw, before tax. A different one today is an error; none takes today's.
    #[serde(default)]
    pub unit_price_cents: Option<Cents>,
    /// What comes off this line.
    #[serde(default)]
    pub discounts: Vec<Discount>,
}

/// A reduction, before tax.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Discount {
    /// A share of what is left after the discounts before it.
    Percent {
        /// The share in hundredths of a percent, at most 10,000.
        basis_points: u32,
    },
    /// An amount, at most what is left.
    Fixed {
        /// The amount, not negative.
        amount_cents: Cents,
    },
}

/// An order that can be priced: the output of `orders.validate` and the input of `orders.price`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidOrder {
    /// The order's number.
    pub id: String,
    /// Where it is sent.
    pub country: Country,
    /// What is ordered, every article known and in stock.
    pub lines: Vec<ValidLine>,
    /// What comes off the whole order.
    #[serde(default)]
    pub discounts: Vec<Discount>,
    /// The code of a coupon that exists, in capitals.
    #[serde(default)]
    pub coupon: Option<String>,
}

/// A line of a valid order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidLine {
    /// The article.
    pub sku: String,
    /// Its name.
    pub title: String,
    /// Its kind, which decides the tax.
    pub category: Category,
    /// How many pieces, at least one.
    pub quantity: u32,
    /// The price of a piece before tax.
    pub unit_price_cents: Cents,
    /// What comes off this line.
    #[serde(default)]
    pub discounts: Vec<Discount>,
}
