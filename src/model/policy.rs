//! What a tenant may use, and what is said of each of its modules.
//!
//! A policy has two halves: what the operator grants, and what the owner makes narrower. What holds is the least of both;
//! a half that is silent on something adds nothing to the other.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{
    egress::{EgressEntry, EgressPolicy},
    id::TaskName,
};

/// How many digests of modules a tenant keeps where its policy does not say.
pub const MODULES_MAX: u64 = 1_000;
/// How many bytes of modules a tenant keeps where its policy does not say.
pub const MODULE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// The policy of a tenant. By default nothing is granted beyond what every tenant has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// What the operator grants.
    pub granted: Granted,
    /// What the owner allows itself of it.
    pub own: Own,
}

/// The operator's half.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Granted {
    /// Where modules may send requests.
    pub egress: Vec<EgressEntry>,
    /// Networks of private addresses that allowed names may resolve to.
    #[serde(with = "networks")]
    pub private: Vec<IpNet>,
    /// What work may use.
    pub limits: WorkLimits,
    /// What is kept.
    pub quotas: Quotas,
    /// Whether a module of the tenant may do a task that is built in.
    pub shadow_builtins: bool,
}

/// The owner's half: only ever narrower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Own {
    /// Where modules may send requests; none: wherever it is granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressEntry>>,
    /// What work may use.
    pub limits: WorkLimits,
    /// What is kept.
    pub quotas: Quotas,
}

/// What work may use. What is not said is what the server allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkLimits {
    /// Linear memory of an attempt, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processor time of an attempt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Instances at a time; half of the sandbox's, at least one, where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// How many units are taken in a turn while others wait, 1 where nothing is said. The operator's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
}

/// What is kept of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quotas {
    /// Digests of modules; [`MODULES_MAX`] where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<u64>,
    /// Bytes of modules; [`MODULE_BYTES_MAX`] where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module_bytes: Option<u64>,
}

/// What is said of a module: what it is told, and what it may use of what its tenant may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSettings {
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// What an attempt may use.
    pub limits: ModuleCaps,
    /// Where it may send requests; none: wherever its tenant may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressEntry>>,
    /// The tasks whose attempts are recorded.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub record: BTreeSet<TaskName>,
}

/// What an attempt of a module may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleCaps {
    /// Linear memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processor time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
}

/// The size of a tenant's part of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The most instances at a time, at least one.
    pub instances: usize,
    /// How many units are taken in a turn while others wait, at least one.
    pub weight: u32,
}

impl Policy {
    /// Returns where modules may send requests.
    pub fn egress(&self) -> EgressPolicy {
        let granted = EgressPolicy { allow: self.granted.egress.clone(), private: self.granted.private.clone() };
        match &self.own.egress {
            Some(own) => granted.narrowed(own),
            None => granted,
        }
    }

    /// Returns what an attempt may use, as far as the policy says.
    pub fn caps(&self) -> ModuleCaps {
        let (granted, own) = (&self.granted.limits, &self.own.limits);
        ModuleCaps {
            memory_bytes: least(granted.memory_bytes, own.memory_bytes),
            cpu_ms: least(granted.cpu_ms, own.cpu_ms),
        }
    }

    /// Returns the tenant's part of a sandbox with so many slots.
    pub fn share(&self, slots: usize) -> Share {
        let usual = (slots / 2).max(1);
        let granted = self.granted.limits.instances.map_or(usual, |most| saturating(most).min(slots));
        let own = self.own.limits.instances.map_or(granted, saturating);
        let weight = u32::try_from(self.granted.limits.weight.unwrap_or(1)).unwrap_or(u32::MAX);
        Share { instances: granted.min(own).max(1), weight: weight.max(1) }
    }

    /// Returns how many digests of modules are kept.
    pub fn modules(&self) -> u64 {
        least(Some(self.granted.quotas.modules.unwrap_or(MODULES_MAX)), self.own.quotas.modules).unwrap_or(MODULES_MAX)
    }

    /// Returns how many bytes of modules are kept.
    pub fn module_bytes(&self) -> u64 {
        let granted = self.granted.quotas.module_bytes.unwrap_or(MODULE_BYTES_MAX);
        self.own.quotas.module_bytes.map_or(granted, |own| own.min(granted))
    }
}

impl ModuleCaps {
    /// Returns the tighter of both in every respect.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self { memory_bytes: least(self.memory_bytes, other.memory_bytes), cpu_ms: least(self.cpu_ms, other.cpu_ms) }
    }
}

/// Networks as their usual texts.
mod networks {
    use ipnet::IpNet;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(networks: &[IpNet], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(networks.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn saturating(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_half_unless_it_is_said() {
        for (slots, granted, own, instances) in [
            (1, None, None, 1),
            (3, None, None, 1),
            (10, None, None, 5),
            (10, Some(8), None, 8),
            (10, Some(800), None, 10),
            (10, Some(8), Some(3), 3),
            (10, Some(2), Some(3), 2),
            (10, None, Some(9), 5),
            (10, Some(0), None, 1),
        ] {
            let mut policy = Policy::default();
            policy.granted.limits.instances = granted;
            policy.own.limits.instances = own;
            assert_eq!(policy.share(slots).instances, instances, "{slots} {granted:?} {own:?}");
        }
        assert_eq!(Policy::default().share(2).weight, 1);
    }

    #[test]
    fn the_least_holds() {
        let limit = |memory_bytes| WorkLimits { memory_bytes, ..WorkLimits::default() };
        for (granted, own, held) in
            [(None, None, None), (Some(5), None, Some(5)), (None, Some(4), Some(4)), (Some(5), Some(9), Some(5))]
        {
            let mut policy = Policy::default();
            policy.granted.limits = limit(granted);
            policy.own.limits = limit(own);
            assert_eq!(policy.caps().memory_bytes, held);
        }
        let mut policy = Policy::default();
        assert_eq!((policy.modules(), policy.module_bytes()), (MODULES_MAX, MODULE_BYTES_MAX));
        policy.own.quotas = Quotas { modules: Some(3), module_bytes: Some(u64::MAX) };
        assert_eq!((policy.modules(), policy.module_bytes()), (3, MODULE_BYTES_MAX));
    }

    #[test]
    fn what_is_kept_reads_back() {
        let mut policy = Policy::default();
        policy.granted.egress = vec!["https://*.a.example".parse().unwrap()];
        policy.granted.private = vec!["10.0.0.0/8".parse().unwrap()];
        policy.own.egress = Some(Vec::new());
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
        assert!(policy.egress().allow.is_empty(), "an empty list allows nothing");
        policy.own.egress = None;
        assert_eq!(policy.egress().allow.len(), 1);
        assert_eq!(serde_json::from_str::<ModuleSettings>("{}").unwrap(), ModuleSettings::default());
    }
}
