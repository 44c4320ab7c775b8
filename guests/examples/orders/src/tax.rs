//! What the states take: value added tax by country and category.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Category;

/// A country that the shop sends to, by its ISO 3166 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Country {
    /// Austria.
    At,
    /// Germany.
    De,
    /// France.
    Fr,
    /// Ireland.
    Ie,
}

/// Returns the rate of tax in basis points.
pub fn rate_basis_points(country: Country, category: Category) -> u32 {
    match (country, category) {
        (Country::At, Category::General) => 2_000,
        (Country::At, Category::Book | Category::Food) => 1_000,
        (Country::De, Category::General) => 1_900,
        (Country::De, Category::Book | Category::Food) => 700,
        (Country::Fr, Category::General) => 2_000,
        (Country::Fr, Category::Book | Category::Food) => 550,
        (Country::Ie, Category::General) => 2_300,
        (Country::Ie, Category::Book | Category::Food) => 0,
    }
}
