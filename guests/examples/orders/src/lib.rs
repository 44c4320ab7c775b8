//! Validates and prices an order.
//!
//! Two tasks, meant to follow each other: `orders.validate` takes what a customer sent and answers with an order that
//! can be priced, or with a typed error; `orders.price` takes that and works out discounts, tax and totals.
//!
//! - [`order`]: what is sent and what is valid.
//! - [`catalogue`]: what can be bought; [`tax`]: what the states take; [`coupon`]: what is given away.
//! - [`money`]: rounding and sharing of cents.
//! - [`validate`], [`price`]: the tasks.
//!
//! Amounts are whole cents, rates are basis points (1 % is 100), and no floating point is anywhere near them.

pub mod catalogue;
pub mod coupon;
pub mod money;
pub mod order;
pub mod price;
pub mod tax;
pub mod validate;

sandkeep_sdk::tasks! {
    /// Checks an order against the catalogue and its stock, and fills in titles and prices.
    "orders.validate" "1.0.0" => validate::validate,
    /// Prices a valid order: discounts of lines, discounts of the order, a coupon, tax.
    "orders.price" "1.0.0" => price::price,
}

#[cfg(test)]
mod tests;
