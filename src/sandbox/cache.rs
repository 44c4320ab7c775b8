//! Compiled modules by digest: bounded in bytes, the least recently used go first, and each digest is made once however
//! many ask for it.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hashlink::LruCache;
use tokio::sync::OnceCell;

use crate::model::Digest;

use super::Module;

/// The cache.
pub(super) struct Cache {
    bytes_max: u64,
    kept: Mutex<Kept>,
    under_way: Mutex<HashMap<Digest, Making>>,
}

type Making = Arc<OnceCell<Module>>;

struct Kept {
    modules: LruCache<Digest, Module>,
    bytes: u64,
}

impl Cache {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            kept: Mutex::new(Kept { modules: LruCache::new_unbounded(), bytes: 0 }),
            under_way: Mutex::default(),
        }
    }

    /// Returns the module when it is there.
    pub(super) fn get(&self, digest: &Digest) -> Option<Module> {
        self.kept().modules.get(digest).cloned()
    }

    /// Keeps a module. One that alone is larger than the cache is kept until the next comes.
    pub(super) fn insert(&self, module: Module) {
        let mut kept = self.kept();
        kept.bytes += module.size_bytes();
        if let Some(before) = kept.modules.insert(module.digest().clone(), module) {
            kept.bytes -= before.size_bytes();
        }
        while kept.bytes > self.bytes_max && kept.modules.len() > 1 {
            let Some((_, oldest)) = kept.modules.remove_lru() else { break };
            kept.bytes -= oldest.size_bytes();
        }
    }

    /// Returns the module, made by `make` where it is not there. Of several callers at a time one makes it and the
    /// others wait; when the one is dropped or fails, the next has a try.
    pub(super) async fn get_or_make<E, F>(&self, digest: &Digest, make: impl FnOnce() -> F) -> Result<Module, E>
    where
        F: Future<Output = Result<Module, E>>,
    {
        if let Some(module) = self.get(digest) {
            return Ok(module);
        }
        let turn = Turn::join(self, digest);
        let made = turn.making.get_or_try_init(|| async {
            let module = match self.get(digest) {
                Some(module) => module,
                None => make().await?,
            };
            self.insert(module.clone());
            Ok(module)
        });
        made.await.cloned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<Digest, Making>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller's interest in a digest under way; the last to go removes the entry.
struct Turn<'a> {
    cache: &'a Cache,
    digest: &'a Digest,
    making: Making,
}

impl<'a> Turn<'a> {
    fn join(cache: &'a Cache, digest: &'a Digest) -> Self {
        let making = Arc::clone(cache.under_way().entry(digest.clone()).or_default());
        Self { cache, digest, making }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut under_way = self.cache.under_way();
        // One is the map's, one is this caller's; others join under the lock only.
        if Arc::strong_count(&self.making) == 2 {
            under_way.remove(self.digest);
        }
    }
}
