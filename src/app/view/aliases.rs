//! Aliases of modules, and what is said of two digests of one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an alias shall name: one digest, or several with their shares.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AliasRequest {
    /// The digest.
    #[serde(default)]
    pub digest: Option<String>,
    /// The digests among which executions are divided.
    #[serde(default)]
    pub split: Option<Vec<ShareView>>,
}

/// A part of the executions that use an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareView {
    /// What they get.
    pub digest: String,
    /// How many of a hundred.
    pub percent: u8,
}

/// Which alias shall name again what it named before.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The alias; `live` where absent.
    #[serde(default)]
    pub alias: Option<String>,
    /// Whether live executions that are pinned to what the alias leaves move, too.
    #[serde(default)]
    pub repin: bool,
}

/// Which module an execution shall use from now on: exactly one of `digest` and `alias`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepinRequest {
    /// The module.
    pub module: String,
    /// The digest to use.
    #[serde(default)]
    pub digest: Option<String>,
    /// The alias whose present digest to use.
    #[serde(default)]
    pub alias: Option<String>,
}

/// An alias of a module.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AliasView {
    /// The module.
    pub module: String,
    /// The alias.
    pub alias: String,
    /// What it names; absent where it divides executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The digests among which it divides executions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split: Vec<ShareView>,
    /// When it was moved there.
    pub moved_at_ms: i64,
    /// What it named before, newest first; not in lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<NamedBefore>,
    /// Steps of registered workflows that the move breaks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<BrokenContract>,
    /// How many live executions were moved along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repinned: Option<u64>,
    /// How many live executions could not be moved along, because the digest does not serve them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_repinned: Option<u64>,
}

/// What an alias named before.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NamedBefore {
    /// The digest; absent where it divided executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The digests among which it divided executions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split: Vec<ShareView>,
    /// When it was moved there.
    pub moved_at_ms: i64,
}

/// A step that the new version of a module does not serve as the old one did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct BrokenContract {
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// The step.
    pub step: String,
    /// The task.
    pub task: String,
    /// What is wrong, for people.
    pub problem: String,
}

/// What differs between two digests of a module.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleDiff {
    /// The module.
    pub name: String,
    /// The digest that is compared with.
    pub from: String,
    /// The digest that is compared.
    pub to: String,
    /// The size of `from` in bytes.
    pub from_size_bytes: u64,
    /// The size of `to` in bytes.
    pub to_size_bytes: u64,
    /// Tasks that only `to` describes.
    pub tasks_added: Vec<String>,
    /// Tasks that only `from` describes.
    pub tasks_removed: Vec<String>,
    /// Tasks that both describe, in another way.
    pub tasks_changed: Vec<TaskChange>,
    /// What only `to` imports.
    pub imports_added: Vec<String>,
    /// What only `from` imports.
    pub imports_removed: Vec<String>,
}

/// How the description of a task changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TaskChange {
    /// The task.
    pub task: String,
    /// The version of its contract in `from`.
    pub from_version: String,
    /// The version of its contract in `to`.
    pub to_version: String,
    /// Whether its input schema changed.
    pub input_schema_changed: bool,
    /// Whether its output schema changed.
    pub output_schema_changed: bool,
    /// Members of its input that only `to` requires, each with its path.
    pub newly_required: Vec<String>,
}
