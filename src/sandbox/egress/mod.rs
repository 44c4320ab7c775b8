//! Outgoing HTTP of modules: denied unless the tenant's policy lists where it goes.
//!
//! - [`Egress`]: what all attempts share: resolver, roots of trust, connections
//! - [`Outgoing`]: what one attempt sends, counted
//! - [`Hooks`]: where `wasi:http` hands a request over
//!
//! A request passes, in this order: its permit (`outgoing.rs`), scheme, user and host (`target.rs`), the allow-list, the
//! name's addresses (`resolve.rs`, `addresses.rs`), a connection to one of them (`connect.rs`, `pool.rs`), its headers
//! (`headers.rs`), and limits on its body and its response's (`body.rs`). The name is never resolved again on the way, and
//! a redirect goes back to the guest, which asks anew.

mod addresses;
mod body;
mod connect;
mod headers;
mod hooks;
mod outgoing;
mod pool;
mod refusal;
mod resolve;
mod send;
mod target;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

pub(super) use hooks::Hooks;
pub(super) use outgoing::{Counts, Outgoing};
pub use resolve::Resolve;

use connect::{Roots, Tls};
use pool::Pool;
use resolve::Resolver;

/// How outgoing requests are made, for all tenants.
#[derive(Clone, Default)]
pub struct Config {
    /// Whether a policy may list loopback, link-local and metadata addresses.
    pub allow_private: bool,
    /// A PEM file of further roots of trust.
    pub ca_file: Option<PathBuf>,
    /// Turns names into addresses; none: as the system does.
    pub resolver: Option<Arc<dyn Resolve>>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("allow_private", &self.allow_private)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

/// What all attempts share.
pub(super) struct Egress {
    allow_private: bool,
    resolver: Resolver,
    tls: Tls,
    pool: Arc<Pool>,
    /// Where this server listens.
    own: RwLock<Vec<SocketAddr>>,
}

impl Egress {
    /// Reads the roots of trust of its own; those of the system are read with the first request that needs them.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let roots = config.ca_file.as_deref().map(Roots::read).transpose()?;
        Ok(Self {
            allow_private: config.allow_private,
            resolver: Resolver::new(config.resolver.clone()),
            tls: Tls::new(roots.unwrap_or_default()),
            pool: Arc::default(),
            own: RwLock::default(),
        })
    }

    /// Notes that this server listens there, so that its own modules do not reach it by accident.
    pub(super) fn serves(&self, address: SocketAddr) {
        self.own.write().unwrap_or_else(PoisonError::into_inner).push(address);
    }

    /// Returns whether this server listens at an address.
    fn is_own(&self, address: IpAddr, port: u16) -> bool {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        own.iter()
            .any(|own| own.port() == port && (own.ip() == address || (own.ip().is_unspecified() && local(address))))
    }
}

/// Whether an address is one of this machine's: only those can be bound.
fn local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}
