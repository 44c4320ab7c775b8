//! `crypto.hmac`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sandkeep_sdk::TaskError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// What to sign, or the signature to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// The key that both sides know.
    key: String,
    /// The message, as a text.
    message: String,
    /// How the signature is written; `hex` when absent.
    #[serde(default)]
    encoding: Encoding,
    /// A signature to compare with, in constant time.
    #[serde(default)]
    verify: Option<String>,
}

/// How bytes are written as a text.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Two digits a byte, in lower case.
    #[default]
    Hex,
    /// Base64 with padding.
    Base64,
}

/// The signature, or whether the one given is right.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Signed {
    /// The signature; absent when one was to be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    /// Whether the signature given is right; absent when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
}

/// Signs a message by HMAC with SHA-256, or checks a signature. The right signature of a message is not told to whoever
/// gives a wrong one.
pub fn hmac(input: Signing) -> Result<Signed, TaskError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(input.key.as_bytes())
        .map_err(|error| TaskError::permanent("INVALID_KEY", error.to_string()))?;
    mac.update(input.message.as_bytes());
    match input.verify {
        Some(given) => {
            let valid = input.encoding.read(&given).is_some_and(|given| mac.verify_slice(&given).is_ok());
            Ok(Signed { signature: None, valid: Some(valid) })
        }
        None => {
            let signature = input.encoding.write(&mac.finalize().into_bytes());
            Ok(Signed { signature: Some(signature), valid: None })
        }
    }
}

impl Encoding {
    fn write(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Base64 => STANDARD.encode(bytes),
        }
    }

    fn read(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => {
                let pairs = text.as_bytes().chunks(2);
                pairs.map(|pair| <&[u8; 2]>::try_from(pair).ok().and_then(byte)).collect()
            }
            Self::Base64 => STANDARD.decode(text).ok(),
        }
    }
}

fn byte(pair: &[u8; 2]) -> Option<u8> {
    let digit = |at: usize| char::from(pair[at]).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(0)? << 4 | digit(1)?)
}

#[cfg(test)]
mod tests {
    use sandkeep_sdk::run;
    use serde_json::{Value, json};

    use crate::TASKS;

    fn call(input: Value) -> Value {
        serde_json::from_str(&run(TASKS, "crypto.hmac", &input.to_string()).unwrap()).unwrap()
    }

    /// RFC 4231, test case 2.
    const HEX: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    const BASE64: &str = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";

    #[test]
    fn signature_is_the_standards() {
        let input = json!({"key": "Jefe", "message": "what do ya want for nothing?"});
        assert_eq!(call(input), json!({ "signature": HEX }));
        let input = json!({"key": "Jefe", "message": "what do ya want for nothing?", "encoding": "base64"});
        assert_eq!(call(input), json!({ "signature": BASE64 }));
    }

    #[test]
    fn given_signature_is_right_or_wrong() {
        for (encoding, verify, valid) in [
            ("hex", HEX, true),
            ("hex", &*HEX.to_uppercase(), true),
            ("base64", BASE64, true),
            ("hex", BASE64, false),
            ("hex", &HEX[..62], false),
            ("hex", &HEX[..63], false),
            ("hex", "", false),
            ("hex", "éé", false),
            ("base64", "????", false),
        ] {
            let message = "what do ya want for nothing?";
            let input = json!({"key": "Jefe", "message": message, "encoding": encoding, "verify": verify});
            assert_eq!(call(input), json!({ "valid": valid }), "{encoding} {verify}");
        }
    }
}
