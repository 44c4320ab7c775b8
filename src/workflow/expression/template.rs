//! Templates: JSON whose texts may hold expressions.
//!
//! A template is flattened when it is parsed: runs of JSON text that never change, and the holes between them. Rendering
//! is one pass over these pieces, and a template without holes is one piece.

use std::sync::Arc;

use serde_json::Value as Json;

use super::budget::Budget;
use super::build::Builder;
use super::evaluate::Session;
use super::parse::as_bool;
use super::paths::Found;
use super::problem::{Error, Fault, Problem};
use super::references::{References, Source};
use super::scope::Scope;
use super::tree::Node;
use super::value::Value;
use super::write;

/// JSON whose texts may hold `${ … }`.
#[derive(Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    holes: Vec<Hole>,
    sources: Vec<Source>,
    literal: Option<Json>,
}

/// A part of the JSON text that a template renders to.
#[derive(Debug)]
pub(super) enum Piece {
    /// JSON text as it is.
    Plain(String),
    /// The value of a hole, with its type, below `depth` lists and maps.
    Value { hole: usize, depth: usize },
    /// A value inside a text.
    Text { hole: usize },
}

/// One expression of a template.
#[derive(Debug)]
pub(super) struct Hole {
    pub pointer: Arc<str>,
    pub node: Node,
    pub references: References,
}

impl Template {
    /// Parses a template that stands at `pointer` in the document, and reports all that is wrong with it.
    pub fn parse(json: &Json, pointer: &str) -> Result<Self, Vec<Problem>> {
        let mut builder = Builder::default();
        let literal = builder.add(json, &mut pointer.to_owned(), 0);
        builder.flush();
        if !builder.problems.is_empty() {
            return Err(builder.problems);
        }
        let literal = builder.holes.is_empty().then_some(literal);
        Ok(Self { pieces: builder.pieces, holes: builder.holes, sources: builder.sources, literal })
    }

    /// Returns the free names of all expressions.
    pub fn references(&self) -> References {
        let mut all = References::default();
        for hole in &self.holes {
            all.extend(&hole.references);
        }
        all
    }

    /// Returns each expression's place in the document with its free names, so that a check can say where a name stands.
    pub fn expressions(&self) -> impl Iterator<Item = (&str, &References)> {
        self.holes.iter().map(|hole| (hole.pointer.as_ref(), &hole.references))
    }

    /// Returns the value of a template without expressions, `$${` already turned into `${`.
    pub fn literal(&self) -> Option<&Json> {
        self.literal.as_ref()
    }

    /// Returns whether the template is exactly one `${ … }`, whose value may be of any type.
    pub fn is_expression(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Value { .. }])
    }

    /// Renders the template to compact JSON text.
    pub fn render(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<String, Error> {
        let mut session = Session::new(scope, &self.sources, budget);
        let mut out = Vec::new();
        for piece in &self.pieces {
            self.render_piece(piece, &mut session, &mut out)?;
        }
        Ok(write::into_text(out))
    }

    /// Renders the template to a JSON value.
    pub fn render_value(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<Json, Error> {
        let text = self.render(scope, budget)?;
        let unreadable = |error| Fault::failed(format!("the result is not JSON: {error}"));
        serde_json::from_str(&text).map_err(|error| Error::new(self.first_pointer(), unreadable(error)))
    }

    /// Evaluates a condition: a template that is exactly `${ … }` and gives a bool, or a literal bool.
    pub fn render_bool(&self, scope: &dyn Scope, budget: &mut Budget) -> Result<bool, Error> {
        let mut session = Session::new(scope, &self.sources, budget);
        let value = match (self.pieces.as_slice(), &self.literal) {
            ([Piece::Value { hole, .. }], _) => session.evaluate(&self.holes[*hole].node),
            (_, Some(Json::Bool(flag))) => Ok(Value::Bool(*flag)),
            _ => Err(Fault::failed("a condition is one `${ … }`, true or false")),
        };
        value.and_then(|value| as_bool(&value)).map_err(|fault| Error::new(self.first_pointer(), fault))
    }

    fn first_pointer(&self) -> &str {
        self.holes.first().map_or("", |hole| &hole.pointer)
    }

    fn render_piece(&self, piece: &Piece, session: &mut Session<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let (hole, written) = match piece {
            Piece::Plain(text) => {
                out.extend_from_slice(text.as_bytes());
                return Ok(());
            }
            Piece::Value { hole, depth } => (hole, write_value(session, &self.holes[*hole].node, *depth, out)),
            Piece::Text { hole } => (hole, write_inside_text(session, &self.holes[*hole].node, out)),
        };
        written.map_err(|fault| Error::new(&self.holes[*hole].pointer, fault))
    }
}

/// Writes the value of a hole; what the scope holds as text is copied, not read.
fn write_value(session: &mut Session<'_>, node: &Node, depth: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = match node {
        Node::Read(read) => match session.find_text(read)? {
            Found::Json(text) => return write::copy_json(out, text, depth, session.budget),
            Found::Value(value) => value,
        },
        _ => session.evaluate(node)?,
    };
    write::write_json(out, &value, depth, session.budget)
}

/// Writes the value of a hole between the quotes of a text.
fn write_inside_text(session: &mut Session<'_>, node: &Node, out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = session.evaluate(node)?;
    let text = write::plain_text(&value, session.budget)?;
    write::write_escaped(out, &text, session.budget)
}
