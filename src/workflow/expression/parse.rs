//! One expression by itself, and the way from its text to the lowered tree.

use super::budget::Budget;
use super::evaluate::Session;
use super::guard;
use super::lower;
use super::problem::{Error, Fault, Problem, code};
use super::references::{References, Source};
use super::scope::Scope;
use super::tree::Node;
use super::value::Value;
use super::write;

/// How the parser marks what it could not read.
const SYNTAX_ERROR: &str = "Syntax error: ";

/// One CEL expression, without `${ }` around it.
#[derive(Debug)]
pub struct Expression {
    pointer: String,
    node: Node,
    sources: Vec<Source>,
    references: References,
}

impl Expression {
    /// Parses an expression that stands at `pointer` in the document.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, Problem> {
        let mut sources = Vec::new();
        let (node, references) = parse(text, pointer, &mut sources)?;
        Ok(Self { pointer: pointer.to_owned(), node, sources, references })
    }

    /// Returns the free names of the expression.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Evaluates the expression to a JSON value.
    pub fn evaluate(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<serde_json::Value, Error> {
        self.run(scope, budget, |session, node| {
            let value = session.evaluate(node)?;
            write::to_json(&value, session.budget)
        })
    }

    /// Evaluates the expression to compact JSON text.
    pub fn evaluate_text(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<String, Error> {
        self.run(scope, budget, |session, node| {
            let value = session.evaluate(node)?;
            write::json_text(&value, session.budget)
        })
    }

    /// Evaluates a condition; a value that is not a bool is an error.
    pub fn evaluate_bool(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<bool, Error> {
        self.run(scope, budget, |session, node| as_bool(&session.evaluate(node)?))
    }

    fn run<T>(
        &self,
        scope: &dyn Scope,
        budget: &mut Budget,
        evaluation: impl FnOnce(&mut Session<'_>, &Node) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let mut session = Session::new(scope, &self.sources, budget);
        evaluation(&mut session, &self.node).map_err(|fault| Error::new(&self.pointer, fault))
    }
}

/// Takes the result of a condition.
pub(super) fn as_bool(value: &Value) -> Result<bool, Fault> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        other => Err(Fault::failed(format!("a condition is true or false, not of type {}", other.kind()))),
    }
}

/// Parses and lowers a text; `sources` is shared by the expressions of a template.
pub(super) fn parse(text: &str, pointer: &str, sources: &mut Vec<Source>) -> Result<(Node, References), Problem> {
    guard::check(text).map_err(|(code, message)| Problem::new(pointer, code, message))?;
    if text.trim().is_empty() {
        return Err(Problem::new(pointer, code::SYNTAX, "the expression is empty"));
    }
    let tree = cel::parser::Parser::new()
        .parse(text)
        .map_err(|errors| Problem::new(pointer, code::SYNTAX, syntax_message(&errors)))?;
    lower::lower(&tree, sources, pointer)
}

/// The first error of the parser, with its place and without the list of what else could stand there.
fn syntax_message(errors: &cel::ParseErrors) -> String {
    // What follows from a syntax error may stand before it in the list, in words about the parser's own parts.
    let is_cause = |error: &&cel::ParseError| error.msg.starts_with(SYNTAX_ERROR);
    let Some(error) = errors.errors.iter().find(is_cause).or(errors.errors.first()) else {
        return "the expression is not CEL".to_owned();
    };
    let message = error.msg.trim_start_matches(SYNTAX_ERROR);
    let message = message.split_once(" expecting {").map_or(message, |(message, _)| message);
    let message: String = message.chars().take(200).collect();
    format!("{message} (line {}, column {})", error.pos.0, error.pos.1)
}
