//! A lane's inbox: a line for each tenant, taken in turn, so that one tenant's flood waits behind its own.

use std::collections::{HashMap, VecDeque};

use super::lane::Ask;
use crate::model::TenantId;

/// Asks in line.
#[derive(Default)]
pub(super) struct Inbox {
    lines: HashMap<TenantId, VecDeque<Ask>>,
    turns: VecDeque<TenantId>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn push(&mut self, ask: Ask) {
        self.line(&ask).push_back(ask);
    }

    /// Puts an ask back to where it came from.
    pub(super) fn push_front(&mut self, ask: Ask) {
        self.line(&ask).push_front(ask);
    }

    /// Takes the next ask of the tenant whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Ask> {
        let tenant = self.turns.pop_front()?;
        let line = self.lines.get_mut(&tenant)?;
        let ask = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        ask
    }

    fn line(&mut self, ask: &Ask) -> &mut VecDeque<Ask> {
        let tenant = &ask.key.tenant;
        if !self.lines.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.lines.entry(tenant.clone()).or_default()
    }
}
