//! From the text of a document to a [`Definition`], or to every problem at once.
//!
//! - [`parse`]: the one entrance
//! - [`Parsed`]: the definition with the text to keep
//! - [`Limits`]: how large a document may be
//!
//! What can be known before a run is refused here: `document` reads the top, `step` the steps, `task` and `policy` what
//! tasks have besides; `text` checks templates and what they name; `order` turns what steps name into numbers.

mod document;
mod fields;
mod hint;
mod keys;
mod order;
mod policy;
mod step;
mod task;
mod text;

use serde_json::Value;

pub use super::problem::{Code, Problem};
use super::{definition::Definition, pointer::Pointer};
use crate::model::{Payload, json};

/// The language versions that documents may be written in.
pub const IR_VERSIONS: &[&str] = &["sandkeep-ir/1"];

/// A document that may be registered.
#[derive(Debug)]
pub struct Parsed {
    /// What it means.
    pub definition: Definition,
    /// Its text without white space between tokens: what is stored and answered.
    pub document: Payload,
}

/// How large a document may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The text, in bytes.
    pub document_bytes: usize,
    /// Steps.
    pub steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document_bytes: 1024 * 1024, steps: 1_000 }
    }
}

/// Reads a document. Every problem is in the answer, sorted by place.
pub fn parse(text: &[u8]) -> Result<Parsed, Vec<Problem>> {
    parse_within(text, &Limits::default())
}

/// As [`parse`], with limits of the caller.
pub fn parse_within(text: &[u8], limits: &Limits) -> Result<Parsed, Vec<Problem>> {
    let value = read(text, limits).map_err(|problem| vec![problem])?;
    let definition = document::read(&value, limits)?;
    let document = Payload::parse(text).expect("it was read by the same rule");
    Ok(Parsed { definition, document })
}

/// What cannot be read as JSON has one problem, and nothing more is known of it.
fn read(text: &[u8], limits: &Limits) -> Result<Value, Problem> {
    let whole = Pointer::root();
    if text.len() > limits.document_bytes {
        let message = format!("the document has {} bytes; at most {} are allowed", text.len(), limits.document_bytes);
        return Err(Problem::new(&whole, Code::Limit, message));
    }
    json::parse(text).map_err(|error| {
        let code = if error == json::Error::TooDeep { Code::Limit } else { Code::InvalidJson };
        Problem::new(&whole, code, error.to_string())
    })
}

#[cfg(test)]
mod tests;
