//! Every step is resolved: the result is evaluated, checked, and the run ends.
//!
//! A check against an `output` schema can take long, so it is not done here: the decider says what is to be checked
//! (effect `Check`) and ends the run when it is told the verdict (command `Checked`). Between the two the run has more to
//! do by itself, so that a start of the server asks again.

use super::{
    command::{Checked, Refusal},
    decision::{Answer, Effect},
    evaluate,
    turn::Turn,
};
use crate::{
    model::{
        Failure, Payload, code,
        event::{WorkflowCompleted, WorkflowFailed},
    },
    workflow::Definition,
};

/// Ends the run, or asks for the check that comes before.
pub(super) fn advance(turn: &mut Turn<'_>) {
    match result(turn) {
        Ok(result) if turn.definition.output.is_some() => turn.also(Effect::Check(turn.now, result)),
        outcome => end(turn, outcome),
    }
}

/// Ends the run with a result that was checked, if it still is the result.
pub(super) fn decide(turn: &mut Turn<'_>, checked: Checked) -> Result<Answer, Refusal> {
    if !turn.execution.is_through() {
        return Err(Refusal::Over);
    }
    // What came since may have moved the time, and a result can tell the time: then it is checked again.
    let outcome = result(turn);
    if outcome.as_ref().is_ok_and(|result| *result == checked.result) {
        end(turn, outcome.and_then(|result| checked.verdict.map(|()| result)));
    }
    Ok(Answer::Done)
}

/// Checks a result against the document's `output` schema. It can take long: not for a lane.
pub fn check_result(definition: &Definition, result: &Payload) -> Result<(), Failure> {
    let Some(schema) = &definition.output else { return Ok(()) };
    schema.check(&result.to_value()).map_err(|violations| {
        let message = "the result does not fit the document's `output` schema";
        let details = serde_json::json!({ "violations": violations });
        Failure::engine(code::OUTPUT_CONTRACT_VIOLATION, message).with_details(Payload::from_value(&details))
    })
}

fn result(turn: &mut Turn<'_>) -> Result<Payload, Failure> {
    let definition: &Definition = turn.definition;
    match &definition.result {
        Some(template) => evaluate::render(turn, template),
        None => Ok(Payload::null()),
    }
}

fn end(turn: &mut Turn<'_>, outcome: Result<Payload, Failure>) {
    match outcome {
        Ok(output) => turn.record(WorkflowCompleted { output }),
        Err(error) => turn.record(WorkflowFailed { error, unit: None }),
    }
}
