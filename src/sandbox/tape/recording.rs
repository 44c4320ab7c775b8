//! What the host answered an attempt, in the form in which it is kept.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use wasmtime_wasi_http::Error;

/// What the host answered an attempt, in the order in which it was asked. Serialised as JSON that a person can read and
/// change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recording {
    /// Whether it is all of it: what came after the size limit was reached is missing.
    pub complete: bool,
    /// What all random bytes come from.
    pub seed: Seed,
    /// What the wall clock said, in nanoseconds since 1970.
    pub wall_ns: Vec<u64>,
    /// What the monotonic clock said, in nanoseconds.
    pub monotonic_ns: Vec<u64>,
    /// Of each wait, which of the handles were ready.
    pub ready: Vec<Vec<u32>>,
    /// How often the attempt was told that it is not cancelled, before it was told that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_after: Option<u64>,
    /// The requests that it sent.
    pub http: Vec<Exchange>,
}

/// What random bytes come from: a key of ChaCha20. In JSON base64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

/// A request, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Its method.
    pub method: String,
    /// Where it went.
    pub url: String,
    /// What came; none: nothing, until the attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answered>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// A response.
    Response(Response),
    /// None: it failed.
    Error(Broken),
}

/// A response, as far as the attempt read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names and values, in order.
    #[serde(default)]
    pub headers: Vec<(String, Part)>,
    /// The body, in the parts in which it came.
    #[serde(default)]
    pub body: Vec<Part>,
    /// Names and values behind the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<(String, Part)>,
    /// How the body ended.
    #[serde(default)]
    pub end: End,
}

/// How a body ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of it came.
    #[default]
    Whole,
    /// It was not read to its end.
    Unread,
    /// It broke.
    Error(Broken),
}

/// Bytes: a text where they are one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// A text.
    Text(String),
    /// Anything else.
    Bytes {
        /// In base64.
        base64: String,
    },
}

/// An error of `wasi:http`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broken {
    /// The name of the error in `wasi:http`, such as `connection-refused`.
    pub code: String,
    /// What is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its number: a size, or an alert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
        let bytes = bytes.try_into().map_err(|_| de::Error::custom("a seed has 32 bytes"))?;
        Ok(Self(bytes))
    }
}

impl Part {
    /// Returns bytes as a part.
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { base64: STANDARD.encode(bytes) },
        }
    }

    /// Returns its bytes; none where it is not base64.
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Text(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
            Self::Bytes { base64 } => STANDARD.decode(base64).ok().map(Bytes::from),
        }
    }

    /// Returns about how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            // A character that JSON escapes takes six bytes at most.
            Self::Text(text) => text.len() + 5 * text.bytes().filter(|byte| needs_escape(*byte)).count(),
            Self::Bytes { base64 } => base64.len() + 16,
        }
    }
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Returns headers as they are kept.
pub(super) fn headers_of(headers: &HeaderMap) -> Vec<(String, Part)> {
    headers.iter().map(|(name, value)| (name.to_string(), Part::of(value.as_bytes()))).collect()
}

/// Returns headers as they were; what cannot be one is left out.
pub(super) fn to_headers(kept: &[(String, Part)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in kept {
        let name = name.parse::<HeaderName>();
        let value = value.bytes().and_then(|bytes| HeaderValue::from_maybe_shared(bytes).ok());
        if let (Ok(name), Some(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Makes an error.
type Make = fn() -> Error;

/// Errors without anything to say, by their names in `wasi:http`.
const PLAIN: [(&str, Make); 24] = [
    ("DNS-timeout", || Error::DnsTimeout),
    ("destination-not-found", || Error::DestinationNotFound),
    ("destination-unavailable", || Error::DestinationUnavailable),
    ("destination-IP-prohibited", || Error::DestinationIpProhibited),
    ("destination-IP-unroutable", || Error::DestinationIpUnroutable),
    ("connection-refused", || Error::ConnectionRefused),
    ("connection-terminated", || Error::ConnectionTerminated),
    ("connection-timeout", || Error::ConnectionTimeout),
    ("connection-read-timeout", || Error::ConnectionReadTimeout),
    ("connection-write-timeout", || Error::ConnectionWriteTimeout),
    ("connection-limit-reached", || Error::ConnectionLimitReached),
    ("TLS-protocol-error", || Error::TlsProtocolError),
    ("TLS-certificate-error", || Error::TlsCertificateError),
    ("HTTP-request-denied", || Error::HttpRequestDenied),
    ("HTTP-request-length-required", || Error::HttpRequestLengthRequired),
    ("HTTP-request-method-invalid", || Error::HttpRequestMethodInvalid),
    ("HTTP-request-URI-invalid", || Error::HttpRequestUriInvalid),
    ("HTTP-request-URI-too-long", || Error::HttpRequestUriTooLong),
    ("HTTP-response-incomplete", || Error::HttpResponseIncomplete),
    ("HTTP-response-timeout", || Error::HttpResponseTimeout),
    ("HTTP-upgrade-failed", || Error::HttpUpgradeFailed),
    ("HTTP-protocol-error", || Error::HttpProtocolError),
    ("loop-detected", || Error::LoopDetected),
    ("configuration-error", || Error::ConfigurationError),
];

const DNS: &str = "DNS-error";
const TLS_ALERT: &str = "TLS-alert-received";
const REQUEST_BODY: &str = "HTTP-request-body-size";
const RESPONSE_BODY: &str = "HTTP-response-body-size";
const RESPONSE_HEADERS: &str = "HTTP-response-header-section-size";
const INTERNAL: &str = "internal-error";

impl Broken {
    /// Returns an error by its name in `wasi:http`; none: there is none of this name.
    pub fn named(code: &str) -> Option<Self> {
        let special = [DNS, TLS_ALERT, REQUEST_BODY, RESPONSE_BODY, RESPONSE_HEADERS, INTERNAL];
        let known = PLAIN.iter().map(|(name, _)| *name).chain(special).find(|known| known.eq_ignore_ascii_case(code));
        known.map(|code| Self { code: code.to_owned(), text: None, number: None })
    }

    /// Returns an error as it is kept.
    pub(super) fn of(error: &Error) -> Self {
        let broken =
            |code: &str, text: Option<&String>, number| Self { code: code.to_owned(), text: text.cloned(), number };
        let discriminant = std::mem::discriminant(error);
        match error {
            Error::DnsError { rcode, info_code } => broken(DNS, rcode.as_ref(), info_code.map(u64::from)),
            Error::TlsAlertReceived { alert_id, alert_message } => {
                broken(TLS_ALERT, alert_message.as_ref(), alert_id.map(u64::from))
            }
            Error::HttpRequestBodySize(size) => broken(REQUEST_BODY, None, *size),
            Error::HttpResponseBodySize(size) => broken(RESPONSE_BODY, None, *size),
            Error::HttpResponseHeaderSectionSize(size) => broken(RESPONSE_HEADERS, None, size.map(u64::from)),
            Error::InternalError(text) => broken(INTERNAL, text.as_ref(), None),
            other => match PLAIN.iter().find(|(_, make)| std::mem::discriminant(&make()) == discriminant) {
                Some((code, _)) => broken(code, None, None),
                None => broken(INTERNAL, Some(&other.to_string()), None),
            },
        }
    }

    /// Returns the error that it was.
    pub(super) fn to_error(&self) -> Error {
        let Self { text, number, .. } = self;
        match self.code.as_str() {
            DNS => Error::DnsError { rcode: text.clone(), info_code: number.and_then(|number| number.try_into().ok()) },
            TLS_ALERT => Error::TlsAlertReceived {
                alert_id: number.and_then(|number| number.try_into().ok()),
                alert_message: text.clone(),
            },
            REQUEST_BODY => Error::HttpRequestBodySize(*number),
            RESPONSE_BODY => Error::HttpResponseBodySize(*number),
            RESPONSE_HEADERS => Error::HttpResponseHeaderSectionSize(number.and_then(|number| number.try_into().ok())),
            code => match PLAIN.iter().find(|(name, _)| *name == code) {
                Some((_, make)) => make(),
                None => Error::InternalError(text.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_same_after_they_were_kept() {
        let special = [
            Error::DnsError { rcode: Some("NXDOMAIN".to_owned()), info_code: Some(3) },
            Error::TlsAlertReceived { alert_id: Some(40), alert_message: Some("HandshakeFailure".to_owned()) },
            Error::HttpRequestBodySize(Some(7)),
            Error::HttpResponseBodySize(None),
            Error::HttpResponseHeaderSectionSize(Some(9)),
            Error::InternalError(Some("denied".to_owned())),
        ];
        for error in special.into_iter().chain(PLAIN.iter().map(|(_, make)| make())) {
            let kept = serde_json::to_string(&Broken::of(&error)).unwrap();
            let again = serde_json::from_str::<Broken>(&kept).unwrap().to_error();
            assert_eq!(format!("{error:?}"), format!("{again:?}"), "{kept}");
        }
        assert_eq!(Broken::named("connection-REFUSED").unwrap().code, "connection-refused");
        assert_eq!(Broken::named("nothing"), None);
    }

    #[test]
    fn bytes_are_texts_where_they_can_be() {
        for bytes in [&b"plain \xc3\xa9\n"[..], &[0xff, 0, 1], b""] {
            let kept = serde_json::to_string(&Part::of(bytes)).unwrap();
            let part: Part = serde_json::from_str(&kept).unwrap();
            assert_eq!(part.bytes().unwrap(), bytes, "{kept}");
            assert!(part.size() + 2 >= kept.len(), "{kept}");
        }
        assert_eq!(Part::Bytes { base64: "*".to_owned() }.bytes(), None);
    }

    #[test]
    fn a_recording_reads_back() {
        let answer = Response {
            status: 200,
            headers: vec![("a".to_owned(), Part::of(b"\xff"))],
            body: vec![Part::of(b"{}")],
            trailers: Vec::new(),
            end: End::Error(Broken::named("HTTP-response-timeout").unwrap()),
        };
        let exchange = |answer| Exchange { method: "GET".to_owned(), url: "https://a.example/".to_owned(), answer };
        let recording = Recording {
            complete: true,
            seed: Seed([7; 32]),
            wall_ns: vec![u64::MAX],
            monotonic_ns: vec![1],
            ready: vec![vec![0, 2], vec![]],
            cancelled_after: Some(3),
            http: vec![exchange(Some(Answered::Response(answer))), exchange(None)],
        };
        let text = serde_json::to_string(&recording).unwrap();
        assert_eq!(serde_json::from_str::<Recording>(&text).unwrap(), recording);
        assert!(serde_json::from_str::<Recording>(r#"{"seed":"AAAA"}"#).is_err());
    }
}
