//! Answers to the requests of a module, written by hand.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::Value;

use crate::sandbox::{Answered, Broken, End, Exchange, Part, Response};

use super::{Error, input};

/// The largest file of answers, in bytes.
const STUBS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer to every request of one method to one address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stub {
    #[serde(default = "get")]
    method: String,
    url: String,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A text as it is; anything else as JSON.
    body: Option<Value>,
    body_base64: Option<String>,
    /// In place of a response.
    error: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Reads a file of answers.
pub(super) fn read(path: &Path) -> Result<Vec<Exchange>, Error> {
    let bytes = input::file(path, STUBS_BYTES_MAX)?;
    parse(&bytes).map_err(|problem| Error::Usage(format!("`{}` is not a list of answers: {problem}", path.display())))
}

fn parse(bytes: &[u8]) -> Result<Vec<Exchange>, String> {
    let stubs: Vec<Stub> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let numbered = stubs.into_iter().enumerate();
    numbered.map(|(at, stub)| exchange(stub).map_err(|(field, problem)| format!("/{at}/{field}: {problem}"))).collect()
}

fn exchange(stub: Stub) -> Result<Exchange, (&'static str, String)> {
    let Stub { method, url, status, headers, body, body_base64, error } = stub;
    let is_address = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if !is_address(&url) || reqwest::Url::parse(&url).is_err() {
        return Err(("url", format!("`{url}` is not an address that begins with `https://` or `http://`")));
    }
    if let Some(name) = error {
        if status.is_some() || body.is_some() || body_base64.is_some() || !headers.is_empty() {
            return Err(("error", "an error has no response beside it".to_owned()));
        }
        let broken = Broken::named(&name).ok_or_else(|| {
            ("error", format!("`{name}` is not an error of `wasi:http`, such as `connection-refused` or `DNS-error`"))
        })?;
        return Ok(Exchange { method, url, answer: Some(Answered::Error(broken)) });
    }
    let status = status.unwrap_or(200);
    if !(100..=999).contains(&status) {
        return Err(("status", format!("{status} is not between 100 and 999")));
    }
    let is_json = body.as_ref().is_some_and(|body| !body.is_string());
    let part = match (body, body_base64) {
        (Some(_), Some(_)) => return Err(("body_base64", "there is a `body` too".to_owned())),
        (Some(Value::String(text)), None) => Some(Part::Text(text)),
        (Some(value), None) => Some(Part::Text(value.to_string())),
        (None, Some(base64)) => Some(Part::Bytes { base64 }),
        (None, None) => None,
    };
    if part.as_ref().is_some_and(|part| part.bytes().is_none()) {
        return Err(("body_base64", "it is not base64".to_owned()));
    }
    let mut named: Vec<_> = headers.into_iter().map(|(name, value)| (name, Part::Text(value))).collect();
    if is_json && !named.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        named.push(("content-type".to_owned(), Part::Text("application/json".to_owned())));
    }
    let response =
        Response { status, headers: named, body: part.into_iter().collect(), trailers: Vec::new(), end: End::Whole };
    Ok(Exchange { method, url, answer: Some(Answered::Response(response)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_the_wrong_field_is_named() {
        let good = br#"[{"url": "https://a.example/x", "body": {"n": 1}},
            {"method": "POST", "url": "http://b.example", "status": 503, "body": "busy", "headers": {"retry-after": "1"}},
            {"url": "https://c.example", "error": "connection-refused"}]"#;
        let read = parse(good).unwrap();
        let Some(Answered::Response(json)) = &read[0].answer else { panic!("it is a response") };
        assert_eq!((json.status, &json.body[0]), (200, &Part::Text("{\"n\":1}".to_owned())));
        assert_eq!(json.headers[0].0, "content-type");
        let Some(Answered::Response(busy)) = &read[1].answer else { panic!("it is a response") };
        assert_eq!((busy.status, busy.headers.len(), &read[1].method[..]), (503, 1, "POST"));
        assert!(matches!(read[2].answer, Some(Answered::Error(_))));
        for (wrong, place) in [
            (r#"[{"url": "a.example"}]"#, "/0/url"),
            (r#"[{"url": "https://a.example"}, {"url": "https://a.example", "error": "none"}]"#, "/1/error"),
            (r#"[{"url": "https://a.example", "error": "DNS-error", "status": 200}]"#, "/0/error"),
            (r#"[{"url": "https://a.example", "status": 7}]"#, "/0/status"),
            (r#"[{"url": "https://a.example", "body_base64": "*"}]"#, "/0/body_base64"),
            (r#"[{"url": "https://a.example", "body": 1, "body_base64": ""}]"#, "/0/body_base64"),
            (r#"[{"url": "https://a.example", "bodi": 1}]"#, "unknown field `bodi`"),
            (r#"{}"#, "expected a sequence"),
        ] {
            let problem = parse(wrong.as_bytes()).unwrap_err();
            assert!(problem.contains(place), "{wrong}: {problem}");
        }
    }
}
