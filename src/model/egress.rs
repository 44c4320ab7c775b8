//! Where modules may send requests: entries of an allow-list, written `scheme://host:port`.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The longest name of a host, in bytes (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// The scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// In the clear; never meant unless an entry says so.
    Http,
    /// Over TLS.
    Https,
}

/// One entry: the hosts, and the port, that one scheme may reach.
///
/// The host is a name (`api.example.com`), every name under one (`*.example.com`), or the network of literal addresses
/// (`10.1.0.0/16`, `[fd00::/8]`). Without a port it is the scheme's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EgressEntry {
    scheme: Scheme,
    host: Hosts,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Hosts {
    Name(String),
    Under(String),
    Network(IpNet),
}

/// What the modules of a tenant may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EgressPolicy {
    /// Where requests may go. Nothing is allowed that is not listed.
    pub allow: Vec<EgressEntry>,
    /// Networks of private addresses that names may resolve to. Without one that contains it, a private address is denied
    /// although its name is allowed.
    pub private: Vec<IpNet>,
}

/// Why a text is no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not `scheme://host:port`: {reason}")]
pub struct NotAnEntry {
    text: String,
    reason: &'static str,
}

impl Scheme {
    /// Returns its name, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port that is meant where none is given.
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl EgressEntry {
    /// Makes the entry that allows exactly one host: what a denial tells its reader to list.
    pub fn of(scheme: Scheme, host: &str, port: u16) -> Self {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let host =
            address.map_or_else(|_| Hosts::Name(host.to_ascii_lowercase()), |address| Hosts::Network(address.into()));
        Self { scheme, host, port }
    }

    /// Returns whether it allows a request; `host` is canonical: a name in lower case without a final dot, or an address.
    pub fn allows(&self, scheme: Scheme, host: &str, port: u16) -> bool {
        if scheme != self.scheme || port != self.port {
            return false;
        }
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match (&self.host, address) {
            (Hosts::Network(network), Ok(address)) => network.contains(&address),
            (Hosts::Name(name), Err(_)) => name == host,
            (Hosts::Under(parent), Err(_)) => {
                host.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            _ => false,
        }
    }

    /// Returns whether it allows all that `other` allows.
    pub fn covers(&self, other: &Self) -> bool {
        if (self.scheme, self.port) != (other.scheme, other.port) {
            return false;
        }
        match (&self.host, &other.host) {
            (Hosts::Network(mine), Hosts::Network(theirs)) => mine.contains(theirs),
            (Hosts::Name(mine), Hosts::Name(theirs)) => mine == theirs,
            (Hosts::Under(mine), Hosts::Name(theirs)) => {
                theirs.strip_suffix(mine.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Hosts::Under(mine), Hosts::Under(theirs)) => {
                theirs.strip_suffix(mine.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            _ => false,
        }
    }
}

impl EgressPolicy {
    /// Returns whether a request is listed.
    pub fn allows(&self, scheme: Scheme, host: &str, port: u16) -> bool {
        self.allow.iter().any(|entry| entry.allows(scheme, host, port))
    }

    /// Narrows it to `own`: what both allow. An entry of `own` that nothing here covers allows nothing.
    #[must_use]
    pub fn narrowed(&self, own: &[EgressEntry]) -> Self {
        let covered = own.iter().filter(|entry| self.allow.iter().any(|granted| granted.covers(entry)));
        Self { allow: covered.cloned().collect(), private: self.private.clone() }
    }
}

impl FromStr for EgressEntry {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Self, NotAnEntry> {
        parse(text).map_err(|reason| NotAnEntry { text: super::code::cut(text.to_owned(), 200), reason })
    }
}

fn parse(text: &str) -> Result<EgressEntry, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or("a scheme and `://` come first")?;
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return Err("the scheme is `https` or `http`"),
    };
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("`[` is not closed")?,
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let bracketed = rest.starts_with('[');
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or("the port is a number from 1 to 65535")?,
        None if port.is_empty() => scheme.port(),
        None => return Err("only `:port` follows the host"),
    };
    Ok(EgressEntry { scheme, host: hosts(host, bracketed)?, port })
}

fn hosts(text: &str, bracketed: bool) -> Result<Hosts, &'static str> {
    let network = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    match network {
        Some(network) if bracketed == matches!(network, IpNet::V6(_)) => return Ok(Hosts::Network(network.trunc())),
        Some(_) => return Err("IPv6 stands in brackets, IPv4 does not"),
        None if bracketed => return Err("what stands in brackets is no IPv6 address or network"),
        None => {}
    }
    let (name, under) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
    if name.is_empty() || name.len() > HOST_BYTES_MAX || !name.split('.').all(is_label) {
        return Err("the host is a name of letters, digits and hyphens in lower case, `*.` and a name, or a network");
    }
    if name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("the host looks like an address and is none");
    }
    Ok(if under { Hosts::Under(name.to_owned()) } else { Hosts::Name(name.to_owned()) })
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
}

impl fmt::Display for EgressEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.as_str())?;
        match &self.host {
            Hosts::Name(name) => write!(f, "{name}")?,
            Hosts::Under(name) => write!(f, "*.{name}")?,
            Hosts::Network(network) => {
                let single = network.prefix_len() == network.max_prefix_len();
                let text = if single { network.addr().to_string() } else { network.to_string() };
                if network.addr().is_ipv6() { write!(f, "[{text}]")? } else { write!(f, "{text}")? }
            }
        }
        write!(f, ":{}", self.port)
    }
}

impl Serialize for EgressEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EgressEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back() {
        for (text, shown) in [
            ("https://api.example.com", "https://api.example.com:443"),
            ("http://api.example.com", "http://api.example.com:80"),
            ("https://*.example.com:8443", "https://*.example.com:8443"),
            ("http://10.1.2.3:8080", "http://10.1.2.3:8080"),
            ("http://10.1.2.3/16:8080", "http://10.1.0.0/16:8080"),
            ("https://[fd00::1]:1", "https://[fd00::1]:1"),
            ("https://[fd00::/8]", "https://[fd00::/8]:443"),
        ] {
            let entry: EgressEntry = text.parse().unwrap();
            assert_eq!(entry.to_string(), shown);
            assert_eq!(shown.parse::<EgressEntry>().unwrap(), entry);
            assert!(entry.covers(&entry));
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "api.example.com",
            "ftp://a",
            "HTTPS://a",
            "https://",
            "https://A.example.com",
            "https://a/path",
            "https://user@a",
            "https://a:0",
            "https://a:65536",
            "https://a:80:80",
            "https://*.*.a",
            "https://a.*",
            "https://*",
            "https://a..b",
            "https://-a",
            "https://127.1",
            "https://300.1.1.1",
            "https://10.0.0.0/33",
            "https://fd00::1",
            "https://[10.0.0.1]",
            "https://[fd00::1",
            "https://a b",
            "https://a\n",
        ] {
            assert!(text.parse::<EgressEntry>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_entry_allows_its_hosts_alone() {
        for (entry, scheme, host, port, allowed) in [
            ("https://a.example", Scheme::Https, "a.example", 443, true),
            ("https://a.example", Scheme::Http, "a.example", 443, false),
            ("https://a.example", Scheme::Https, "a.example", 8443, false),
            ("https://a.example", Scheme::Https, "b.a.example", 443, false),
            ("https://*.a.example", Scheme::Https, "b.a.example", 443, true),
            ("https://*.a.example", Scheme::Https, "c.b.a.example", 443, true),
            ("https://*.a.example", Scheme::Https, "a.example", 443, false),
            ("https://*.a.example", Scheme::Https, "xa.example", 443, false),
            ("https://*.a.example", Scheme::Https, ".a.example", 443, false),
            ("http://10.0.0.0/8", Scheme::Http, "10.9.9.9", 80, true),
            ("http://10.0.0.0/8", Scheme::Http, "11.0.0.1", 80, false),
            ("http://[::1]", Scheme::Http, "[::1]", 80, true),
            ("http://[::1]", Scheme::Http, "::1", 80, true),
        ] {
            let entry: EgressEntry = entry.parse().unwrap();
            assert_eq!(entry.allows(scheme, host, port), allowed, "{entry} {host}");
        }
    }

    #[test]
    fn narrowing_never_widens() {
        let entries = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<EgressEntry>>();
        let granted = EgressPolicy {
            allow: entries(&["https://*.a.example", "https://b.example", "http://10.0.0.0/8"]),
            private: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let own = entries(&[
            "https://x.a.example",
            "https://*.y.a.example",
            "https://*.example",
            "https://*.b.example",
            "http://10.1.0.0/16",
            "http://0.0.0.0/0",
        ]);
        let narrowed = granted.narrowed(&own);
        assert_eq!(narrowed.allow, entries(&["https://x.a.example", "https://*.y.a.example", "http://10.1.0.0/16"]));
        assert_eq!(narrowed.private, granted.private);
        assert_eq!(EgressEntry::of(Scheme::Https, "A.example", 1).to_string(), "https://a.example:1");
        assert_eq!(EgressEntry::of(Scheme::Http, "[::1]", 80).to_string(), "http://[::1]:80");
    }
}
