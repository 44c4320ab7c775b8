//! What can be bought. A shop would ask its own system; an example carries a small one along.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Cents;

/// What kind of thing an article is, which decides its tax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Printed books.
    Book,
    /// Things to eat.
    Food,
    /// Everything else.
    General,
}

/// An article of the catalogue.
#[derive(Debug)]
pub struct Article {
    /// Its key.
    pub sku: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Its kind.
    pub category: Category,
    /// The price of a piece before tax.
    pub unit_price_cents: Cents,
    /// How many pieces there are.
    pub stock: u32,
}

const ARTICLES: &[Article] = &[
    article("BOOK-ATLAS", "Atlas of the northern sky", Category::Book, 4_590, 12),
    article("BOOK-BREAD", "Baking bread at home", Category::Book, 2_250, 140),
    article("FOOD-HONEY", "Heather honey, 500 g", Category::Food, 895, 60),
    article("FOOD-TEA", "Green tea, 100 g", Category::Food, 649, 300),
    article("HOME-KETTLE", "Enamel kettle, 2 l", Category::General, 5_499, 8),
    article("HOME-LAMP", "Desk lamp, brass", Category::General, 7_999, 3),
    article("HOME-TOWEL", "Linen towel", Category::General, 1_275, 85),
    article("PAPER-A5", "Notebook A5, dotted", Category::General, 725, 0),
];

const fn article(
    sku: &'static str,
    title: &'static str,
    category: Category,
    unit_price_cents: Cents,
    stock: u32,
) -> Article {
    Article { sku, title, category, unit_price_cents, stock }
}

/// Finds an article by its key.
pub fn find_article(sku: &str) -> Option<&'static Article> {
    ARTICLES.iter().find(|article| article.sku == sku)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::UNIT_PRICE_CENTS_MAX;

    #[test]
    fn every_article_is_found_at_a_valid_price() {
        for article in ARTICLES {
            let found = find_article(article.sku).expect("it is in the catalogue");
            assert_eq!(found.title, article.title, "`{}` is there twice", article.sku);
            assert!((1..=UNIT_PRICE_CENTS_MAX).contains(&article.unit_price_cents));
        }
        assert!(find_article("home-lamp").is_none());
    }
}
