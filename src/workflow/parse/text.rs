//! Templates, conditions and spans of a document, and whether what they name is there.

use std::collections::BTreeSet;

use super::{
    super::{
        definition::Span,
        expression::{Expression, Problem as ExpressionProblem, References, Template},
        pointer::Pointer,
        problem::{Code, Problem},
    },
    document::Context,
    fields::Part,
    hint,
};
use crate::model::Millis;

/// Names besides `steps` that every template may read.
const ROOTS: &[&str] = &["input", "execution", "now_ms"];

/// Which steps templates may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// None: it is evaluated before or apart from them.
    Nothing,
    /// Every step, whether it is resolved or not.
    Every,
    /// Every step but this one, which then waits for them.
    AllBut(usize),
}

/// Reads templates that stand in one place of the document, and notes the steps that they name.
pub struct Reader<'c, 'v> {
    /// What is known of the document, and what is wrong with it.
    pub context: &'c mut Context<'v>,
    /// The steps that were named.
    pub named: BTreeSet<usize>,
    readable: Readable,
}

impl<'c, 'v> Reader<'c, 'v> {
    /// A reader for a place that may read `readable`.
    pub fn new(context: &'c mut Context<'v>, readable: Readable) -> Self {
        Self { context, named: BTreeSet::new(), readable }
    }

    /// Reads a template.
    pub fn template(&mut self, part: &Part<'_>) -> Option<Template> {
        let template = Template::parse(part.value, part.at.as_str())
            .map_err(|problems| problems.into_iter().for_each(|problem| self.refuse(problem)))
            .ok()?;
        let readable = if part.at.as_str().starts_with("/defaults/") { Readable::Nothing } else { self.readable };
        let mut good = true;
        for (pointer, references) in template.expressions() {
            good &= self.check_names(&Pointer::from(pointer.to_owned()), references, readable);
        }
        good.then_some(template)
    }

    /// Reads a string that is exactly one expression.
    pub fn condition(&mut self, part: &Part<'_>) -> Option<Expression> {
        let text = part.text(&mut self.context.problems)?;
        let template = self.template(part)?;
        let inner =
            text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|_| template.is_expression());
        let Some(inner) = inner else {
            self.context.problems.push(&part.at, Code::Expression, "a condition is exactly one `${ … }`");
            return None;
        };
        Expression::parse(inner, part.at.as_str()).map_err(|problem| self.refuse(problem)).ok()
    }

    /// Reads a duration, or a template that becomes one.
    pub fn span(&mut self, part: &Part<'_>) -> Option<Span> {
        if !part.value.is_string() {
            let message = "a duration is a string like `500ms`, `30s`, `5m`, `1h30m` or `7d`";
            self.context.problems.push(&part.at, Code::Duration, message);
            return None;
        }
        let template = self.template(part)?;
        match template.literal().and_then(serde_json::Value::as_str) {
            None => Some(Span::Template(template)),
            Some(text) => match Millis::parse(text) {
                Ok(span) => Some(Span::Fixed(span)),
                Err(error) => {
                    self.context.problems.push(&part.at, Code::Duration, error.to_string());
                    None
                }
            },
        }
    }

    /// Reads a span that ends something, which nothing could keep if it were zero.
    pub fn time_limit(&mut self, part: &Part<'_>) -> Option<Span> {
        let span = self.span(part)?;
        if matches!(span, Span::Fixed(Millis(0))) {
            self.context.problems.push(&part.at, Code::Duration, "a time limit must be longer than nothing");
            return None;
        }
        Some(span)
    }

    fn refuse(&mut self, problem: ExpressionProblem) {
        let place = Pointer::from(problem.pointer);
        self.context.problems.add(Problem::new(&place, Code::Expression, problem.message));
    }

    /// Checks the free names of one expression.
    fn check_names(&mut self, at: &Pointer, references: &References, readable: Readable) -> bool {
        let mut good = true;
        let mut wrong = |context: &mut Context<'_>, code, message: String| {
            context.problems.push(at, code, message);
            good = false;
        };
        for root in references.roots.iter().filter(|root| !ROOTS.contains(&root.as_str())) {
            let message = if self.context.steps.contains_key(root.as_str()) {
                format!("unknown name \"{root}\"; a step is read as \"steps.{root}\"")
            } else {
                hint::unknown("name", root, ROOTS.iter().copied().chain(["steps"]))
            };
            wrong(self.context, Code::Expression, message);
        }
        for id in references.step_ids() {
            match (readable, self.context.steps.get(id).copied()) {
                (Readable::Nothing, _) => wrong(self.context, Code::Expression, "steps cannot be read here".into()),
                (_, None) => {
                    let message = self.context.unknown_step(id);
                    wrong(self.context, Code::UnknownStep, message);
                }
                (Readable::AllBut(own), Some(step)) if own == step => {
                    wrong(self.context, Code::Cycle, format!("step \"{id}\" cannot wait for itself"));
                }
                (_, Some(step)) => drop(self.named.insert(step)),
            }
        }
        good
    }
}
