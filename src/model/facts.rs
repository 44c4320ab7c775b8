//! What a decision may know of its tenant: a snapshot of modules and limits, shared and never changed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    id::{Alias, ContractVersion, Digest, ModuleName, RunKey, TaskName},
    json::PAYLOAD_BYTES_MAX,
    time::Millis,
};

/// A task that a module says it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The task.
    pub name: TaskName,
    /// The version of its contract.
    pub version: ContractVersion,
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
    /// JSON Schema of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
}

/// A part of the executions that use an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What they get.
    pub digest: Digest,
    /// How many of a hundred.
    pub percent: u8,
}

/// Returns the share of an execution. It depends on nothing but the names, so that the decider stays pure and an
/// execution always gets the same.
pub fn share_of<'a>(split: &'a [Share], run: &RunKey, module: &ModuleName, alias: &Alias) -> Option<&'a Digest> {
    use sha2::Digest as _;
    let name = format!("{}/{}/{module}@{alias}", run.tenant, run.execution);
    let bits =
        sha2::Sha256::digest(name.as_bytes()).iter().take(8).fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
    let mut place = bits % 100;
    for share in split {
        match place.checked_sub(u64::from(share.percent)) {
            Some(left) => place = left,
            None => return Some(&share.digest),
        }
    }
    split.last().map(|share| &share.digest)
}

/// What the decider is told about the execution's tenant.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The aliases of each module.
    pub modules: HashMap<ModuleName, BTreeMap<Alias, Digest>>,
    /// The aliases that divide executions among several digests, with their shares.
    pub splits: HashMap<(ModuleName, Alias), Vec<Share>>,
    /// The tasks that each ready digest of the tenant describes.
    pub described: HashMap<(ModuleName, Digest), Arc<[TaskSpec]>>,
    /// Which live module describes a task; at most one of a task by the rule of uploads.
    pub live: HashMap<TaskName, ModuleName>,
    /// The newest revision of the settings of each module that has any.
    pub settings: HashMap<ModuleName, u64>,
    /// The built-in component.
    pub builtin: Option<Builtin>,
    /// Whether a live module goes before a built-in.
    pub shadow_builtins: bool,
    /// The sizes that a run may not pass.
    pub limits: Limits,
}

impl Facts {
    /// Returns what an alias names for a run; none: there is no such alias.
    pub fn named(&self, run: &RunKey, module: &ModuleName, alias: &Alias) -> Option<&Digest> {
        match self.splits.get(&(module.clone(), alias.clone())) {
            Some(split) => share_of(split, run, module, alias),
            None => self.modules.get(module)?.get(alias),
        }
    }

    /// Returns the newest revision of a module's settings; 0: none were set.
    pub fn settings_of(&self, module: &ModuleName) -> u64 {
        self.settings.get(module).copied().unwrap_or_default()
    }

    /// Returns all that an alias names, one digest or several.
    pub fn all_named(&self, module: &ModuleName, alias: &Alias) -> Vec<&Digest> {
        match self.splits.get(&(module.clone(), alias.clone())) {
            Some(split) => split.iter().map(|share| &share.digest).collect(),
            None => self.modules.get(module).and_then(|aliases| aliases.get(alias)).into_iter().collect(),
        }
    }
}

/// The component that comes with the server.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// Its digest.
    pub digest: Digest,
    /// What it does.
    pub tasks: Arc<[TaskSpec]>,
}

/// Limits and spans of the engine; configuration may set them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest payload in bytes.
    pub payload_bytes: usize,
    /// The most events of a run.
    pub events: u64,
    /// The most bytes of payloads that a run's state holds.
    pub state_bytes: u64,
    /// How long a told unit may take to stop.
    pub cancel_grace: Millis,
    /// How long winding down may take in all.
    pub wind_down_timeout: Millis,
    /// The most events that one turn makes; the rest is a turn of its own.
    pub turn_events: usize,
    /// The most expression steps that one turn spends.
    pub turn_steps: u64,
    /// The most signals that wait unconsumed.
    pub signals: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: PAYLOAD_BYTES_MAX,
            events: 200_000,
            state_bytes: 64 * 1024 * 1024,
            cancel_grace: Millis(30_000),
            wind_down_timeout: Millis(86_400_000),
            turn_events: 256,
            turn_steps: 200_000,
            signals: 10_000,
        }
    }
}
