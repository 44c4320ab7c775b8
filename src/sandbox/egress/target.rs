//! Where a request goes, read strictly: a host that could mean two things means nothing.

use std::net::IpAddr;

use hyper::{Method, Uri, http::uri::Authority};

use crate::model::egress::{EgressEntry, Scheme};

use super::refusal::Refusal;

/// The longest name of a host, in bytes (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// Where a request goes. The host is a name in lower case without a final dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: u16,
    /// The host as an address, where it is one.
    pub(super) address: Option<IpAddr>,
}

impl Target {
    /// Reads the target of a request.
    pub(super) fn of(method: &Method, uri: &Uri) -> Result<Self, Refusal> {
        if [Method::CONNECT, Method::TRACE].contains(method) {
            return Err(Refusal::Method);
        }
        let scheme = match uri.scheme_str() {
            Some("https") => Scheme::Https,
            Some("http") => Scheme::Http,
            _ => return Err(Refusal::Scheme),
        };
        let authority = uri.authority().ok_or(Refusal::Host("there is none"))?;
        if authority.as_str().contains('@') {
            return Err(Refusal::User);
        }
        let (host, address) = host(authority)?;
        Ok(Self { scheme, host, port: port(authority)?.unwrap_or(scheme.port()), address })
    }

    /// The entry of an allow-list that allows exactly this.
    pub(super) fn entry(&self) -> EgressEntry {
        EgressEntry::of(self.scheme, &self.host, self.port)
    }

    /// Returns the value of the `host` header.
    pub(super) fn host_header(&self) -> String {
        let host = match self.address {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.host.clone(),
        };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }
}

fn host(authority: &Authority) -> Result<(String, Option<IpAddr>), Refusal> {
    let text = authority.host();
    if let Some(inside) = text.strip_prefix('[') {
        let address = inside.strip_suffix(']').and_then(|inside| inside.parse().ok());
        let address = IpAddr::V6(address.ok_or(Refusal::Host("what stands in brackets is no IPv6 address"))?);
        return Ok((address.to_string(), Some(address)));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if let Ok(address) = name.parse() {
        return Ok((name, Some(IpAddr::V4(address))));
    }
    if name.is_empty() || name.len() > HOST_BYTES_MAX || !name.split('.').all(is_label) {
        return Err(Refusal::Host("it is no name of letters, digits and hyphens"));
    }
    // Resolvers take `127.1`, `0x7f000001` and `2130706433` for addresses.
    if name.rsplit('.').next().is_some_and(looks_numeric) {
        return Err(Refusal::Host("it looks like an address and is none"));
    }
    Ok((name, None))
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
}

fn looks_numeric(label: &str) -> bool {
    let hexadecimal =
        label.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

fn port(authority: &Authority) -> Result<Option<u16>, Refusal> {
    let after = &authority.as_str()[authority.host().len()..];
    match after.strip_prefix(':') {
        None if after.is_empty() => Ok(None),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port = digits.parse().ok().filter(|port| *port != 0);
            port.map(Some).ok_or(Refusal::Host("the port is no number from 1 to 65535"))
        }
        _ => Err(Refusal::Host("what follows it is no port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(uri: &str) -> Result<Target, Refusal> {
        Target::of(&Method::GET, &uri.parse().map_err(|_| Refusal::Host("no URI"))?)
    }

    #[test]
    fn hosts_are_canonical() {
        for (uri, host, port, header) in [
            ("https://API.Example.test/x", "api.example.test", 443, "api.example.test"),
            ("https://api.example.test./", "api.example.test", 443, "api.example.test"),
            ("http://api.example.test:8080", "api.example.test", 8080, "api.example.test:8080"),
            ("http://10.0.0.1", "10.0.0.1", 80, "10.0.0.1"),
            ("http://[::FFFF:169.254.169.254]", "::ffff:169.254.169.254", 80, "[::ffff:169.254.169.254]"),
            ("https://[0:0:0:0:0:0:0:1]:1", "::1", 1, "[::1]:1"),
            ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "xn--bcher-kva.example"),
        ] {
            let target = target(uri).unwrap();
            assert_eq!((&*target.host, target.port, &*target.host_header()), (host, port, header), "{uri}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for uri in [
            "ftp://a.example/",
            "http://api.example.test@evil.test/",
            "http://user:password@a.example/",
            "http://2130706433/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.01/",
            "http://300.1.1.1/",
            "http://a.example:0/",
            "http://a.example:65536/",
            "http://a.example:/",
            "http://a..example/",
            "http://-a.example/",
            "http://a%2eexample/",
            "http://[::1%25eth0]/",
            "http://[::1]x/",
            "http://[127.0.0.1]/",
            "http://127.0.0.1:80:80/",
            "http://./",
            "/only/a/path",
        ] {
            assert!(target(uri).is_err(), "C066 {uri}: {:?}", target(uri));
        }
        assert!(Target::of(&Method::CONNECT, &"http://a.example/".parse().unwrap()).is_err());
    }
}
