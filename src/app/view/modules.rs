//! Uploaded components.

use serde::Serialize;
use utoipa::ToSchema;

use super::BrokenContract;
use crate::model::{facts::TaskSpec, row::UploadRow};

/// An uploaded component.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleView {
    /// Its name.
    pub name: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// Its size.
    pub size_bytes: u64,
    /// `ready`; of an upload `compiling` or `rejected`.
    pub state: String,
    /// Why an upload was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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

impl ModuleView {
    /// Shows an upload that is no module yet.
    pub(in crate::app) fn of_upload(row: UploadRow) -> Self {
        Self {
            name: row.name.to_string(),
            digest: row.digest.to_string(),
            size_bytes: row.size_bytes,
            state: if row.reason.is_none() { "compiling" } else { "rejected" }.to_owned(),
            reason: row.reason,
            tasks: Vec::new(),
            imports: Vec::new(),
            aliases: Vec::new(),
            created_at_ms: row.created_at.0,
            warnings: Vec::new(),
        }
    }
}
