//! A session: one registration of a native worker.

use std::collections::HashSet;

use crate::model::{
    ContractVersion, NodeLabel, QueueName, SessionId, TaskName, TenantId, Timestamp, WorkerId, id::UnitRef,
};

/// What a worker said of itself, and what it holds.
#[derive(Debug)]
pub(in crate::app) struct Session {
    pub(in crate::app) id: SessionId,
    pub(in crate::app) worker: WorkerId,
    pub(in crate::app) tenant: TenantId,
    pub(in crate::app) runtime: String,
    pub(in crate::app) sdk: Option<String>,
    pub(in crate::app) identity: Option<String>,
    pub(in crate::app) queues: Vec<QueueName>,
    pub(in crate::app) node: Option<NodeLabel>,
    /// None: as many as it polls.
    pub(in crate::app) capacity: Option<u32>,
    pub(in crate::app) contracts: Vec<(TaskName, ContractVersion)>,
    pub(in crate::app) registered_at: Timestamp,
    pub(in crate::app) last_seen: Timestamp,
    /// Whether it ever sent `active`: then only that confirms a delivery.
    pub(in crate::app) names_active: bool,
    pub(in crate::app) held: HashSet<UnitRef>,
}

impl Session {
    /// How many more units it may be handed.
    pub(in crate::app) fn room(&self) -> usize {
        match self.capacity {
            Some(capacity) => (capacity as usize).saturating_sub(self.held.len()),
            None => usize::MAX,
        }
    }

    /// Whether it serves the task in a version that fits.
    pub(in crate::app) fn serves(&self, task: &TaskName, asked: Option<&ContractVersion>) -> bool {
        let fits = |offered: &ContractVersion| asked.is_none_or(|asked| offered.serves(asked));
        self.contracts.iter().any(|(name, version)| name == task && fits(version))
    }

    /// Whether it may take a unit with this label.
    pub(in crate::app) fn has_node(&self, asked: Option<&NodeLabel>) -> bool {
        asked.is_none_or(|asked| self.node.as_ref() == Some(asked))
    }
}
