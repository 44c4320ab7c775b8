//! Definitions that were parsed already, bounded in number.

use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LinkedHashMap;

use super::{Error, ErrorCode, Inner};
use crate::{
    model::{TenantId, WorkflowName, WorkflowVersion},
    workflow::{self, Definition},
};

/// The most definitions that are kept; those in use by a state live as long as it does.
const KEPT_MAX: usize = 512;

type Name = (TenantId, WorkflowName, WorkflowVersion);

/// Parsed definitions, the least recently used first.
#[derive(Default)]
pub(super) struct Definitions(Mutex<LinkedHashMap<Name, Arc<Definition>>>);

impl Definitions {
    fn lock(&self) -> std::sync::MutexGuard<'_, LinkedHashMap<Name, Arc<Definition>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &Name) -> Option<Arc<Definition>> {
        self.lock().to_back(name).map(|definition| definition.clone())
    }

    pub(super) fn keep(&self, tenant: &TenantId, definition: Arc<Definition>) {
        let mut kept = self.lock();
        kept.insert((tenant.clone(), definition.name.clone(), definition.version.clone()), definition);
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
    }

    pub(super) fn forget(&self, tenant: &TenantId, name: &WorkflowName, version: &WorkflowVersion) {
        self.lock().remove(&(tenant.clone(), name.clone(), version.clone()));
    }
}

impl Inner {
    /// Returns a registered definition.
    pub(super) async fn definition(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: &WorkflowVersion,
    ) -> Result<Arc<Definition>, Error> {
        let key = (tenant.clone(), name.clone(), version.clone());
        if let Some(definition) = self.definitions.get(&key) {
            return Ok(definition);
        }
        let row = self.store.find_workflow(tenant, name, Some(version)).await?;
        let row = row.ok_or_else(|| unknown_version(name, version))?;
        let parsed = workflow::parse(row.document.as_bytes()).map_err(|problems| {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            Error::internal(format!("the registered workflow `{name}` `{version}` cannot be read: {first}"))
        })?;
        let definition = Arc::new(parsed.definition);
        self.definitions.keep(tenant, definition.clone());
        Ok(definition)
    }
}

/// Says that a version is not registered.
pub(super) fn unknown_version(name: &WorkflowName, version: &WorkflowVersion) -> Error {
    Error::new(ErrorCode::WorkflowNotFound, format!("there is no workflow `{name}` with the version `{version}`"))
}
