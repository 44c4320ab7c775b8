//! JSON, base64 and SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::{Outcome, make_text, take_text, wrong};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::read;
use crate::workflow::expression::value::Value;
use crate::workflow::expression::write;

/// Compact JSON text of any value that JSON can hold.
pub(super) fn json_encode(arguments: &[Value], budget: &mut Budget) -> Outcome {
    write::json_text(&arguments[0], budget).map(|text| Value::Text(text.into()))
}

/// The value of a JSON text, or of bytes that hold one.
pub(super) fn json_decode(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let bytes = octets(&arguments[0], "json_decode")?;
    budget.scan(bytes.len())?;
    let text = std::str::from_utf8(bytes).map_err(|_| Fault::failed("json_decode(): the bytes are not UTF-8"))?;
    read::parse_made(text, budget)
}

/// Standard base64 with padding, of a text's UTF-8 or of bytes.
pub(super) fn base64_encode(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let bytes = octets(&arguments[0], "base64_encode")?;
    budget.scan(bytes.len())?;
    make_text(bytes.len().div_ceil(3).saturating_mul(4), budget, || STANDARD.encode(bytes))
}

/// The bytes of standard base64; `string()` makes a text of them.
pub(super) fn base64_decode(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let text = take_text(&arguments[0], "base64_decode")?;
    budget.scan(text.len())?;
    budget.make(text.len() / 4 * 3)?;
    let bytes = STANDARD.decode(text.as_bytes());
    bytes.map(|bytes| Value::Bytes(bytes.into())).map_err(|_| Fault::failed("base64_decode(): the text is not base64"))
}

/// SHA-256 in lower-case hex, of a text's UTF-8 or of bytes.
pub(super) fn sha256(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let bytes = octets(&arguments[0], "sha256")?;
    // Hashing is slower than scanning, by about this much.
    budget.scan(bytes.len().saturating_mul(4))?;
    let digest = Sha256::digest(bytes);
    make_text(64, budget, || digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn octets<'v>(value: &'v Value, function: &str) -> Result<&'v [u8], Fault> {
    match value {
        Value::Text(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(wrong(function, "a string or bytes", other)),
    }
}
