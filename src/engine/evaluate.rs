//! Evaluates the templates of a document over the state.

use super::turn::Turn;
use crate::{
    model::{Execution, Failure, Millis, Payload, Plan, StepIndex, Timestamp, Unit, code, id::StepId},
    workflow::{
        Span,
        expression::{self, Budget, Expression, Operand, Scope, StepField, Template},
    },
};

/// What the expressions of a run may read.
pub(super) struct State<'a> {
    pub(super) execution: &'a Execution,
    pub(super) plan: &'a Plan,
    pub(super) now: Timestamp,
}

impl State<'_> {
    fn unit(&self, id: &str) -> Option<&Unit> {
        let step = StepId::new(id).ok()?;
        let index: StepIndex = self.plan.step_of(&(&step).into())?;
        Some(self.execution.unit(index))
    }
}

impl Scope for State<'_> {
    fn root(&self, name: &str) -> Option<Operand<'_>> {
        match name {
            "input" => Some(Operand::Json(self.execution.created().input.as_str())),
            "now_ms" => Some(Operand::Int(self.now.0)),
            "execution" => {
                let created = self.execution.created();
                let started_at = self.execution.started_at.map_or(Operand::Null, |at| Operand::Int(at.0));
                Some(Operand::Record(vec![
                    ("id", Operand::Text(self.execution.key.execution.as_str())),
                    ("workflow", Operand::Text(created.workflow.as_str())),
                    ("version", Operand::Text(created.version.as_str())),
                    ("run", Operand::Int(i64::from(self.execution.key.run))),
                    ("started_at_ms", started_at),
                ]))
            }
            _ => None,
        }
    }

    fn step(&self, id: &str, field: StepField) -> Option<Operand<'_>> {
        let unit = self.unit(id)?;
        Some(match field {
            StepField::Output => unit.output.as_ref().map_or(Operand::Null, |output| Operand::Json(output.as_str())),
            StepField::Status => Operand::Text(unit.status.as_str()),
            StepField::Error => unit.more().and_then(|more| more.error.as_ref()).map_or(Operand::Null, failure),
            StepField::FinishedAtMs => unit.finished_at.map_or(Operand::Null, |at| Operand::Int(at.0)),
        })
    }
}

fn failure(failure: &Failure) -> Operand<'_> {
    Operand::Record(vec![
        ("code", Operand::Text(failure.code.as_str())),
        ("message", Operand::Text(&failure.message)),
        ("details", failure.details.as_ref().map_or(Operand::Null, |details| Operand::Json(details.as_str()))),
    ])
}

/// Says how an expression failed, with its pointer in `details`.
pub(super) fn expression_error(error: &expression::Error) -> Failure {
    let details = serde_json::json!({ "pointer": error.pointer });
    Failure::engine(code::EXPRESSION_ERROR, error.message.clone()).with_details(Payload::from_value(&details))
}

/// Renders a template into a payload within the payload limit.
pub(super) fn render(turn: &mut Turn<'_>, template: &Template) -> Result<Payload, Failure> {
    let mut budget = Budget::default();
    let state = State { execution: turn.execution, plan: &turn.definition.plan, now: turn.now };
    let text = template.render(&state, &mut budget).map_err(|error| expression_error(&error));
    turn.charge(&budget);
    let payload = Payload::trusted(&text?);
    let bytes_max = turn.facts.limits.payload_bytes;
    if payload.size_bytes() > bytes_max {
        let message = format!("the value has {} bytes; at most {bytes_max} are allowed", payload.size_bytes());
        return Err(Failure::engine(code::PAYLOAD_TOO_LARGE, message));
    }
    Ok(payload)
}

/// Evaluates a step's `when`.
pub(super) fn holds(turn: &mut Turn<'_>, when: &Expression) -> Result<bool, Failure> {
    let mut budget = Budget::default();
    let state = State { execution: turn.execution, plan: &turn.definition.plan, now: turn.now };
    let holds = when.evaluate_bool(&state, &mut budget).map_err(|error| expression_error(&error));
    turn.charge(&budget);
    holds
}

/// Evaluates a span.
pub(super) fn span(turn: &mut Turn<'_>, span: &Span) -> Result<Millis, Failure> {
    let template = match span {
        Span::Fixed(millis) => return Ok(*millis),
        Span::Template(template) => template,
    };
    let value = render(turn, template)?.to_value();
    let text = value.as_str().ok_or_else(|| {
        Failure::engine(
            code::EXPRESSION_ERROR,
            format!("a duration must be a text like `30s`, not {}", code::cut(value.to_string(), 200)),
        )
    })?;
    Millis::parse(text).map_err(|error| {
        Failure::engine(code::EXPRESSION_ERROR, format!("`{}`: {error}", code::cut(text.to_owned(), 200)))
    })
}
