//! What commands read of units.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::view::FailureView;

use super::{
    Error,
    client::{Client, To},
};

/// The most units that a command looks at.
pub(super) const UNITS_MAX: u64 = 10_000;

/// The state of a unit.
#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    /// Its status.
    pub(super) status: String,
    /// The attempt it is at.
    pub(super) attempt: u32,
    /// Whether an earlier delivery of it cannot be ruled out.
    #[serde(default)]
    pub(super) redelivery: bool,
    /// `module` or `worker`.
    pub(super) target: Option<String>,
    /// The module that serves it.
    pub(super) module: Option<String>,
    /// The worker that has or had it.
    pub(super) worker_id: Option<String>,
    /// Why it failed for good.
    pub(super) error: Option<FailureView>,
    /// Why its last attempt failed.
    pub(super) last_error: Option<FailureView>,
    /// When it was handed out.
    pub(super) dispatched_at_ms: Option<i64>,
    /// When the attempt's time ends.
    pub(super) deadline_ms: Option<i64>,
    /// When its timer is due.
    pub(super) wake_at_ms: Option<i64>,
}

impl Unit {
    /// Returns whether nothing more will happen to it.
    pub(super) fn is_resolved(&self) -> bool {
        matches!(self.status.as_str(), "SUCCEEDED" | "SKIPPED" | "FAILED" | "CANCELLED")
    }

    /// Returns who serves it, in words.
    pub(super) fn server(&self) -> String {
        match (&self.worker_id, &self.module, self.target.as_deref()) {
            (Some(worker), _, _) => format!("worker {worker}"),
            (None, Some(module), _) => format!("module {}", short(module)),
            (None, None, Some(target)) => target.to_owned(),
            (None, None, None) => String::new(),
        }
    }

    /// Returns its last failure in one line.
    pub(super) fn failure(&self) -> String {
        let failure = self.error.as_ref().or(self.last_error.as_ref());
        failure.map(|failure| format!("{}: {}", failure.code, failure.message)).unwrap_or_default()
    }
}

/// Cuts every digest in a text to the eight digits that people compare.
pub(super) fn short(text: &str) -> String {
    const MARK: &str = "sha256:";
    let mut parts = text.split(MARK);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let kept = if digits == 64 { 8 } else { digits };
        shown.push_str(MARK);
        shown.push_str(&part[..kept]);
        shown.push_str(&part[digits..]);
    }
    shown
}

/// Returns the units of an execution in document order.
pub(super) async fn find(client: &Client, id: &str) -> Result<Vec<(String, Unit)>, Error> {
    let mut found: Vec<(String, Unit)> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let to = To::path(&["executions", id, "units"]).with("limit", 500).with_some("cursor", cursor);
        let answer = client.get(&to).await?;
        let body: BTreeMap<String, Box<RawValue>> = client.read(&answer)?;
        let units: Ordered =
            client.read(body.get("units").ok_or_else(|| client.odd("its answer has no `units`".to_owned()))?)?;
        let next: Option<String> = body.get("next_cursor").map(|next| client.read(next)).transpose()?.flatten();
        let none = units.0.is_empty();
        found.extend(units.0);
        if next.is_none() || none || found.len() as u64 >= UNITS_MAX {
            return Ok(found);
        }
        cursor = next;
    }
}

/// Units by key, in the order of the answer: document order.
struct Ordered(Vec<(String, Unit)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Units;
        impl<'de> serde::de::Visitor<'de> for Units {
            type Value = Ordered;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("units by key")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut units = Vec::new();
                while let Some(unit) = map.next_entry()? {
                    units.push(unit);
                }
                Ok(Ordered(units))
            }
        }
        deserializer.deserialize_map(Units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_cut_and_nothing_else() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        for (text, shown) in [
            (format!("orders@{digest}"), "orders@sha256:01234567"),
            (
                format!("{{\"a\":\"{digest}\",\"b\":\"{digest}\"}}"),
                "{\"a\":\"sha256:01234567\",\"b\":\"sha256:01234567\"}",
            ),
            ("sha256:abc sha256:".to_owned(), "sha256:abc sha256:"),
            ("orders".to_owned(), "orders"),
        ] {
            assert_eq!(short(&text), shown);
        }
    }

    #[test]
    fn units_keep_their_order() {
        let text = r#"{"z":{"status":"SUCCEEDED","attempt":1},"a":{"status":"PENDING","attempt":0,"new":1}}"#;
        let Ordered(units) = serde_json::from_str(text).unwrap();
        assert_eq!(units.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        assert!(units[0].1.is_resolved() && !units[1].1.is_resolved());
    }
}
