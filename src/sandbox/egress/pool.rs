//! Connections that wait for another request. Those of one tenant and policy are never another's.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use crate::model::{EgressPolicy, TenantId};

use super::{body, target::Target};

/// How long a connection waits.
const IDLE: Duration = Duration::from_secs(30);
/// How long after a response its connection may take to be ready again.
const READY: Duration = Duration::from_secs(1);
/// How many wait for one target.
const IDLE_EACH_MAX: usize = 8;
/// How many wait in all.
const IDLE_ALL_MAX: usize = 256;

/// A connection, to which one request at a time is given. It closes when this is dropped.
pub(super) type Sender = SendRequest<body::Request>;

/// Who may use a connection, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) tenant: TenantId,
    pub(super) policy: EgressPolicy,
    pub(super) target: Target,
}

/// The connections that wait.
#[derive(Default)]
pub(super) struct Pool(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    connections: HashMap<Key, Vec<(Sender, Instant)>>,
    number: usize,
    /// Whether somebody closes what has waited for too long.
    swept: bool,
}

/// A connection that is used for a request, and where it belongs.
pub(super) struct Loan {
    pub(super) key: Key,
    pub(super) sender: Sender,
    pub(super) pool: Arc<Pool>,
}

impl Loan {
    /// Has the connection wait for another request, once it is ready for one.
    pub(super) fn give_back(self) {
        let Self { key, mut sender, pool } = self;
        tokio::spawn(async move {
            if let Ok(Ok(())) = tokio::time::timeout(READY, sender.ready()).await {
                pool.put(key, sender);
            }
        });
    }
}

impl Pool {
    /// Takes a connection that waits, the one that has waited least.
    pub(super) fn take(&self, key: &Key) -> Option<Sender> {
        let mut waiting = self.lock();
        let waiting = &mut *waiting;
        let of_key = waiting.connections.get_mut(key)?;
        let mut taken = None;
        while let Some((sender, since)) = of_key.pop() {
            waiting.number -= 1;
            if sender.is_ready() && since.elapsed() < IDLE {
                taken = Some(sender);
                break;
            }
        }
        if of_key.is_empty() {
            waiting.connections.remove(key);
        }
        taken
    }

    fn put(self: &Arc<Self>, key: Key, sender: Sender) {
        let mut waiting = self.lock();
        let waiting = &mut *waiting;
        if waiting.number >= IDLE_ALL_MAX {
            return;
        }
        let of_key = waiting.connections.entry(key).or_default();
        if of_key.len() >= IDLE_EACH_MAX {
            return;
        }
        of_key.push((sender, Instant::now()));
        waiting.number += 1;
        if !std::mem::replace(&mut waiting.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what is closed already or has waited too long. Returns whether anything is left.
    fn close_idle(&self) -> bool {
        let mut waiting = self.lock();
        waiting.connections.retain(|_, of_key| {
            of_key.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE);
            !of_key.is_empty()
        });
        waiting.number = waiting.connections.values().map(Vec::len).sum();
        waiting.swept = waiting.number > 0;
        waiting.swept
    }

    #[cfg(test)]
    pub(super) fn number(&self) -> usize {
        self.lock().number
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the pool until nothing waits in it or it is gone.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE / 4).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_idle()) {
            return;
        }
    }
}
