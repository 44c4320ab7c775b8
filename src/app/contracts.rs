//! Checks payloads against the schemas of documents, off the lanes.

use super::{Error, ErrorCode};
use crate::{
    model::{Failure, Payload, code},
    workflow::{Contract, schema::Schema},
};

/// Checks a unit's input before it is handed out.
pub(super) fn check_input(contract: Option<&Contract>, input: &Payload) -> Result<(), Failure> {
    check(contract.and_then(|contract| contract.input.as_ref()), input, code::INPUT_CONTRACT_VIOLATION, "input")
}

/// Checks a unit's output before it is reported.
pub(super) fn check_output(contract: Option<&Contract>, output: &Payload) -> Result<(), Failure> {
    check(contract.and_then(|contract| contract.output.as_ref()), output, code::OUTPUT_CONTRACT_VIOLATION, "output")
}

fn check(schema: Option<&Schema>, payload: &Payload, code: &'static str, what: &str) -> Result<(), Failure> {
    let Some(schema) = schema else { return Ok(()) };
    schema.check(&payload.to_value()).map_err(|violations| {
        let message = format!("the {what} does not fit the contract of the task");
        let details = serde_json::json!({ "violations": violations });
        Failure::engine(code, message).with_details(Payload::from_value(&details))
    })
}

/// Checks what a caller sends; the answer lists what does not fit.
pub(super) fn check_request(schema: Option<&Schema>, value: &serde_json::Value, what: &str) -> Result<(), Error> {
    let Some(schema) = schema else { return Ok(()) };
    schema.check(value).map_err(|violations| {
        Error::new(ErrorCode::InputContractViolation, format!("{what} does not fit its schema"))
            .with_details(&serde_json::json!({ "violations": violations }))
    })
}
