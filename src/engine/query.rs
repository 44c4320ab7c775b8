//! Answers a declared query over a state, without changing it.

use super::evaluate::State;
use crate::{
    model::{Execution, Payload, SignalName, Timestamp},
    workflow::{Definition, expression::Budget},
};

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The document declares no such query.
    #[error("the workflow declares no query `{0}`")]
    Unknown(SignalName),
    /// Its expression failed.
    #[error("{message} (at {pointer})")]
    Expression {
        /// Where it stands in the document.
        pointer: String,
        /// What is wrong.
        message: String,
    },
}

/// Evaluates a query.
pub fn query(
    execution: &Execution,
    definition: &Definition,
    name: &SignalName,
    now: Timestamp,
) -> Result<Payload, QueryError> {
    let template = definition.queries.get(name).ok_or_else(|| QueryError::Unknown(name.clone()))?;
    let state = State { execution, plan: &definition.plan, now: now.max(execution.updated_at) };
    template
        .render(&state, &mut Budget::default())
        .map(|text| Payload::trusted(&text))
        .map_err(|error| QueryError::Expression { pointer: error.pointer, message: error.message })
}
