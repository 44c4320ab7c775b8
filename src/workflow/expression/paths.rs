//! How paths are read: into the sources of the scope, and into values.
//!
//! A source is read from its JSON text along the path that is asked for; when it is read again, the whole of it is built
//! once and kept for the rest of the template.

use std::sync::Arc;

use super::budget::Budget;
use super::evaluate::Session;
use super::problem::Fault;
use super::read::{self, Stop};
use super::references::Source;
use super::scope::Operand;
use super::tree::{self, Node, Read, Segment};
use super::value::{Key, Map, Value, kind};

/// How often a source may be copied from as text before its value is built.
const MAX_SEEKS: u8 = 4;

/// A source as far as it was read.
pub(super) enum Slot<'a> {
    Unread,
    /// As the scope holds it, with the number of times a path into it was followed.
    Held(Operand<'a>, u8),
    Ready(Value),
}

/// Where a path led without building the whole source.
pub(super) enum Found<'a> {
    Json(&'a str),
    Value(Value),
}

impl<'a> Session<'a> {
    pub(super) fn member(&mut self, node: &Node, operand: &Node, field: &Arc<str>) -> Result<Value, Fault> {
        let value = self.evaluate(operand)?;
        match &value {
            Value::Map(map) => map.get_text(field).cloned().ok_or(Stop::NoKey),
            Value::Null => Err(Stop::Null),
            other => Err(Stop::Scalar(other.kind())),
        }
        .map_err(|stop| self.stopped(&stop, node, operand))
    }

    pub(super) fn index(&mut self, sides: &[Node; 2]) -> Result<Value, Fault> {
        let value = self.evaluate(&sides[0])?;
        let key = self.evaluate(&sides[1])?;
        match &value {
            Value::Null => Err(Stop::Null),
            Value::List(items) => match Key::of(&key) {
                Some(Key::Int(index)) => {
                    let index = usize::try_from(index).unwrap_or(usize::MAX);
                    items.get(index).cloned().ok_or(Stop::Short(items.len()))
                }
                _ => return Err(Fault::failed(format!("a list is indexed by an int, not {}", key.kind()))),
            },
            Value::Map(map) => {
                self.budget.scan(if let Value::Text(key) = &key { key.len() } else { 0 })?;
                Key::of(&key).and_then(|key| map.get(&key)).cloned().ok_or(Stop::NoKey)
            }
            other => Err(Stop::Scalar(other.kind())),
        }
        .map_err(|stop| self.stopped_at(&stop, &sides[0], &key))
    }

    fn stopped(&self, stop: &Stop, whole: &Node, before: &Node) -> Fault {
        stop.fault(&tree::describe(whole, self.sources), &tree::describe(before, self.sources))
    }

    /// As [`Self::stopped`], with the key that was looked for.
    fn stopped_at(&self, stop: &Stop, before: &Node, key: &Value) -> Fault {
        let before = tree::describe(before, self.sources);
        stop.fault(&format!("{before}[{}]", tree::spell_key(key)), &before)
    }

    /// Reads a path into a source as a value.
    pub(super) fn read(&mut self, read: &Read) -> Result<Value, Fault> {
        let value = match self.find(read, 1)? {
            Found::Json(text) => read::parse_held(text, self.budget)?,
            Found::Value(value) => value,
        };
        if read.path.is_empty() {
            self.slots[read.source] = Slot::Ready(value.clone());
        }
        Ok(value)
    }

    /// Finds a path for a caller that wants its JSON text, if the source is held as one.
    pub(super) fn find_text(&mut self, read: &Read) -> Result<Found<'a>, Fault> {
        self.budget.steps(1)?;
        self.find(read, MAX_SEEKS)
    }

    /// Follows a path in the text of a source up to `seeks` times, from then on in its value.
    fn find(&mut self, read: &Read, seeks: u8) -> Result<Found<'a>, Fault> {
        self.load(read.source)?;
        if let Slot::Held(operand, followed) = &mut self.slots[read.source]
            && (*followed < seeks || read.path.is_empty())
        {
            *followed = followed.saturating_add(1);
            let operand = operand.clone();
            return self.seek(&operand, read);
        }
        self.build(read.source)?;
        let Slot::Ready(value) = &self.slots[read.source] else {
            return Err(Fault::failed("a source was not built"));
        };
        let mut reached = value;
        for (index, segment) in read.path.iter().enumerate() {
            reached = read::follow(reached, segment).map_err(|stop| self.cut(&stop, read, index))?;
        }
        Ok(Found::Value(reached.clone()))
    }

    fn load(&mut self, source: usize) -> Result<(), Fault> {
        if matches!(self.slots[source], Slot::Unread) {
            let scope = self.scope;
            let operand = match &self.sources[source] {
                Source::Root(name) => scope.root(name),
                Source::Step(id, field) => scope.step(id, *field),
            };
            let missing = || Fault::Missing(format!("`{}` is not known here", self.sources[source]));
            self.slots[source] = Slot::Held(operand.ok_or_else(missing)?, 0);
        }
        Ok(())
    }

    fn build(&mut self, source: usize) -> Result<(), Fault> {
        if let Slot::Held(operand, _) = &self.slots[source] {
            let value = held_value(operand, self.budget)?;
            self.slots[source] = Slot::Ready(value);
        }
        Ok(())
    }

    fn seek(&mut self, operand: &Operand<'a>, read: &Read) -> Result<Found<'a>, Fault> {
        let mut operand = operand;
        for (index, segment) in read.path.iter().enumerate() {
            operand = match operand {
                Operand::Json(text) => return self.seek_json(text, read, index),
                Operand::Record(fields) => {
                    let field = fields.iter().find(|(name, _)| *segment == Segment::Name((*name).into()));
                    &field.ok_or(Stop::NoKey).map_err(|stop| self.cut(&stop, read, index))?.1
                }
                Operand::Null => return Err(self.cut(&Stop::Null, read, index)),
                Operand::Text(_) => return Err(self.cut(&Stop::Scalar(kind::STRING), read, index)),
                Operand::Int(_) => return Err(self.cut(&Stop::Scalar(kind::INT), read, index)),
            };
        }
        match operand {
            Operand::Json(text) => Ok(Found::Json(text)),
            other => held_value(other, self.budget).map(Found::Value),
        }
    }

    fn seek_json(&mut self, text: &'a str, read: &Read, from: usize) -> Result<Found<'a>, Fault> {
        let mut text = text;
        for (index, segment) in read.path.iter().enumerate().skip(from) {
            text = read::seek(text, segment, self.budget)?.map_err(|stop| self.cut(&stop, read, index))?;
        }
        Ok(Found::Json(text))
    }

    /// The fault of a path that ends at the segment `index`.
    fn cut(&self, stop: &Stop, read: &Read, index: usize) -> Fault {
        let source = &self.sources[read.source];
        let whole = tree::describe_read(source, &read.path[..=index]);
        stop.fault(&whole, &tree::describe_read(source, &read.path[..index]))
    }
}

/// Builds the value of an operand.
fn held_value(operand: &Operand<'_>, budget: &mut Budget) -> Result<Value, Fault> {
    match operand {
        Operand::Json(text) => read::parse_held(text, budget),
        Operand::Text(text) => Ok(Value::text(text)),
        Operand::Int(int) => Ok(Value::Int(*int)),
        Operand::Null => Ok(Value::Null),
        Operand::Record(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for (name, field) in fields {
                entries.push((Key::Text(Arc::from(*name)), held_value(field, budget)?));
            }
            Ok(Value::Map(Arc::new(Map::from_entries(entries))))
        }
    }
}
