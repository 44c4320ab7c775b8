//! Turns names into addresses, a bounded number at a time.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use wasmtime_wasi_http::Error;

/// How many look-ups there are at a time. The system's resolver holds a thread for each.
const LOOKUPS_MAX: usize = 32;
/// How many addresses of a name are looked at.
const ADDRESSES_MAX: usize = 16;

/// Turns a name into its addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Returns the addresses of `name`, best first.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of a sandbox.
pub(super) struct Resolver {
    other: Option<Arc<dyn Resolve>>,
    lookups: Arc<Semaphore>,
}

impl Resolver {
    pub(super) fn new(other: Option<Arc<dyn Resolve>>) -> Self {
        Self { other, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    /// Returns the addresses of `name`; at least one.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let found = match &self.other {
            Some(other) => other.resolve(name).await,
            None => self.of_system(name).await,
        };
        let mut addresses = found.map_err(|error| unresolved(&error.to_string()))?;
        addresses.truncate(ADDRESSES_MAX);
        if addresses.is_empty() { Err(unresolved("the name has no address")) } else { Ok(addresses) }
    }

    async fn of_system(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let look_up = move || {
            // Held by the thread, which goes on when nobody waits for it any more.
            let _permit = permit;
            Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
        };
        tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
    }
}

fn unresolved(reason: &str) -> Error {
    Error::DnsError { rcode: Some(reason.to_owned()), info_code: None }
}
