//! Headers of requests: those that speak to the next hop are the host's to set.

use hyper::{
    HeaderMap,
    header::{CONNECTION, HOST, HeaderName, HeaderValue},
};

use super::target::Target;

/// What a guest may not set, beside the rest of [`is_forbidden`].
const FORBIDDEN: [&str; 12] = [
    "connection",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a header belongs to the connection and not to the request.
pub(super) fn is_forbidden(name: &HeaderName) -> bool {
    FORBIDDEN.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// Takes out what is the host's to say, and says it.
pub(super) fn prepare(headers: &mut HeaderMap, target: &Target) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let forbidden: Vec<HeaderName> = headers.keys().filter(|name| is_forbidden(name)).cloned().collect();
    for name in named.iter().chain(&forbidden) {
        headers.remove(name);
    }
    let host = HeaderValue::try_from(target.host_header()).expect("a canonical host is visible ASCII");
    headers.insert(HOST, host);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Method;

    #[test]
    fn what_belongs_to_the_connection_is_taken_out() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("accept", "*/*"),
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("host", "evil.test"),
            ("te", "trailers"),
            ("proxy-anything", "1"),
            ("expect", "100-continue"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let target = Target::of(&Method::GET, &"https://a.example:8443/".parse().unwrap()).unwrap();
        prepare(&mut headers, &target);
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (&headers["accept"], &headers["host"]),
            (&"*/*".parse().unwrap(), &"a.example:8443".parse().unwrap())
        );
    }
}
