//! Takes a URL apart, no further than `wasi:http` wants it; the host reads the parts strictly.

use super::Error;

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "natively nothing is sent"))]
pub struct Target {
    pub is_tls: bool,
    pub authority: String,
    pub path_with_query: String,
}

impl Target {
    /// Reads an absolute URL; what follows `#` is for browsers and left out.
    pub fn of(url: &str) -> Result<Self, Error> {
        let invalid = || Error::Invalid(format!("`{url}` is no absolute URL of `https` or `http`"));
        let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid()),
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() || url.chars().any(|character| character.is_control() || character == ' ') {
            return Err(invalid());
        }
        let path_with_query = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_tls, authority: authority.to_owned(), path_with_query })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_taken_apart() {
        for (url, is_tls, authority, path_with_query) in [
            ("https://a.example", true, "a.example", "/"),
            ("HTTP://a.example:8080/b/c?d=e#f", false, "a.example:8080", "/b/c?d=e"),
            ("https://[::1]:1?q", true, "[::1]:1", "/?q"),
        ] {
            let target = Target::of(url).unwrap();
            assert_eq!(
                (target.is_tls, &*target.authority, &*target.path_with_query),
                (is_tls, authority, path_with_query)
            );
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in
            ["", "a.example", "ftp://a.example", "https://", "https:///a", "https://a.example/b c", "http://a\n/"]
        {
            assert!(matches!(Target::of(url), Err(Error::Invalid(_))), "{url:?}");
        }
    }
}
