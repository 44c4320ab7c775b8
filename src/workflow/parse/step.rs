//! The steps of a document.

use std::collections::BTreeSet;

use super::{
    super::{
        definition::{Await, Kind, OnTimeout, Step},
        expression,
        problem::Code,
    },
    document::Context,
    fields::{Fields, Part},
    hint, keys, task,
    text::{Readable, Reader},
};
use crate::model::{SignalName, StepId, plan::StepKind};

const ON_TIMEOUT: &[(&str, OnTimeout)] = &[("fail", OnTimeout::Fail), ("null", OnTimeout::Null)];

/// A step as far as it could be read.
pub struct Read {
    /// Its id.
    pub id: Option<StepId>,
    /// What it does.
    pub step: Option<Step>,
    /// The steps that it names.
    pub depends_on: BTreeSet<usize>,
}

impl Read {
    /// Returns what a plan must know of the step's kind.
    pub fn plan_kind(step: &Step) -> StepKind {
        match &step.kind {
            Kind::Task(_) => StepKind::Task,
            Kind::Compute(_) => StepKind::Compute,
            Kind::Sleep(_) => StepKind::Sleep,
            Kind::Await(wait) => StepKind::Await(wait.signal.clone()),
        }
    }
}

/// Reads the id of a step, which no other step may have before it.
pub fn read_id<'v>(fields: &Fields<'v>, number: usize, context: &mut Context<'v>) -> Option<StepId> {
    let part = fields.need("id", &mut context.problems)?;
    let id: StepId = part.id(&mut context.problems)?;
    if expression::is_cel_word(id.as_str()) {
        part.wrong(
            format!("`{id}` is a word of the expression language and cannot name a step"),
            &mut context.problems,
        );
        return None;
    }
    let text = part.value.as_str()?;
    if let Some(before) = context.steps.get(text) {
        let message = format!("the id \"{id}\" is there twice: step {before} has it too");
        context.problems.push(&part.at, Code::DuplicateId, message);
        return None;
    }
    context.steps.insert(text, number);
    Some(id)
}

/// Reads a step when the ids of all are known.
pub fn read<'v>(
    fields: &Fields<'v>,
    id: Option<StepId>,
    number: usize,
    defaults: Option<&Fields<'v>>,
    context: &mut Context<'v>,
) -> Read {
    let mut reader = Reader::new(context, Readable::AllBut(number));
    if let Some(part) = fields.get("description") {
        part.text(&mut reader.context.problems);
    }
    let when = fields.get("when").map(|part| reader.condition(&part));
    let kind = keys::check_step(fields, &mut reader.context.problems);
    let kind = kind.and_then(|kind| read_kind(kind, fields, defaults, &mut reader));
    let Reader { mut named, context, .. } = reader;
    if let Some(part) = fields.get("after") {
        read_after(&part, number, &mut named, context);
    }
    let step = kind.and_then(|kind| {
        let when = match when {
            None => None,
            Some(read) => Some(read?),
        };
        Some(Step { pointer: fields.at.as_str().to_owned(), when, kind })
    });
    Read { id, step, depends_on: named }
}

fn read_kind<'v>(
    kind: &str,
    fields: &Fields<'v>,
    defaults: Option<&Fields<'v>>,
    reader: &mut Reader<'_, 'v>,
) -> Option<Kind> {
    let part = fields.get(kind)?;
    match kind {
        "task" => Some(Kind::Task(Box::new(task::read(fields, defaults, reader)?))),
        "compute" => Some(Kind::Compute(reader.template(&part)?)),
        "sleep" => Some(Kind::Sleep(reader.span(&part)?)),
        _ => Some(Kind::Await(read_await(&part, fields, reader)?)),
    }
}

fn read_await<'v>(part: &Part<'v>, fields: &Fields<'v>, reader: &mut Reader<'_, 'v>) -> Option<Await> {
    let signal: Option<SignalName> = part.id(&mut reader.context.problems);
    if let Some(signal) = &signal
        && !reader.context.signals.contains(signal)
    {
        let known = reader.context.signals.iter().map(SignalName::as_str);
        let message = format!("{}; `signals` must declare it", hint::unknown("signal", signal.as_str(), known));
        reader.context.problems.push(&part.at, Code::UnknownSignal, message);
    }
    let timeout = fields.get("timeout").map(|part| reader.span(&part));
    let on_timeout = fields.get("on_timeout").map(|part| {
        if timeout.is_none() {
            part.wrong("`on_timeout` needs a `timeout`", &mut reader.context.problems);
        }
        part.choice(ON_TIMEOUT, &mut reader.context.problems)
    });
    let timeout = match timeout {
        None => None,
        Some(read) => Some(read?),
    };
    Some(Await { signal: signal?, timeout, on_timeout: on_timeout.unwrap_or(Some(OnTimeout::Fail))? })
}

fn read_after(part: &Part<'_>, number: usize, named: &mut BTreeSet<usize>, context: &mut Context<'_>) {
    for item in part.items(&mut context.problems).unwrap_or_default() {
        let Some(id) = item.text(&mut context.problems) else { continue };
        match context.steps.get(id).copied() {
            Some(step) if step == number => {
                context.problems.push(&item.at, Code::Cycle, format!("step \"{id}\" cannot wait for itself"));
            }
            Some(step) => drop(named.insert(step)),
            None => {
                let message = context.unknown_step(id);
                context.problems.push(&item.at, Code::UnknownStep, message);
            }
        }
    }
}
