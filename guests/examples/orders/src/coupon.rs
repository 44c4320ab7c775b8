//! What is given away: coupons, which reduce the whole order.

use crate::money::Cents;
use crate::order::Discount;

/// A coupon.
#[derive(Debug)]
pub struct Coupon {
    /// What a customer types, in capitals.
    pub code: &'static str,
    /// What it takes off, after all other discounts.
    pub discount: Discount,
    /// What the lines must come to, after their own discounts, for it to count.
    pub minimum_cents: Cents,
}

const COUPONS: &[Coupon] = &[
    Coupon { code: "WELCOME10", discount: Discount::Percent { basis_points: 1_000 }, minimum_cents: 0 },
    Coupon { code: "FIVEOFF", discount: Discount::Fixed { amount_cents: 500 }, minimum_cents: 5_000 },
];

/// Finds a coupon by its code; upper and lower case are the same.
pub fn find_coupon(code: &str) -> Option<&'static Coupon> {
    COUPONS.iter().find(|coupon| coupon.code.eq_ignore_ascii_case(code.trim()))
}
