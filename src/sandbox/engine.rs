//! The engine: one per process, strict, with pools cut to the slots.

use serde::{Deserialize, Serialize};
use wasmtime::{
    Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, RegallocAlgorithm, WasmFeatures,
};

use super::config::Config;

/// What is switched off, with its name in refusals. Each is either not wanted from strangers' code or not needed by any
/// guest language that this server supports.
pub(super) const OFF: &[(WasmFeatures, &str)] = &[
    (WasmFeatures::THREADS, "threads"),
    (WasmFeatures::SHARED_EVERYTHING_THREADS, "shared-everything-threads"),
    (WasmFeatures::MEMORY64, "memory64"),
    (WasmFeatures::MULTI_MEMORY, "multi-memory"),
    (WasmFeatures::CUSTOM_PAGE_SIZES, "custom-page-sizes"),
    (WasmFeatures::MEMORY_CONTROL, "memory-control"),
    (WasmFeatures::TAIL_CALL, "tail-call"),
    (WasmFeatures::RELAXED_SIMD, "relaxed-simd"),
    (WasmFeatures::WIDE_ARITHMETIC, "wide-arithmetic"),
    (WasmFeatures::EXCEPTIONS, "exceptions"),
    (WasmFeatures::LEGACY_EXCEPTIONS, "legacy-exceptions"),
    (WasmFeatures::STACK_SWITCHING, "stack-switching"),
    (WasmFeatures::FUNCTION_REFERENCES, "function-references"),
    (WasmFeatures::GC, "gc"),
    (WasmFeatures::GC_TYPES, "references that are garbage-collected"),
    (WasmFeatures::CUSTOM_DESCRIPTORS, "custom-descriptors"),
    (WasmFeatures::COMPACT_IMPORTS, "compact-imports"),
    (WasmFeatures::CM_ASYNC, "component-model-async"),
    (WasmFeatures::CM_ASYNC_STACKFUL, "component-model-async-stackful"),
    (WasmFeatures::CM_MORE_ASYNC_BUILTINS, "component-model-more-async-builtins"),
    (WasmFeatures::CM_THREADING, "component-model-threading"),
    (WasmFeatures::CM_ERROR_CONTEXT, "component-model-error-context"),
    (WasmFeatures::CM_GC, "component-model-gc"),
    (WasmFeatures::CM_VALUES, "component-model-values"),
    (WasmFeatures::CM_NESTED_NAMES, "component-model-nested-names"),
    (WasmFeatures::CM_FIXED_LENGTH_LISTS, "component-model-fixed-length-lists"),
    (WasmFeatures::CM_MAP, "component-model-map"),
    (WasmFeatures::CM64, "component-model-memory64"),
    (WasmFeatures::CM_IMPLEMENTS, "component-model-implements"),
    (WasmFeatures::CM_CANON_NAMES, "component-model-canonical-names"),
];

/// Stack that the host has beneath the guest's: a guest at the end of its stack may still call the host.
const HOST_STACK_BYTES: usize = 1536 * 1024;
/// Freed pools that stay warm for each guest thread.
const WARM_SLOTS_PER_THREAD: u32 = 8;
/// How much of a freed memory is zeroed in place instead of given back to the system: of what was written, up to here.
/// It halves the cost of a call, whose stack and data usually lie within it, and it is a small part of what a slot may
/// use anyway.
const MEMORY_KEPT_BYTES: usize = 2 * 1024 * 1024;
/// The same of a table.
const TABLE_KEPT_BYTES: usize = 128 * 1024;
/// The same of the stack. The rest goes back, so that deep recursion leaves nothing behind.
const STACK_KEPT_BYTES: usize = 8 * 1024;
/// A page of linear memory.
const PAGE_BYTES: usize = 64 * 1024;
/// The largest bookkeeping of one instance.
const INSTANCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How memory for instances is had. Tried in this order; the first one that the address space has room for is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Layout {
    /// A pool with 4 GiB of addresses for each memory, so that guests need no bounds checks.
    Wide,
    /// A pool with as many addresses as a memory may have bytes; guests check bounds.
    Narrow,
    /// No pool: mapped when an instance is made.
    OnDemand,
}

/// How much work the compiler puts into a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Tier {
    /// Optimised.
    Full,
    /// In a time that grows with the size alone: for what would take the other one too long.
    Fallback,
}

/// What decides how code is compiled, so that another process can compile it for this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) tier: Tier,
    /// The largest memory of a module, in bytes.
    pub(super) memory_bytes: u64,
    /// The wasm stack, in bytes.
    pub(super) stack_bytes: usize,
    /// Whether instructions are counted.
    pub(super) count_instructions: bool,
}

/// The engine of a process, with how it came about.
pub(super) struct Built {
    pub(super) engine: Engine,
    pub(super) features: WasmFeatures,
    pub(super) layout: Layout,
}

/// Makes the engine that runs guests.
pub(super) fn build(config: &Config) -> Result<Built, wasmtime::Error> {
    match engine(config, Layout::Wide) {
        Ok(built) => return Ok(built),
        Err(error) => tracing::debug!(error = format!("{error:#}"), "no wide instance pool"),
    }
    match engine(config, Layout::Narrow) {
        Ok(built) => {
            tracing::warn!(
                slots = config.slots(),
                "address space is short: modules run with bounds checks, a little slower; \
                 raise the limit of address space or lower `sandbox.max_concurrent`"
            );
            Ok(built)
        }
        Err(error) => {
            tracing::warn!(
                slots = config.slots(),
                error = format!("{error:#}"),
                "no address space for an instance pool: instances are mapped on demand, which is slower; \
                 raise the limit of address space or lower `sandbox.max_concurrent`"
            );
            engine(config, Layout::OnDemand)
        }
    }
}

/// Makes an engine that only compiles: its code fits the engine that the plan is of, and it has no pool.
pub(super) fn compiler(plan: Plan) -> Result<Engine, wasmtime::Error> {
    let mut settings = settings(plan);
    settings.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&settings)
}

/// Returns how code must be compiled for an engine of this layout.
pub(super) fn plan(config: &Config, layout: Layout, tier: Tier) -> Plan {
    Plan {
        layout,
        tier,
        memory_bytes: memory_bytes(config) as u64,
        stack_bytes: config.module.stack_bytes,
        count_instructions: config.count_instructions,
    }
}

fn engine(config: &Config, layout: Layout) -> Result<Built, wasmtime::Error> {
    let mut settings = settings(plan(config, layout, Tier::Full));
    match layout {
        Layout::Wide | Layout::Narrow => settings.allocation_strategy(pool(config)),
        Layout::OnDemand => settings.allocation_strategy(InstanceAllocationStrategy::OnDemand),
    };
    Ok(Built { engine: Engine::new(&settings)?, features: features(), layout })
}

fn settings(plan: Plan) -> wasmtime::Config {
    let mut settings = wasmtime::Config::new();
    settings
        .cranelift_nan_canonicalization(true)
        .epoch_interruption(true)
        .consume_fuel(plan.count_instructions)
        .concurrency_support(false)
        .max_wasm_stack(plan.stack_bytes)
        .async_stack_size(plan.stack_bytes + HOST_STACK_BYTES)
        .async_stack_zeroing(true);
    match plan.tier {
        Tier::Full => settings.cranelift_opt_level(OptLevel::Speed),
        Tier::Fallback => {
            settings.cranelift_opt_level(OptLevel::None).cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass)
        }
    };
    for (feature, _) in OFF {
        settings.wasm_features(*feature, false);
    }
    match plan.layout {
        Layout::Wide => {}
        Layout::Narrow => {
            settings.memory_reservation(plan.memory_bytes);
        }
        Layout::OnDemand => {
            settings.memory_reservation(plan.memory_bytes).memory_reservation_for_growth(0);
        }
    }
    settings
}

/// Returns what the engine accepts: what it accepts by default, without what is off.
fn features() -> WasmFeatures {
    OFF.iter().fold(WasmFeatures::WASM3 | WasmFeatures::COMPONENT_MODEL, |left, (feature, _)| left - *feature)
}

/// Returns how large one memory can get: the limit, in whole pages.
fn memory_bytes(config: &Config) -> usize {
    config.limits.memory_bytes.next_multiple_of(PAGE_BYTES)
}

/// A pool for as many instances as there are slots, each of the largest kind.
fn pool(config: &Config) -> PoolingAllocationConfig {
    let slots = u32::try_from(config.slots()).unwrap_or(u32::MAX);
    let threads = u32::try_from(config.threads).unwrap_or(u32::MAX);
    let module = &config.module;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(module.core_instances))
        .total_memories(slots.saturating_mul(module.memories))
        .total_tables(slots.saturating_mul(module.tables))
        .total_stacks(slots)
        .total_gc_heaps(0)
        .max_core_instances_per_component(module.core_instances)
        .max_memories_per_component(module.memories)
        .max_tables_per_component(module.tables)
        .max_memories_per_module(1)
        .max_tables_per_module(module.tables)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        .max_memory_size(memory_bytes(config))
        .table_elements(config.limits.table_elements)
        .max_unused_warm_slots(threads.saturating_mul(WARM_SLOTS_PER_THREAD))
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(MEMORY_KEPT_BYTES)
        .table_keep_resident(TABLE_KEPT_BYTES)
        .async_stack_keep_resident(STACK_KEPT_BYTES);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(slots: usize) -> Config {
        Config { max_concurrent: Some(slots), ..Config::default() }
    }

    #[test]
    fn a_pool_that_does_not_fit_gives_way_to_mapping_on_demand() {
        let huge = config(4_000_000);
        for layout in [Layout::Wide, Layout::Narrow] {
            assert!(engine(&huge, layout).is_err(), "C069 {layout:?}");
        }
        assert!(build(&huge).is_ok());
    }

    #[test]
    fn features_that_are_off_are_not_validated() {
        let features = build(&config(1)).unwrap().features;
        for (feature, name) in OFF {
            assert!(!features.intersects(*feature), "{name}");
        }
        assert!(features.contains(WasmFeatures::SIMD | WasmFeatures::BULK_MEMORY | WasmFeatures::REFERENCE_TYPES));
    }

    #[test]
    fn stacks_are_checked_against_each_other() {
        let mut config = config(1);
        config.module.stack_bytes = 0;
        assert!(engine(&config, Layout::OnDemand).is_err(), "C071");
    }
}
