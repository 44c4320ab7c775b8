//! What a task step has besides its task, with `defaults` under it.

use super::{
    super::{
        definition::{ModuleRef, Retry, TargetChoice, Task, Timeouts},
        expression::Template,
        problem::{Code, Problems},
    },
    fields::{Fields, Part},
    keys,
    policy::{self, Layers},
    text::Reader,
};
use crate::model::{Alias, Digest, ModuleName, NodeLabel, QueueName, id::Invalid};

const TARGETS: &[(&str, TargetChoice)] =
    &[("auto", TargetChoice::Auto), ("module", TargetChoice::Module), ("worker", TargetChoice::Worker)];

const PRIORITY: u8 = 5;

/// Reads a task step.
pub fn read<'v>(fields: &Fields<'v>, defaults: Option<&Fields<'v>>, reader: &mut Reader<'_, 'v>) -> Option<Task> {
    let task = fields.get("task")?.id(&mut reader.context.problems);
    let input = match fields.get("input") {
        Some(part) => reader.template(&part),
        None => Template::parse(&serde_json::Value::Null, fields.at.as_str()).ok(),
    };
    let layers = Layers::new(Some(fields.clone()), defaults.cloned());
    let options = Options::read(&layers, reader);
    options.check(&layers, fields, &mut reader.context.problems);
    let Options { queue, target, module, node, priority, retry, timeouts } = options;
    Some(Task { task: task?, input: input?, queue, target, module, node, priority, retry, timeouts })
}

/// Checks `defaults` by themselves, so that what is wrong in them is found without a task that uses them.
pub fn check_defaults<'v>(defaults: &Fields<'v>, reader: &mut Reader<'_, 'v>) {
    defaults.check_keys(keys::TASK_OPTIONS, keys::TASK_OPTIONS_LATER, &mut reader.context.problems);
    Options::read(&Layers::new(Some(defaults.clone()), None), reader);
}

/// What a step or `defaults` may say. What is wrong has a problem and its default.
struct Options {
    queue: QueueName,
    target: TargetChoice,
    module: Option<ModuleRef>,
    node: Option<NodeLabel>,
    priority: u8,
    retry: Retry,
    timeouts: Timeouts,
}

impl Options {
    fn read<'v>(layers: &Layers<'v>, reader: &mut Reader<'_, 'v>) -> Self {
        let problems = &mut reader.context.problems;
        let retry = policy::retry(&layers.inner("retry", keys::RETRY, problems), problems);
        let timeouts = layers.inner("timeouts", keys::TIMEOUTS, problems);
        Self {
            queue: layers.get("queue").and_then(|part| part.id(problems)).unwrap_or_else(QueueName::default_queue),
            target: layers.get("target").and_then(|part| part.choice(TARGETS, problems)).unwrap_or(TargetChoice::Auto),
            module: layers.get("module").and_then(|part| module(&part, problems)),
            node: layers.get("node").and_then(|part| part.id(problems)),
            priority: layers.get("priority").and_then(|part| priority(&part, problems)).unwrap_or(PRIORITY),
            retry,
            timeouts: policy::timeouts(&timeouts, reader),
        }
    }

    /// Checks what fits alone but not together. The place is that of a key of the step itself where it has one.
    fn check(&self, layers: &Layers<'_>, step: &Fields<'_>, problems: &mut Problems) {
        let place = |key: &str| step.get(key).map_or_else(|| step.at.clone(), |part| part.at);
        if self.target == TargetChoice::Module && layers.get("node").is_some() {
            let message = "`node` asks for a worker, so it cannot be there with `target: module`";
            problems.push(&place("node"), Code::InvalidValue, message);
        }
        if self.target == TargetChoice::Worker && layers.get("module").is_some() {
            problems.push(&place("module"), Code::InvalidValue, "`module` cannot be there with `target: worker`");
        }
        if self.module.is_some() && layers.get("node").is_some() {
            let message = "`node` asks for a worker, so it cannot be there with `module`";
            problems.push(&place("node"), Code::InvalidValue, message);
        }
        if self.retry.max_attempts == 0 && self.timeouts.total.is_none() {
            let message = "without a limit on attempts (`max_attempts: 0`), `timeouts.total` is required";
            problems.push(&place("retry"), Code::MissingKey, message);
        }
    }
}

fn priority(part: &Part<'_>, problems: &mut Problems) -> Option<u8> {
    part.whole(0..=9, problems).and_then(|number| u8::try_from(number).ok())
}

/// Reads `NAME`, `NAME@ALIAS` or `NAME@sha256:…`.
fn module(part: &Part<'_>, problems: &mut Problems) -> Option<ModuleRef> {
    let text = part.text(problems)?;
    let read = || -> Result<ModuleRef, Invalid> {
        let Some((name, which)) = text.split_once('@') else {
            return Ok(ModuleRef::Alias(ModuleName::new(text)?, Alias::live()));
        };
        let name = ModuleName::new(name)?;
        Ok(if which.starts_with("sha256:") {
            ModuleRef::Digest(name, Digest::new(which)?)
        } else {
            ModuleRef::Alias(name, Alias::new(which)?)
        })
    };
    read()
        .map_err(|invalid| {
            part.wrong(format!("{invalid}; a module is `NAME`, `NAME@ALIAS` or `NAME@sha256:…`"), problems)
        })
        .ok()
}
