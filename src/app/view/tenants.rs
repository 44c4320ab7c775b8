//! Tenants, policies, settings of modules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::policy::{Granted, ModuleSettings, Own};

/// A tenant is made.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct CreateTenantRequest {
    /// Its name.
    pub tenant: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// A tenant.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TenantView {
    /// Its name.
    pub tenant: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// When it was made.
    pub created_at_ms: i64,
}

/// The policy of a tenant.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PolicyView {
    /// The tenant.
    pub tenant: String,
    /// How often it was set; 0: never.
    pub revision: u64,
    /// What the operator grants.
    #[schema(value_type = Object)]
    pub granted: Granted,
    /// What the owner allows itself of it.
    #[schema(value_type = Object)]
    pub own: Own,
    /// What holds.
    pub effective: EffectiveView,
}

/// What a tenant may use: the least of server, grant and its own.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EffectiveView {
    /// Where modules may send requests.
    pub egress: Vec<String>,
    /// Networks of private addresses that allowed names may resolve to.
    pub private: Vec<String>,
    /// Linear memory of an attempt, in bytes.
    pub memory_bytes: u64,
    /// Processor time of an attempt.
    pub cpu_ms: u64,
    /// Instances at a time.
    pub instances: u64,
    /// How many units are taken in a turn while others wait.
    pub weight: u32,
    /// Digests of modules.
    pub modules: u64,
    /// Bytes of modules.
    pub module_bytes: u64,
    /// Whether a module of the tenant may do a task that is built in.
    pub shadow_builtins: bool,
}

/// The settings of a module.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModuleSettingsView {
    /// The module.
    pub name: String,
    /// How often they were set; 0: never.
    pub revision: u64,
    /// What is set.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub settings: ModuleSettings,
}
