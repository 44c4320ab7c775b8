//! Uploaded components.

use serde::Serialize;
use utoipa::ToSchema;

use super::BrokenContract;
use crate::model::facts::TaskSpec;

/// An uploaded component.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleView {
    /// Its name.
    pub name: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// Its size.
    pub size_bytes: u64,
    /// `ready`.
    pub state: String,
    /// The tasks it describes.
    #[schema(value_type = Vec<Object>)]
    pub tasks: Vec<TaskSpec>,
    /// What it imports.
    pub imports: Vec<String>,
    /// The aliases that name this digest.
    pub aliases: Vec<String>,
    /// When it was uploaded.
    pub created_at_ms: i64,
    /// Steps of registered workflows that its upload breaks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BrokenContract>,
}
