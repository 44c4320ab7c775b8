//! Default versions that were read already, bounded in number.

use std::sync::{Mutex, PoisonError};

use hashlink::LinkedHashMap;

use crate::model::{TenantId, WorkflowName, WorkflowVersion};

/// The most that are kept.
const KEPT_MAX: usize = 4_096;

/// Default versions by workflow, the least recently used first.
#[derive(Default)]
pub(super) struct DefaultVersions(Mutex<LinkedHashMap<(TenantId, WorkflowName), WorkflowVersion>>);

impl DefaultVersions {
    fn lock(&self) -> std::sync::MutexGuard<'_, LinkedHashMap<(TenantId, WorkflowName), WorkflowVersion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, tenant: &TenantId, name: &WorkflowName) -> Option<WorkflowVersion> {
        self.lock().to_back(&(tenant.clone(), name.clone())).map(|version| version.clone())
    }

    pub(super) fn keep(&self, tenant: &TenantId, name: &WorkflowName, version: &WorkflowVersion) {
        let mut kept = self.lock();
        kept.insert((tenant.clone(), name.clone()), version.clone());
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
    }

    /// Any of them may have moved.
    pub(super) fn forget_all(&self) {
        self.lock().clear();
    }

    pub(super) fn forget(&self, tenant: &TenantId, name: &WorkflowName) {
        self.lock().remove(&(tenant.clone(), name.clone()));
    }
}
