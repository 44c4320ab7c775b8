//! The pages of lists.

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins; none: this is the last.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Returns the same page with its rows made into something else.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(make).collect(), next_cursor: self.next_cursor }
    }
}

/// How much of a list is wanted.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// How many rows; clamped to 1 … 500, 50 where absent.
    pub limit: Option<u64>,
    /// Where the page begins.
    pub cursor: Option<String>,
}
