//! The graph of a definition as text: what `sandkeep workflow check` prints.

use std::{collections::BTreeSet, fmt::Write};

use super::definition::{Definition, Kind, ModuleRef, OnTimeout, Span, Step, TargetChoice, Task};
use crate::model::{StepId, TaskName};

impl Definition {
    /// Returns the ids of the steps in document order.
    pub fn step_ids(&self) -> impl Iterator<Item = &StepId> {
        self.plan.steps().iter().map(|step| &step.id)
    }

    /// Returns the tasks that steps name, each once, sorted.
    pub fn task_names(&self) -> impl Iterator<Item = &TaskName> {
        let tasks = self.steps.iter().filter_map(|step| match &step.kind {
            Kind::Task(task) => Some(&task.task),
            _ => None,
        });
        tasks.collect::<BTreeSet<_>>().into_iter()
    }
}

/// Returns the steps in document order, a line each: the id, what it does, and what it waits for.
pub fn graph(definition: &Definition) -> String {
    let rows: Vec<[String; 3]> = definition
        .plan
        .steps()
        .iter()
        .zip(&definition.steps)
        .map(|(numbers, step)| {
            let after: Vec<_> = numbers.depends_on.iter().map(|on| definition.plan.step(*on).id.as_str()).collect();
            [numbers.id.to_string(), what(step), after.join(", ")]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (ids, whats) = (width(0), width(1));
    let mut text = format!("{} {} {}\n", definition.name, definition.version, definition.hash);
    for [id, what, after] in &rows {
        let line = if after.is_empty() {
            format!("  {id:ids$}  {what}")
        } else {
            format!("  {id:ids$}  {what:whats$}  after {after}")
        };
        writeln!(text, "{line}").expect("a string takes what is written");
    }
    text
}

fn what(step: &Step) -> String {
    let mut text = match &step.kind {
        Kind::Task(task) => task_words(task),
        Kind::Compute(_) => "compute".into(),
        Kind::Sleep(span) => format!("sleep {}", span_words(span)),
        Kind::Await(wait) => {
            let timeout = wait.timeout.as_ref().map(|span| format!(" at most {}", span_words(span)));
            let then = if wait.on_timeout == OnTimeout::Null { ", then null" } else { "" };
            format!("await {}{}{then}", wait.signal, timeout.unwrap_or_default())
        }
    };
    if step.when.is_some() {
        text.push_str(" (conditional)");
    }
    text
}

fn task_words(task: &Task) -> String {
    let mut text = format!("task {}", task.task);
    match (&task.module, task.target) {
        (Some(ModuleRef::Alias(name, alias)), _) => text.push_str(&format!(" by {name}@{alias}")),
        (Some(ModuleRef::Digest(name, digest)), _) => text.push_str(&format!(" by {name}@{digest}")),
        (None, TargetChoice::Module) => text.push_str(" by a module"),
        (None, TargetChoice::Worker) => text.push_str(" by a worker"),
        (None, TargetChoice::Auto) => {}
    }
    if let Some(node) = &task.node {
        text.push_str(&format!(" on {node}"));
    }
    text
}

fn span_words(span: &Span) -> String {
    match span {
        Span::Fixed(span) => span.to_string(),
        Span::Template(_) => "as computed".into(),
    }
}
