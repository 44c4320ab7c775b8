//! Settings as the rooms that use them want them.

use crate::{
    model::{Millis, facts},
    sandbox,
};

use super::{Config, Sandbox};

impl Sandbox {
    /// Returns how large everything in the sandbox may get.
    pub fn settings(&self) -> sandbox::Config {
        let usual = sandbox::Config::default();
        sandbox::Config {
            memory_bytes: self.memory_bytes.unwrap_or(usual.memory_bytes),
            max_concurrent: self.max_concurrent,
            threads: self.threads.unwrap_or(usual.threads),
            tick: Millis(self.tick_ms),
            cache_bytes: self.cache_bytes,
            limits: sandbox::Limits {
                memory_bytes: bytes(self.module_memory_bytes),
                cpu: Millis(self.cpu_ms),
                log_bytes: bytes(self.log_bytes),
                host_handles: self.host_handles,
                random_bytes: self.random_bytes,
                egress_requests: self.egress_requests,
                egress_concurrent: self.egress_concurrent,
                egress_body_bytes: self.egress_body_bytes,
                egress_time: Millis(self.egress_timeout_ms),
                ..usual.limits
            },
            compile: sandbox::CompileConfig {
                memory_bytes: self.compile_memory_bytes,
                cpu: Millis(self.compile_cpu_ms),
                wall: Millis(self.compile_wall_ms),
                at_once: self.compile_at_once.unwrap_or(usual.compile.at_once),
                ..usual.compile
            },
            module: sandbox::ModuleLimits { size_bytes: bytes(self.module_size_bytes), ..usual.module },
            egress: sandbox::EgressConfig {
                allow_private: self.allow_private_egress,
                ca_file: self.egress_ca_file.clone(),
                ..usual.egress
            },
            ..usual
        }
    }
}

impl Config {
    /// Returns the limits that the decider is told.
    pub fn limits(&self) -> facts::Limits {
        facts::Limits {
            cancel_grace: Millis(self.engine.cancel_grace_ms),
            wind_down_timeout: Millis(self.engine.wind_down_timeout_ms),
            ..facts::Limits::default()
        }
    }

    /// Returns how many lanes decide side by side.
    pub fn lanes(&self) -> usize {
        self.engine.lanes.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// What is beyond this machine's addresses is as good as no limit.
fn bytes(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
