//! What a single key cannot say: values that must fit together, and what this server cannot do.

use std::{net::SocketAddr, path::Path};

use super::{Config, Database, Error};

/// The shortest server key, in characters.
const SECRET_CHARS_MIN: usize = 32;

/// Refuses settings that cannot be served.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let Config { server, database, worker, sandbox, key, .. } = config;
    loopback("server.listen", server.listen)?;
    server.grpc_listen.map_or(Ok(()), |address| loopback("server.grpc_listen", address))?;
    database.sqlite_path()?;
    if worker.session_timeout_ms <= worker.heartbeat_interval_ms {
        return conflict("`worker.session_timeout_ms` must be longer than `worker.heartbeat_interval_ms`");
    }
    if sandbox.memory_bytes.is_some_and(|all| all < sandbox.module_memory_bytes) {
        return conflict("`sandbox.memory_bytes` must hold at least one `sandbox.module_memory_bytes`");
    }
    if key.file.is_some() && key.secret.is_some() {
        return conflict("`key.file` and `key.secret` are both set; there is one server key");
    }
    if key.secret.as_ref().is_some_and(|secret| secret.reveal().chars().count() < SECRET_CHARS_MIN) {
        return conflict(format!("`key.secret` must have at least {SECRET_CHARS_MIN} characters"));
    }
    Ok(())
}

/// There are no credentials yet, so whoever reaches the server may do everything.
fn loopback(key: &str, address: SocketAddr) -> Result<(), Error> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    conflict(format!(
        "`{key}` is {address}, but no credential is configured: an open server listens on loopback addresses only"
    ))
}

fn conflict<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Conflict(message.into()))
}

impl Database {
    /// Returns the path of the database file.
    pub fn sqlite_path(&self) -> Result<&Path, Error> {
        match self.url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Path::new(path.strip_prefix("//").unwrap_or(path))),
            Some(("postgres" | "postgresql", _)) => {
                conflict("`database.url` names PostgreSQL, which is not supported yet")
            }
            _ => conflict("`database.url` must read `sqlite:PATH`"),
        }
    }
}
