//! Registered documents.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A registered document, as lists show it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WorkflowView {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `sha256:…` over its canonical form.
    pub definition_hash: String,
    /// Its steps, in document order.
    pub steps: Vec<String>,
    /// The tasks that they name.
    pub tasks: Vec<String>,
}

/// The answer to a registration.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowRegistered {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:…` over its canonical form.
    pub definition_hash: String,
    /// Whether it is new.
    pub created: bool,
}
