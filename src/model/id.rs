//! A newtype for every id, each checked where it enters, so that no bare string crosses a room.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that breaks the rule of the id it was meant for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{}` is not valid: {rule}", shown(.value))]
pub struct Invalid {
    /// What the text was meant to be, for instance `execution id`.
    pub kind: &'static str,
    /// The text as given.
    pub value: String,
    /// The rule in words.
    pub rule: &'static str,
}

/// A bounded, printable form of a hostile text.
fn shown(value: &str) -> String {
    let cut: String = value.chars().take(80).flat_map(char::escape_default).collect();
    if value.chars().count() > 80 { format!("{cut}…") } else { cut }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the id when `text` keeps its rule.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
                let text = text.as_ref();
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(Invalid { kind: $kind, value: text.to_owned(), rule: $rule })
                }
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                Self::new(text.as_ref()).map_err(serde::de::Error::custom)
            }
        }
    };
}

fn all(text: &str, length_max: usize, first: fn(u8) -> bool, rest: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= length_max && bytes.first().is_some_and(|byte| first(*byte)) && bytes.iter().all(|byte| rest(*byte))
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn label_name(text: &str) -> bool {
    all(text, 63, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-')
}

fn client_id(text: &str) -> bool {
    all(text, 200, alphanumeric, |byte| alphanumeric(byte) || b"._:+-".contains(&byte))
}

fn task_name(text: &str) -> bool {
    text.len() <= 128
        && text.split('.').enumerate().all(|(at, part)| {
            let inner = |byte| lower_or_digit(byte) || byte == b'_' || byte == b'-';
            if at == 0 { all(part, 128, lower, inner) } else { all(part, 128, inner, inner) }
        })
}

text_id!(
    /// Owner of everything else.
    TenantId, "tenant", "it must match [a-z0-9][a-z0-9-]{0,62}", label_name
);
text_id!(
    /// One start of a workflow, unique in its tenant. Ids of child executions hold `~`, which clients may not use.
    ExecutionId, "execution id", "it must match [A-Za-z0-9][A-Za-z0-9._:+-]{0,199}",
    |text| all(text, 200, alphanumeric, |byte| alphanumeric(byte) || b"._:+-~".contains(&byte))
);
text_id!(
    /// The name of a registered document.
    WorkflowName, "workflow name", "it must match [a-z0-9][a-z0-9._-]{0,127}",
    |text| all(text, 128, lower_or_digit, |byte| lower_or_digit(byte) || b"._-".contains(&byte))
);
text_id!(
    /// The version of a registered document, compared as text.
    WorkflowVersion, "workflow version", "it must match [A-Za-z0-9][A-Za-z0-9._+-]{0,63}",
    |text| all(text, 64, alphanumeric, |byte| alphanumeric(byte) || b"._+-".contains(&byte))
);
text_id!(
    /// `sha256:` and 64 hexadecimal digits over the canonical form of a document.
    DefinitionHash, "definition hash", "it must be `sha256:` and 64 lower-case hexadecimal digits", sha256_text
);
text_id!(
    /// The name of a kind of work.
    TaskName, "task name", "it must match [a-z][a-z0-9_-]*(\\.[a-z0-9_-]+)* and have at most 128 characters", task_name
);
text_id!(
    /// A named line of ready units.
    QueueName, "queue", "it must match [a-z0-9][a-z0-9-]{0,62}", label_name
);
text_id!(
    /// A label that a worker announces and a step may ask for.
    NodeLabel, "node", "it must match [a-z0-9][a-z0-9-]{0,62}", label_name
);
text_id!(
    /// A native process's identity.
    WorkerId, "worker id", "it must match [A-Za-z0-9][A-Za-z0-9._:+-]{0,199}", client_id
);
text_id!(
    /// One registration of a worker.
    SessionId, "worker session", "it must match [A-Za-z0-9][A-Za-z0-9._:+-]{0,199}", client_id
);
text_id!(
    /// The name of an uploaded component, in its tenant.
    ModuleName, "module", "it must match [a-z0-9][a-z0-9-]{0,62}", label_name
);
text_id!(
    /// A movable name for a digest of a module.
    Alias, "alias", "it must match [a-z0-9][a-z0-9-]{0,62}", label_name
);
text_id!(
    /// `sha256:` and 64 hexadecimal digits over the bytes of a component.
    Digest, "digest", "it must be `sha256:` and 64 lower-case hexadecimal digits", sha256_text
);
text_id!(
    /// The id of a step in its document.
    StepId, "step id", "it must match [a-z][a-z0-9_]{0,63}",
    |text| all(text, 64, lower, |byte| lower_or_digit(byte) || byte == b'_')
);
text_id!(
    /// One instance of a step: `charge`, `lines[3].charge`, `compensate:charge`.
    UnitKey, "unit", "it must have 1 to 1,024 printable ASCII characters without a blank or a slash",
    |text| all(text, 1024, |byte| byte.is_ascii_graphic() && byte != b'/', |byte| byte.is_ascii_graphic() && byte != b'/')
);
text_id!(
    /// The name of a signal or of a query.
    SignalName, "signal name", "it must match [a-z][a-z0-9_]{0,63}",
    |text| all(text, 64, lower, |byte| lower_or_digit(byte) || byte == b'_')
);
text_id!(
    /// The version of a task's contract: `1`, `1.2` or `1.2.3`.
    ContractVersion, "contract version", "it must be one to three numbers joined by dots",
    |text| contract_parts(text).is_some()
);

fn sha256_text(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Reads `1.2` as (1, 2, 0).
fn contract_parts(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = [0u32; 3];
    for (at, part) in text.split('.').enumerate() {
        let canonical = part == "0" || !part.starts_with('0');
        if part.is_empty() || !canonical || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *parts.get_mut(at)? = part.parse().ok()?;
    }
    Some((parts[0], parts[1], parts[2]))
}

impl ContractVersion {
    /// Returns whether work asked for as `asked` may be done by one who offers `self`: same major, not older.
    pub fn serves(&self, asked: &ContractVersion) -> bool {
        let offered = contract_parts(self.as_str()).expect("checked when it was made");
        let asked = contract_parts(asked.as_str()).expect("checked when it was made");
        offered.0 == asked.0 && offered >= asked
    }
}

impl TenantId {
    /// The tenant of everything that names none.
    pub fn default_tenant() -> Self {
        Self("default".into())
    }
}

impl QueueName {
    /// The queue of steps and workers that name none.
    pub fn default_queue() -> Self {
        Self("default".into())
    }
}

impl Alias {
    /// The alias that an upload moves to itself.
    pub fn live() -> Self {
        Self("live".into())
    }
}

impl ExecutionId {
    /// Returns the id of an execution that a client may choose: `~` is kept for children.
    pub fn from_client(text: &str) -> Result<Self, Invalid> {
        if client_id(text) {
            Ok(Self(text.into()))
        } else {
            Err(Invalid {
                kind: "execution id",
                value: text.to_owned(),
                rule: "it must match [A-Za-z0-9][A-Za-z0-9._:+-]{0,199}",
            })
        }
    }
}

impl From<&StepId> for UnitKey {
    fn from(step: &StepId) -> Self {
        Self(step.0.clone())
    }
}

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256_hex(bytes).into())
    }
}

/// Returns `sha256:` and the hexadecimal digest of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&sha256(bytes)))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("half a byte is one digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// One handing-over of an attempt: 16 random bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId(pub u128);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DeliveryId {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid =
            || Invalid { kind: "delivery id", value: text.to_owned(), rule: "it must be 32 hexadecimal digits" };
        if text.len() != 32 {
            return Err(invalid());
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| invalid())
    }
}

impl Serialize for DeliveryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeliveryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The full name of one run: what keys of rows begin with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The owner.
    pub tenant: TenantId,
    /// The execution.
    pub execution: ExecutionId,
    /// Its generation, from 1.
    pub run: u32,
}

/// The full name of one unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitRef {
    /// The run that holds the unit.
    pub run: RunKey,
    /// The unit in its run.
    pub unit: UnitKey,
}

impl UnitRef {
    /// Returns the idempotency key: the same for every attempt and delivery of the unit, and for no other unit.
    pub fn idempotency_key(&self) -> String {
        let Self { run, unit } = self;
        let name = format!("{}/{}/{}/{unit}", run.tenant, run.execution, run.run);
        hex(&sha256(name.as_bytes())[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_published_rule() {
        let long = "a".repeat(201);
        for (text, good) in [
            ("a", true),
            ("A-1._:+", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a\0b", false),
            ("a~b", false),
            (long.as_str(), false),
        ] {
            assert_eq!(ExecutionId::from_client(text).is_ok(), good, "{text:?}");
        }
        for (text, good) in [
            ("payments.charge", true),
            ("a", true),
            ("a.b-c.d_e", true),
            (".a", false),
            ("a.", false),
            ("1a", false),
            ("a.1", true),
            ("A", false),
        ] {
            assert_eq!(TaskName::new(text).is_ok(), good, "{text:?}");
        }
        for text in ["..", "../x", "..%2f..%2fx", "a/../../b", "C:\\x", "CON", "a\0", ""] {
            assert!(ModuleName::new(text).is_err(), "C094 {text:?}");
        }
    }

    #[test]
    fn a_newer_minor_serves_an_older_ask() {
        for (offered, asked, serves) in [
            ("1.4.0", "1.2", true),
            ("1.2", "1.2.0", true),
            ("1.1", "1.2", false),
            ("2.0", "1.2", false),
            ("1", "1", true),
            ("1.10", "1.9", true),
        ] {
            let offered = ContractVersion::new(offered).unwrap();
            assert_eq!(offered.serves(&ContractVersion::new(asked).unwrap()), serves, "{offered} for {asked}");
        }
        for text in ["", "1.", "1.2.3.4", "v1", "01", "-1", "99999999999"] {
            assert!(ContractVersion::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_id_is_shown_cut_and_escaped() {
        let error = ExecutionId::from_client(&"\u{1b}".repeat(300)).unwrap_err();
        assert!(error.to_string().len() < 700, "{error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}
