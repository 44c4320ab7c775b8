//! A module that is ready to be called.

use std::{fmt, sync::Arc};

use wasmtime::{
    Engine,
    component::{Component, ComponentExportIndex, InstancePre, Linker},
};

use crate::model::{Digest, facts::TaskSpec};

use super::{Rejected, state::State, upload};

/// Bookkeeping of a module beside its code, roughly, in bytes.
const OVERHEAD_BYTES: u64 = 64 * 1024;

/// A component, compiled and linked. Cheap to clone; lives while a call uses it, whatever the cache does.
#[derive(Clone)]
pub struct Module(Arc<Ready>);

struct Ready {
    digest: Digest,
    pre: InstancePre<State>,
    run: ComponentExportIndex,
    describe: ComponentExportIndex,
    size_bytes: u64,
}

/// A component that passed every check of an upload.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// The digest of its bytes.
    pub digest: Digest,
    /// What it imports, by name.
    pub imports: Vec<String>,
    /// What it does.
    pub tasks: Vec<TaskSpec>,
    /// The component itself.
    pub module: Module,
}

impl Module {
    /// Links a component; its imports and exports are checked with their types.
    pub(super) fn link(linker: &Linker<State>, component: &Component, digest: Digest) -> Result<Self, Rejected> {
        let (run, describe) = upload::exports(component)?;
        let pre = linker
            .instantiate_pre(component)
            .map_err(|error| Rejected::World { differences: vec![format!("{error:#}")] })?;
        let image = component.image_range();
        let size_bytes = (image.end as usize - image.start as usize) as u64 + OVERHEAD_BYTES;
        Ok(Self(Arc::new(Ready { digest, pre, run, describe, size_bytes })))
    }

    /// Returns the digest of the component's bytes.
    pub fn digest(&self) -> &Digest {
        &self.0.digest
    }

    /// Returns what it takes in memory, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.0.size_bytes
    }

    #[cfg(test)]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn engine(&self) -> &Engine {
        self.0.pre.engine()
    }

    pub(super) fn pre(&self) -> &InstancePre<State> {
        &self.0.pre
    }

    pub(super) fn run_export(&self) -> &ComponentExportIndex {
        &self.0.run
    }

    pub(super) fn describe_export(&self) -> &ComponentExportIndex {
        &self.0.describe
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(self.digest()).finish()
    }
}
