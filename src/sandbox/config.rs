//! How large everything in the sandbox may get.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::model::{Millis, Timestamp, json::PAYLOAD_BYTES_MAX};

use super::{compile::CompileConfig, egress, machine};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The most instances at a time unless the operator says otherwise, however much memory there is.
const SLOTS_MAX: u64 = 1_000;

/// Says what time it is; stamps log lines.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The settings of a sandbox.
#[derive(Clone)]
pub struct Config {
    /// Linear memory of all instances together, in bytes.
    pub memory_bytes: u64,
    /// The most instances at a time; none: what `memory_bytes` allows, at most 1,000.
    pub max_concurrent: Option<usize>,
    /// How many threads run guests.
    pub threads: usize,
    /// How often a running guest looks up: the longest turn while others wait.
    pub tick: Millis,
    /// Compiled modules kept in memory, in bytes.
    pub cache_bytes: u64,
    /// What an attempt may use; a call can ask for less.
    pub limits: Limits,
    /// What a module may be.
    pub module: ModuleLimits,
    /// Where and how components are compiled.
    pub compile: CompileConfig,
    /// How outgoing requests are made.
    pub egress: egress::Config,
    /// Whether the instructions that an attempt executes are counted. It slows guests, so it is for tools.
    pub count_instructions: bool,
    /// The clock of log lines.
    pub clock: Clock,
    /// For tests of crashes: a log message equal to this ends the process at once.
    #[cfg(debug_assertions)]
    pub abort_on_log: Option<String>,
}

/// What one attempt may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Linear memory, summed over the instance, in bytes.
    pub memory_bytes: usize,
    /// Elements of one table.
    pub table_elements: usize,
    /// Processor time.
    pub cpu: Millis,
    /// The input, in bytes.
    pub input_bytes: usize,
    /// The output, and the details of an error, in bytes.
    pub output_bytes: usize,
    /// Log lines kept, in bytes; what is between head and tail is counted.
    pub log_bytes: usize,
    /// What one call of the host, or the return to it, may copy, in bytes.
    pub hostcall_bytes: usize,
    /// Handles of the component model alive at once.
    pub handles: usize,
    /// Handles that the host keeps for it alive at once, and the most that it may wait for in one call.
    pub host_handles: usize,
    /// Random bytes of one call.
    pub random_call_bytes: u64,
    /// Random bytes in all.
    pub random_bytes: u64,
    /// Outgoing requests in all.
    pub egress_requests: u32,
    /// Outgoing requests at a time.
    pub egress_concurrent: u32,
    /// The body of an outgoing request, and that of its response, in bytes.
    pub egress_body_bytes: u64,
    /// How long an outgoing request may take, its response included.
    pub egress_time: Millis,
}

/// What a module may be, for all tenants alike: the pools are cut to it when the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleLimits {
    /// Size of the component in bytes.
    pub size_bytes: usize,
    /// Core instances, nested components included.
    pub core_instances: u32,
    /// Linear memories of all its core instances.
    pub memories: u32,
    /// Tables of all its core instances.
    pub tables: u32,
    /// Nested components, as written.
    pub components: u32,
    /// The wasm stack, in bytes.
    pub stack_bytes: usize,
    /// Tasks described.
    pub tasks: usize,
    /// How long `describe` may take on the wall.
    pub describe_wall: Millis,
    /// How much processor time `describe` may take.
    pub describe_cpu: Millis,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_bytes: machine::memory_bytes() / 4,
            max_concurrent: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            tick: Millis(2),
            cache_bytes: 512 * MIB as u64,
            limits: Limits::default(),
            module: ModuleLimits::default(),
            compile: CompileConfig::default(),
            egress: egress::Config::default(),
            count_instructions: false,
            clock: Arc::new(system_now),
            #[cfg(debug_assertions)]
            abort_on_log: None,
        }
    }
}

impl Config {
    /// Returns how many instances there may be at a time.
    pub fn slots(&self) -> usize {
        let fitting = (self.memory_bytes / self.limits.memory_bytes.max(1) as u64).min(SLOTS_MAX) as usize;
        self.max_concurrent.unwrap_or(fitting).max(1)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("memory_bytes", &self.memory_bytes)
            .field("slots", &self.slots())
            .field("threads", &self.threads)
            .field("tick", &self.tick)
            .field("cache_bytes", &self.cache_bytes)
            .field("limits", &self.limits)
            .field("module", &self.module)
            .field("egress", &self.egress)
            .finish_non_exhaustive()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 * MIB,
            table_elements: 20_000,
            cpu: Millis(10_000),
            input_bytes: PAYLOAD_BYTES_MAX,
            output_bytes: PAYLOAD_BYTES_MAX,
            log_bytes: 256 * KIB,
            hostcall_bytes: 8 * MIB,
            handles: 10_000,
            host_handles: 4_096,
            random_call_bytes: 64 * KIB as u64,
            random_bytes: 16 * MIB as u64,
            egress_requests: 100,
            egress_concurrent: 10,
            egress_body_bytes: 8 * MIB as u64,
            egress_time: Millis(30_000),
        }
    }
}

impl Limits {
    /// Returns the tighter of both in every respect.
    pub fn least(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            table_elements: self.table_elements.min(other.table_elements),
            cpu: self.cpu.min(other.cpu),
            input_bytes: self.input_bytes.min(other.input_bytes),
            output_bytes: self.output_bytes.min(other.output_bytes),
            log_bytes: self.log_bytes.min(other.log_bytes),
            hostcall_bytes: self.hostcall_bytes.min(other.hostcall_bytes),
            handles: self.handles.min(other.handles),
            host_handles: self.host_handles.min(other.host_handles),
            random_call_bytes: self.random_call_bytes.min(other.random_call_bytes),
            random_bytes: self.random_bytes.min(other.random_bytes),
            egress_requests: self.egress_requests.min(other.egress_requests),
            egress_concurrent: self.egress_concurrent.min(other.egress_concurrent),
            egress_body_bytes: self.egress_body_bytes.min(other.egress_body_bytes),
            egress_time: self.egress_time.min(other.egress_time),
        }
    }
}

impl Default for ModuleLimits {
    fn default() -> Self {
        Self {
            size_bytes: 64 * MIB,
            core_instances: 32,
            memories: 4,
            tables: 8,
            components: 64,
            stack_bytes: 512 * KIB,
            tasks: 1_000,
            describe_wall: Millis(30_000),
            describe_cpu: Millis(1_000),
        }
    }
}

fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_memory_up_to_a_thousand() {
        for (memory_mib, max_concurrent, slots) in [
            (0, None, 1),
            (64, None, 1),
            (640, None, 10),
            (1_000_000, None, 1_000),
            (640, Some(3), 3),
            (640, Some(0), 1),
        ] {
            let config = Config { memory_bytes: memory_mib * MIB as u64, max_concurrent, ..Config::default() };
            assert_eq!(config.slots(), slots, "{memory_mib} MiB, {max_concurrent:?}");
        }
    }
}
