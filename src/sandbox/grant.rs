//! What an attempt is granted beyond itself.

use std::collections::BTreeMap;

use crate::model::EgressPolicy;

/// What the module of an attempt is told and may reach. By default nothing. Shared by attempts of the same module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    /// The module's plain settings: its environment, and what `wasi:config/store` answers.
    pub settings: BTreeMap<String, String>,
    /// Where it may send requests.
    pub egress: EgressPolicy,
}
