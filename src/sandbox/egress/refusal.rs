//! Why a request is not sent, in words for the module's author.

use std::net::IpAddr;

use serde_json::json;
use wasmtime_wasi_http::Error;

use crate::model::{code, egress::EgressEntry};

use super::{addresses::Blocked, target::Target};

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The attempt has sent as many as it may.
    #[error("an attempt sends {max} requests at most")]
    TooMany { max: u32 },
    /// The attempt is at as many as it may be.
    #[error("an attempt has {max} requests and responses under way at most")]
    TooManyAtOnce { max: u32 },
    /// Neither `https` nor `http`.
    #[error("the scheme is not `https` or `http`")]
    Scheme,
    /// A method for proxies and their tests.
    #[error("the methods CONNECT and TRACE are not sent")]
    Method,
    /// A user before the host.
    #[error("the URL has a user before its host; credentials belong in a header")]
    User,
    /// Not a host in one form.
    #[error("the host is not clear: {0}")]
    Host(&'static str),
    /// The policy does not list it.
    #[error("the policy does not list `{entry}`; with this entry it would be allowed")]
    NotListed { entry: EgressEntry },
    /// It is not sent, and there is no answer that was kept.
    #[error("{sentence}")]
    Unrecorded { sentence: String },
    /// It is listed, and leads to where it may not.
    #[error(
        "`{host}` is at {address}, which is {}; the policy would allow it with the private network `{address}/{}`{}",
        blocked.what,
        if address.is_ipv4() { 32 } else { 128 },
        if blocked.guarded { " and the server with `--allow-private-egress`" } else { "" }
    )]
    Private { host: String, address: IpAddr, blocked: Blocked },
}

impl Refusal {
    /// Returns what the guest is told.
    pub(super) fn to_error(&self) -> Error {
        Error::InternalError(Some(self.sentence()))
    }

    /// Returns what the log says.
    pub(super) fn sentence(&self) -> String {
        format!("{}: {self}", code::EGRESS_DENIED)
    }

    /// Returns the fields of its log line.
    pub(super) fn fields(&self, target: Option<&Target>) -> String {
        let entry = match self {
            Self::NotListed { entry } => Some(entry),
            _ => None,
        };
        let (host, port) = target.map(|target| (&target.host, target.port)).unzip();
        let address = match self {
            Self::Private { address, .. } => Some(address),
            _ => None,
        };
        json!({ "code": code::EGRESS_DENIED, "host": host, "port": port, "entry": entry, "address": address })
            .to_string()
    }
}
