//! What is looked at before a component is compiled, in the order of cost: its size, its first bytes, its validity
//! under our features, its structure, its imports and exports.

mod exports;
mod features;
mod magic;
mod shape;
mod tasks;
mod world;

use wasmtime::WasmFeatures;

use super::{Config, Rejected};

pub(super) use exports::exports;
pub(super) use tasks::tasks;

/// Examines the bytes of a component and returns the names of its imports. Bounded by the size of the bytes.
pub(super) fn examine(bytes: &[u8], features: WasmFeatures, config: &Config) -> Result<Vec<String>, Rejected> {
    let size_bytes_max = config.module.size_bytes;
    if bytes.is_empty() {
        return Err(Rejected::Empty);
    }
    if bytes.len() > size_bytes_max {
        return Err(Rejected::TooLarge { size_bytes: bytes.len(), size_bytes_max });
    }
    magic::check(bytes)?;
    features::check(bytes, features)?;
    let shape = shape::of(bytes)?;
    shape.check(&config.module, &config.limits)?;
    world::check(&shape)?;
    Ok(shape.imports)
}
