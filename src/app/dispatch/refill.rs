//! Refills: rows that are read into windows that became low.

use std::sync::Arc;

use super::{
    dispatcher::Dispatcher,
    window::{Ready, WINDOW_MAX},
};
use crate::store::{ReadyClass, ReadyOrder, ReadyPage};

impl Dispatcher {
    /// Sets how many rows of a class there are, at start.
    pub(in crate::app) fn set_stored(&self, name: &ReadyClass, count: u64) {
        let mut state = self.lock();
        let class = state.class(name);
        state.classes[class].window.stored = count;
    }

    /// There may be a ready row of this class of which nobody was told: the next refill looks for it.
    pub(in crate::app) fn expect_row(&self, name: &ReadyClass) {
        let mut state = self.lock();
        let class = state.class(name);
        state.classes[class].window.expect_row();
    }

    /// Whether a window became low since this was asked last.
    pub(in crate::app) fn became_low(&self) -> bool {
        std::mem::take(&mut self.lock().low)
    }

    /// Returns the classes whose window is low while rows are stored and somebody can take them, with how many rows to
    /// read: those that are out are still rows.
    pub(in crate::app) fn refills(&self) -> Vec<(ReadyClass, usize)> {
        let mut state = self.lock();
        let wanted: Vec<usize> = (0..state.classes.len())
            .filter(|class| state.classes[*class].window.wants_refill() && state.is_served(*class))
            .collect();
        let mut refills = Vec::new();
        for class in wanted {
            let out = state.out.values().filter(|held| held.class == class).count();
            let found = &mut state.classes[class];
            found.window.refill_begins();
            refills.push((found.name.clone(), WINDOW_MAX + out));
        }
        refills
    }

    /// Takes in what a refill read; `limit` as it was asked with.
    pub(in crate::app) fn refilled(&self, name: &ReadyClass, pages: Vec<(ReadyOrder, ReadyPage)>, limit: usize) {
        let mut state = self.lock();
        let class = state.class(name);
        let (left, arrived) = state.classes[class].window.refill_ends();
        let mut complete = true;
        for (_, page) in pages {
            complete &= page.items.len() + page.unreadable.len() < limit;
            for item in page.items {
                let unit = &item.row.unit;
                let window = &state.classes[class].window;
                let full = window.len() >= WINDOW_MAX;
                if full || left.contains(unit) || window.contains(unit) || state.out.contains_key(unit) {
                    complete &= !full;
                    continue;
                }
                let window = &mut state.classes[class].window;
                window.stored = window.stored.saturating_sub(1);
                state.admit(class, Arc::new(Ready { row: item.row, input: item.input }), false);
            }
        }
        if complete {
            state.classes[class].window.stored = arrived;
        }
    }

    /// A refill could not read.
    pub(in crate::app) fn refill_failed(&self, name: &ReadyClass) {
        let mut state = self.lock();
        let class = state.class(name);
        state.classes[class].window.refill_ends();
    }

    /// Ready units in windows and rows beyond them.
    pub(in crate::app) fn ready_count(&self) -> u64 {
        let state = self.lock();
        state.classes.iter().map(|class| class.window.stored + u64::try_from(class.window.len()).unwrap_or(0)).sum()
    }
}
