//! Permits to compile: few for all, one of them at a time for a tenant, so that a hundred uploads of one do not stand
//! before the first of another.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::TenantId;

/// The permits.
pub(super) struct Permits {
    all: Arc<Semaphore>,
    tenants: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// One permit; given back when it is dropped.
pub(super) struct Permit<'a> {
    permits: &'a Permits,
    tenant: TenantId,
    own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

impl Permits {
    pub(super) fn new(at_once: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(at_once.max(1))), tenants: Mutex::default() }
    }

    /// Waits for a permit; none once they are closed.
    pub(super) async fn acquire(&self, tenant: &TenantId) -> Option<Permit<'_>> {
        let own = Arc::clone(self.lock().entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        let mut permit = Permit { permits: self, tenant: tenant.clone(), own: None, _all: None };
        permit.own = own.acquire_owned().await.ok();
        permit._all = Some(Arc::clone(&self.all).acquire_owned().await.ok()?);
        Some(permit)
    }

    pub(super) fn close(&self) {
        self.all.close();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, Arc<Semaphore>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.own = None;
        let mut tenants = self.permits.lock();
        // One is the map's; whoever waits holds another, taken under the lock.
        if tenants.get(&self.tenant).is_some_and(|own| Arc::strong_count(own) == 1) {
            tenants.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[tokio::test]
    async fn many_of_one_tenant_do_not_stand_before_the_first_of_another() {
        let permits = Permits::new(1);
        let (a, b) = (tenant("a"), tenant("b"));
        let first = permits.acquire(&a).await.unwrap();
        let mut more: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire(&a))).collect();
        for waiting in &mut more {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut other = pin!(permits.acquire(&b));
        assert!(other.as_mut().now_or_never().is_none());
        drop(first);
        assert!(more[0].as_mut().now_or_never().is_none());
        let Some(Some(other)) = other.as_mut().now_or_never() else { panic!("it is next") };
        drop(other);
        for waiting in more {
            drop(waiting.await.unwrap());
        }
        assert!(permits.lock().is_empty(), "nothing is kept of who has none");
    }

    #[tokio::test]
    async fn closed_permits_end_the_wait() {
        let permits = Permits::new(1);
        let held = permits.acquire(&tenant("a")).await.unwrap();
        let other = tenant("b");
        let mut waiting = pin!(permits.acquire(&other));
        assert!(waiting.as_mut().now_or_never().is_none());
        permits.close();
        assert!(waiting.await.is_none());
        drop(held);
    }
}
