//! Who may ask at all: pages of another origin may not, however they found the address. A server that listens on loopback
//! without credentials is in reach of every page that its user opens.
//!
//! - `Origin`: a browser names it on everything that could change something; it must be the host that was asked.
//! - `Host`: a page whose name was pointed at 127.0.0.1 (DNS rebinding) is its own origin, but it cannot hide its name.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::Request,
    http::{Version, header, uri::Authority},
};

use crate::app::{Error, ErrorCode};

/// The check, made for one listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    listen: IpAddr,
}

impl Guard {
    /// Returns the check for a listener on `listen`.
    pub(super) fn new(listen: SocketAddr) -> Self {
        Self { listen: listen.ip() }
    }

    /// Refuses what comes from a page of another origin.
    pub(super) fn check(self, request: &Request) -> Result<(), Error> {
        let host = host_of(request)?;
        if let Some(host) = &host
            && self.listen.is_loopback()
            && !self.is_local(host.host())
        {
            return Err(forbidden("the Host header must name this loopback server, for instance `localhost`"));
        }
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if host.as_ref().is_some_and(|host| same_origin(origin.as_bytes(), host)) => Ok(()),
            _ => Err(forbidden("requests from pages of another origin are refused")),
        }
    }

    fn is_local(self, host: &str) -> bool {
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.listen,
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

fn forbidden(message: &str) -> Error {
    Error::new(ErrorCode::Forbidden, message)
}

/// Returns the host that was asked: `:authority`, or the one `Host` header that HTTP/1.1 demands.
fn host_of(request: &Request) -> Result<Option<Authority>, Error> {
    if let Some(authority) = request.uri().authority() {
        return Ok(Some(authority.clone()));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() == Version::HTTP_11 => Err(Error::invalid("the Host header is missing")),
        (None, _) => Ok(None),
        (Some(host), None) => match Authority::try_from(host.as_bytes()) {
            Ok(authority) if !host.as_bytes().contains(&b'@') => Ok(Some(authority)),
            _ => Err(Error::invalid("the Host header is not a host")),
        },
        (Some(_), Some(_)) => Err(Error::invalid("there is more than one Host header")),
    }
}

/// Returns whether `origin` (`https://shop.example:8443`) is a page of `host`. `null` is nobody's.
fn same_origin(origin: &[u8], host: &Authority) -> bool {
    let Ok(origin) = std::str::from_utf8(origin) else { return false };
    let (port_default, origin) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
        (Some(rest), _) => (80, rest),
        (_, Some(rest)) => (443, rest),
        _ => return false,
    };
    let Ok(origin) = Authority::try_from(origin) else { return false };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(port_default);
    origin.host().eq_ignore_ascii_case(host.host()) && port(&origin) == port(host)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn check(listen: &str, headers: &[(&str, &str)]) -> Result<(), ErrorCode> {
        let mut request = Request::builder().uri("/v1/executions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        Guard::new(listen.parse().unwrap()).check(&request).map_err(|error| error.code)
    }

    const LOOPBACK: &str = "127.0.0.1:8080";

    #[test]
    fn programs_pass() {
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST", "[::1]:8080", "127.0.0.1", "127.3.2.1:1"] {
            assert_eq!(check(LOOPBACK, &[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(check("0.0.0.0:8080", &[("host", "sandkeep.example")]), Ok(()));
        assert_eq!(check("10.0.0.7:8080", &[("host", "10.0.0.7:8080")]), Ok(()));
    }

    #[test]
    fn a_rebound_name_is_refused() {
        for host in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.7"]
        {
            assert_eq!(check(LOOPBACK, &[("host", host)]), Err(ErrorCode::Forbidden), "{host}");
        }
        for headers in
            [&[][..], &[("host", "a@localhost")], &[("host", "")], &[("host", "localhost"), ("host", "localhost")]]
        {
            assert_eq!(check(LOOPBACK, headers), Err(ErrorCode::InvalidRequest), "{headers:?}");
        }
    }

    #[test]
    fn pages_of_another_origin_are_refused() {
        let host = ("host", "localhost:8080");
        for origin in ["http://localhost:8080", "https://LOCALHOST:8080"] {
            assert_eq!(check(LOOPBACK, &[host, ("origin", origin)]), Ok(()), "{origin}");
        }
        for origin in
            ["null", "http://localhost", "http://localhost:3000", "http://evil.example", "file://", "http://a b", ""]
        {
            assert_eq!(check(LOOPBACK, &[host, ("origin", origin)]), Err(ErrorCode::Forbidden), "{origin}");
            assert_eq!(check("0.0.0.0:80", &[host, ("origin", origin)]), Err(ErrorCode::Forbidden), "{origin}");
        }
        let twice = [host, ("origin", "http://localhost:8080"), ("origin", "http://localhost:8080")];
        assert_eq!(check(LOOPBACK, &twice), Err(ErrorCode::Forbidden));
        assert_eq!(check("0.0.0.0:80", &[("host", "a.example"), ("origin", "http://a.example:80")]), Ok(()));
    }
}
