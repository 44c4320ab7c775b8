//! JSON envelopes: checked by the payload rule first, so that no key can be read in two ways, then read as what they are.
//!
//! Control routes refuse keys that they do not know; messages of workers may hold keys of a newer or older protocol.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    answer::Refused,
    body::{self, MESSAGE_BYTES_MAX, OTHER_BYTES_MAX, START_BYTES_MAX, Takes},
    nearest,
};
use crate::{
    app::{CreateTenantRequest, Error, StartRequest},
    model::{Payload, code::cut},
};

/// The longest reason that is told of a body that does not fit, in bytes.
const REASON_BYTES_MAX: usize = 300;

/// The body of a control route.
pub(super) trait Control: DeserializeOwned {
    /// The keys that it may hold.
    const KEYS: &'static [&'static str];
    /// Its largest size.
    const BYTES_MAX: usize = OTHER_BYTES_MAX;
    /// What no body at all means; none: there must be one.
    const WHEN_EMPTY: Option<&'static str> = None;
}

impl Control for StartRequest {
    const KEYS: &'static [&'static str] = &["workflow", "version", "input", "execution_id", "labels", "start_delay"];
    const BYTES_MAX: usize = START_BYTES_MAX;
}

/// Which version a start without a version uses.
#[derive(Deserialize, ToSchema)]
pub(super) struct DefaultRequest {
    /// The version.
    pub(super) version: String,
}

impl Control for DefaultRequest {
    const KEYS: &'static [&'static str] = &["version"];
}

impl Control for CreateTenantRequest {
    const KEYS: &'static [&'static str] = &["tenant", "display_name"];
}

/// Why an execution shall end.
#[derive(Deserialize, ToSchema)]
pub(super) struct CancelRequest {
    /// The reason, for people; `requested via API` where absent.
    #[serde(default)]
    pub(super) reason: Option<String>,
}

impl Control for CancelRequest {
    const KEYS: &'static [&'static str] = &["reason"];
    const WHEN_EMPTY: Option<&'static str> = Some("{}");
}

/// A body whose keys are all known.
pub(super) struct Strict<T>(pub(super) T);

impl<T: Control, S: Sync> FromRequest<S> for Strict<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refused> {
        let bytes = body::read(request, Takes::Json, T::BYTES_MAX).await?;
        let bytes = match T::WHEN_EMPTY {
            Some(text) if bytes.is_empty() => text.as_bytes(),
            _ => &bytes,
        };
        Ok(Self(strict(bytes)?))
    }
}

/// A body that its operation reads field by field, and whose keys it knows.
pub(super) struct Fields(pub(super) serde_json::Value);

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = Refused;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refused> {
        let bytes = body::read(request, Takes::Json, OTHER_BYTES_MAX).await?;
        Ok(Self(fit(&object(&bytes)?)?))
    }
}

/// A message of a worker; keys that are not known are skipped.
pub(super) struct Message<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Message<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refused> {
        let bytes = body::read(request, Takes::Json, MESSAGE_BYTES_MAX).await?;
        let envelope = object(&bytes)?;
        Ok(Self(fit(&envelope)?))
    }
}

/// The payload of a signal; no body means `{}`.
pub(super) struct Signal(pub(super) Payload);

impl<S: Sync> FromRequest<S> for Signal {
    type Rejection = Refused;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refused> {
        let bytes = body::read(request, Takes::Json, START_BYTES_MAX).await?;
        Ok(Self(if bytes.is_empty() { Payload::trusted("{}") } else { Payload::parse(&bytes)? }))
    }
}

fn strict<T: Control>(bytes: &[u8]) -> Result<T, Error> {
    let envelope = object(bytes)?;
    for key in members(&envelope).keys() {
        if !T::KEYS.contains(&key.as_str()) {
            return Err(nearest::unknown("key", key, T::KEYS));
        }
    }
    fit(&envelope)
}

/// Returns `bytes` as a JSON object within the payload rule.
fn object(bytes: &[u8]) -> Result<Payload, Error> {
    if bytes.is_empty() {
        return Err(Error::invalid("the body is empty; it must be a JSON object"));
    }
    let envelope = Payload::parse(bytes)?;
    if envelope.as_str().starts_with('{') {
        Ok(envelope)
    } else {
        Err(Error::invalid("the body must be a JSON object"))
    }
}

fn members(envelope: &Payload) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(envelope.as_str()).expect("it was checked to be a JSON object")
}

fn fit<T: DeserializeOwned>(envelope: &Payload) -> Result<T, Error> {
    serde_json::from_str(envelope.as_str()).map_err(|error| {
        let reason = cut(without_place(&error), REASON_BYTES_MAX);
        Error::invalid(match culprit::<T>(envelope, &reason) {
            Some(key) => format!("the body does not fit: `{key}`: {reason}"),
            None => format!("the body does not fit: {reason}"),
        })
    })
}

/// Returns the key whose value alone gives the same complaint.
fn culprit<T: DeserializeOwned>(envelope: &Payload, reason: &str) -> Option<String> {
    members(envelope).into_iter().find_map(|(key, value)| {
        let alone = format!("{{{}:{value}}}", serde_json::Value::from(key.as_str()));
        let error = serde_json::from_str::<T>(&alone).err()?;
        (cut(without_place(&error), REASON_BYTES_MAX) == reason && !reason.starts_with("missing field")).then_some(key)
    })
}

/// The place is one in the text without white space, which nobody sees.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{CompleteRequest, PollRequest};

    fn start(text: &str) -> Result<StartRequest, String> {
        strict(text.as_bytes()).map_err(|error| error.message)
    }

    #[test]
    fn a_start_keeps_its_input_as_it_came() {
        let request = start(r#"{ "workflow": "order", "input": { "id": 9007199254740993, "n": 1.0 } }"#).unwrap();
        assert_eq!(request.input.unwrap().as_str(), r#"{"id":9007199254740993,"n":1.0}"#);
    }

    #[test]
    fn wrong_envelopes_are_refused() {
        for (text, message) in [
            ("", "the body is empty; it must be a JSON object"),
            ("[\"order\"]", "the body must be a JSON object"),
            ("7", "the body must be a JSON object"),
            (r#"{"worklfow":"a"}"#, "unknown key `worklfow`; did you mean `workflow`?"),
            (r#"{"workflow":"a","inputs":{}}"#, "unknown key `inputs`; did you mean `input`?"),
            (r#"{"workflow":5}"#, "the body does not fit: `workflow`: invalid type: integer `5`, expected a string"),
            (
                r#"{"workflow":"a","labels":{"a":1}}"#,
                "the body does not fit: `labels`: invalid type: integer `1`, expected a string",
            ),
            ("{}", "the body does not fit: missing field `workflow`"),
        ] {
            assert_eq!(start(text).map(|_| ()), Err(message.to_owned()), "{text}");
        }
        for text in [
            r#"{"workflow":"a","workflow":"b"}"#,
            r#"{"workflow":"a","input":{"a":1,"a":2}}"#,
            r#"{"workflow":"\ud800"}"#,
        ] {
            assert!(start(text).is_err(), "C108 {text}");
        }
        let deep = format!(r#"{{"workflow":"a","input":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(start(&deep).map(|_| ()), Err("JSON is nested deeper than 128 levels".to_owned()), "C099");
    }

    #[test]
    fn known_keys_are_those_of_the_type() {
        let full = StartRequest {
            version: Some(String::new()),
            input: Some(Payload::null()),
            execution_id: Some(String::new()),
            labels: [(String::new(), String::new())].into(),
            start_delay: Some(String::new()),
            ..StartRequest::default()
        };
        let mut known = StartRequest::KEYS.to_vec();
        known.sort_unstable();
        let written = Payload::trusted(&serde_json::to_string(&full).unwrap());
        assert_eq!(members(&written).into_keys().collect::<Vec<_>>(), known);
    }

    #[test]
    fn messages_of_workers_may_hold_more() {
        let read = |text: &str| fit::<PollRequest>(&object(text.as_bytes()).unwrap());
        assert_eq!(read(r#"{"worker_session_id":"s","zone":{"a":1}}"#).unwrap().worker_session_id, "s");
        assert!(read(r#"{"worker_session_id":"s","wait_ms":"x"}"#).is_err());
        assert!(object(br#"{"token":"a","token":"b"}"#).is_err(), "C108");
        let complete: CompleteRequest = fit(&object(br#"{"token":"t","output":1.50}"#).unwrap()).unwrap();
        assert_eq!(complete.output.unwrap().as_str(), "1.50");
    }
}
