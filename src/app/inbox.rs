//! A line for each tenant, taken in turn, so that one tenant's flood waits behind its own: of what is asked of a lane, and
//! of what lanes hand to the writer.

use std::collections::{HashMap, VecDeque};

use crate::model::TenantId;

/// Something of a tenant.
pub(super) trait Owned {
    /// Whose it is.
    fn owner(&self) -> &TenantId;
}

/// What waits, in its lines.
pub(super) struct Inbox<T> {
    lines: HashMap<TenantId, VecDeque<T>>,
    turns: VecDeque<TenantId>,
    len: usize,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self { lines: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T: Owned> Inbox<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, item: T) {
        self.line(&item).push_back(item);
    }

    /// Puts an item back to where it came from.
    pub(super) fn push_front(&mut self, item: T) {
        self.line(&item).push_front(item);
    }

    /// Takes the next item of the tenant whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let tenant = self.turns.pop_front()?;
        let line = self.lines.get_mut(&tenant)?;
        let item = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        self.len -= usize::from(item.is_some());
        item
    }

    fn line(&mut self, item: &T) -> &mut VecDeque<T> {
        let tenant = item.owner();
        if !self.lines.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.len += 1;
        self.lines.entry(tenant.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Owned for (TenantId, u32) {
        fn owner(&self) -> &TenantId {
            &self.0
        }
    }

    #[test]
    fn tenants_are_served_in_turn_and_each_in_order() {
        let item = |tenant: &str, number| (TenantId::new(tenant).unwrap(), number);
        let mut inbox = Inbox::default();
        for number in 0..3 {
            inbox.push(item("a", number));
        }
        inbox.push(item("b", 10));
        inbox.push_front(item("a", 7));
        assert_eq!(inbox.len(), 5);
        let order: Vec<u32> = std::iter::from_fn(|| inbox.pop()).map(|(_, number)| number).collect();
        assert_eq!(order, [7, 10, 0, 1, 2]);
        assert!(inbox.is_empty() && inbox.pop().is_none());
    }
}
