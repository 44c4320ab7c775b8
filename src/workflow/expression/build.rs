//! Flattens the JSON of a template into pieces, and collects all that is wrong with it.

use std::sync::Arc;

use serde_json::Value as Json;

use super::holes::{self, Part};
use super::parse::parse;
use super::problem::{Problem, code};
use super::references::Source;
use super::template::{Hole, Piece};
use super::write::{self, MAX_DEPTH};

/// Most problems that one template reports.
const MAX_PROBLEMS: usize = 100;

/// A template in the making.
#[derive(Default)]
pub(super) struct Builder {
    pub pieces: Vec<Piece>,
    pub holes: Vec<Hole>,
    pub sources: Vec<Source>,
    pub problems: Vec<Problem>,
    /// JSON text since the last hole.
    plain: Vec<u8>,
}

impl Builder {
    /// Adds a value of the template and returns it as a literal, which is meaningful while there are no holes.
    pub(super) fn add(&mut self, json: &Json, pointer: &mut String, depth: usize) -> Json {
        match json {
            Json::String(text) => self.add_text(text, pointer, depth),
            Json::Array(items) => {
                self.within(pointer, depth, |builder, pointer| Json::Array(builder.add_list(items, pointer, depth + 1)))
            }
            Json::Object(map) => {
                self.within(pointer, depth, |builder, pointer| Json::Object(builder.add_map(map, pointer, depth + 1)))
            }
            scalar => {
                self.push(scalar);
                scalar.clone()
            }
        }
    }

    /// Adds a list or map, unless it is too deep.
    fn within(&mut self, pointer: &mut String, depth: usize, add: impl FnOnce(&mut Self, &mut String) -> Json) -> Json {
        if depth < MAX_DEPTH {
            return add(self, pointer);
        }
        let message = format!("the template has more than {MAX_DEPTH} lists and maps inside one another");
        self.report(Problem::new(pointer, code::TEMPLATE_TOO_DEEP, message));
        Json::Null
    }

    fn add_list(&mut self, items: &[Json], pointer: &mut String, depth: usize) -> Vec<Json> {
        self.plain.push(b'[');
        let mut literals = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.plain.push(b',');
            }
            literals.push(self.add_at(item, &index.to_string(), pointer, depth));
        }
        self.plain.push(b']');
        literals
    }

    fn add_map(
        &mut self,
        map: &serde_json::Map<String, Json>,
        pointer: &mut String,
        depth: usize,
    ) -> serde_json::Map<String, Json> {
        self.plain.push(b'{');
        let mut literals = serde_json::Map::new();
        for (index, (key, value)) in map.iter().enumerate() {
            if index > 0 {
                self.plain.push(b',');
            }
            self.push(key);
            self.plain.push(b':');
            let escaped = key.replace('~', "~0").replace('/', "~1");
            literals.insert(key.clone(), self.add_at(value, &escaped, pointer, depth));
        }
        self.plain.push(b'}');
        literals
    }

    fn add_at(&mut self, json: &Json, token: &str, pointer: &mut String, depth: usize) -> Json {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(token);
        let literal = self.add(json, pointer, depth);
        pointer.truncate(length);
        literal
    }

    fn add_text(&mut self, text: &str, pointer: &str, depth: usize) -> Json {
        let parts = match holes::split(text) {
            Ok(parts) => parts,
            Err((code, message)) => {
                self.report(Problem::new(pointer, code, message));
                return Json::Null;
            }
        };
        match parts.as_slice() {
            [] => self.push(""),
            [Part::Plain(plain)] => {
                self.push(plain);
                return Json::String(plain.clone());
            }
            [Part::Expression(expression)] => {
                if let Some(hole) = self.add_hole(expression, pointer) {
                    self.flush();
                    self.pieces.push(Piece::Value { hole, depth });
                }
            }
            parts => self.add_mixed(parts, pointer),
        }
        Json::String(String::new())
    }

    /// Adds a text with holes inside.
    fn add_mixed(&mut self, parts: &[Part<'_>], pointer: &str) {
        self.plain.push(b'"');
        for part in parts {
            match part {
                Part::Plain(plain) => write::append_escaped(&mut self.plain, plain),
                Part::Expression(expression) => {
                    if let Some(hole) = self.add_hole(expression, pointer) {
                        self.flush();
                        self.pieces.push(Piece::Text { hole });
                    }
                }
            }
        }
        self.plain.push(b'"');
    }

    fn add_hole(&mut self, expression: &str, pointer: &str) -> Option<usize> {
        match parse(expression, pointer, &mut self.sources) {
            Ok((node, references)) => {
                self.holes.push(Hole { pointer: Arc::from(pointer), node, references });
                Some(self.holes.len() - 1)
            }
            Err(problem) => {
                self.report(problem);
                None
            }
        }
    }

    fn push<T: serde::Serialize + ?Sized>(&mut self, scalar: &T) {
        serde_json::to_writer(&mut self.plain, scalar).expect("a scalar is written to memory");
    }

    /// Ends a run of plain JSON text.
    pub(super) fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.pieces.push(Piece::Plain(write::into_text(std::mem::take(&mut self.plain))));
        }
    }

    fn report(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}
