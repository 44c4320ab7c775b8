//! JSON Schema 2020-12 for inputs, outputs and signals, by the `jsonschema` crate.
//!
//! - [`Schema`]: compiled once for each definition; [`check`](Schema::check) says what does not fit and where
//! - [`Violation`]: one finding
//! - [`Allowance`]: how much schema one document may hold
//!
//! Authors of schemas and of values are not trusted. Patterns run on the linear engine, so look-around is refused;
//! references stay inside their schema, so nothing is fetched; `shape` refuses what would make a check endless;
//! `paid` stops one that is too long. `format` is an annotation, as the standard has it by default.
//!
//! Absent on purpose: other drafts, `$dynamicRef`, and `$id` below the top.

mod defaults;
mod explain;
mod paid;
mod shape;
mod stack;

use std::sync::OnceLock;

use serde_json::Value;

pub use explain::Violation;

use super::{
    pointer::Pointer,
    problem::{Code, Problem},
};

/// A JSON Schema, ready to check values.
pub struct Schema {
    source: Value,
    decider: Decider,
    explainer: explain::Explainer,
}

/// What decides whether a value fits.
struct Decider {
    /// Where the work is bounded by the sizes of schema and value multiplied.
    plain: Option<jsonschema::Validator>,
    /// Where that is too much, or the work could double with each level of the value.
    paid: OnceLock<Option<paid::Paid>>,
    /// What a check may visit for one value.
    written_out: u64,
}

/// How much work is done without counting: a value in a schema each.
const UNCOUNTED_MAX: u64 = 20_000_000;

/// What deciding on one value may cost where it is counted, in schemas tried.
const BUDGET: usize = 20_000_000;

impl Decider {
    fn compile(source: &Value, shape: &shape::Shape) -> Result<Self, jsonschema::ValidationError<'static>> {
        let mut decider = Self { plain: None, paid: OnceLock::new(), written_out: shape.written_out };
        if shape.recursive {
            decider.paid = OnceLock::from(Some(paid::compile(source.clone())?));
        } else {
            decider.plain = Some(options().build(source)?);
        }
        Ok(decider)
    }

    /// Returns whether `value` fits; none when that takes too long.
    fn fits(&self, source: &Value, value: &Value) -> Option<bool> {
        let values_max = UNCOUNTED_MAX / self.written_out.max(1);
        if let Some(plain) = &self.plain
            && count_to(value, values_max) < values_max
        {
            return Some(plain.is_valid(value));
        }
        let compile = || stack::with_room(|| paid::compile(source.clone()).ok()).flatten();
        let paid = self.paid.get_or_init(compile).as_ref()?;
        paid.within(BUDGET, |validator| validator.is_valid(value))
    }
}

/// Counts the values in `value`, no further than `max`.
fn count_to(value: &Value, max: u64) -> u64 {
    let mut count = 0;
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        count += 1;
        if count >= max {
            break;
        }
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => todo.extend(members.values()),
            _ => {}
        }
    }
    count
}

/// How much schema one document may hold: compiled schemas live as long as their definition and take many times the
/// size of their text.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// JSON values in all schemas together.
    pub values: usize,
    /// Regular expressions in all schemas together.
    pub patterns: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { values: 50_000, patterns: 200 }
    }
}

/// The size of one compiled regular expression and of its cache, each, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

impl Schema {
    /// Compiles `source`, which stands at `pointer` in its document.
    pub fn parse(source: &Value, pointer: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_within(source, &Pointer::root().join(pointer), &mut Allowance::default())
    }

    /// As [`parse`](Self::parse), taking what the schema needs from `allowance`.
    pub fn parse_within(source: &Value, at: &Pointer, allowance: &mut Allowance) -> Result<Self, Vec<Problem>> {
        // Compilers and meta-schemas walk a schema by recursion, with frames that its author makes deep.
        stack::with_room(|| Self::compile(source, at, allowance))
            .unwrap_or_else(|| Err(vec![Problem::new(at, Code::Schema, "the schema could not be compiled")]))
    }

    fn compile(source: &Value, at: &Pointer, allowance: &mut Allowance) -> Result<Self, Vec<Problem>> {
        shape::count(source, at, allowance)?;
        let mut shape = shape::look(source, at, allowance);
        shape.problems.extend(meta_problems(source, at));
        if !shape.problems.is_empty() {
            return Err(shape.problems);
        }
        let decider = Decider::compile(source, &shape).map_err(|error| vec![build_problem(&error, at)])?;
        Ok(Self { source: source.clone(), decider, explainer: explain::Explainer::default() })
    }

    /// Returns nothing when `value` fits, else what does not: at most `explain::VIOLATIONS_MAX` findings.
    ///
    /// The cost is bounded: milliseconds for what people write, about a second for the worst. Not for a lane.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        match self.decider.fits(&self.source, value) {
            Some(true) => Ok(()),
            Some(false) => Err(self.explainer.explain(&self.source, value)),
            None => {
                Err(vec![Violation::new("", "the value is too large for a schema with so many alternatives".into())])
            }
        }
    }

    /// Adds the `default` of every missing property, through `properties` only, and returns whether anything was added.
    pub fn fill_defaults(&self, value: &mut Value) -> bool {
        defaults::fill(&self.source, value)
    }

    /// Returns the schema as its author wrote it.
    pub fn source(&self) -> &Value {
        &self.source
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Schema").field(&self.source).finish()
    }
}

fn options() -> jsonschema::ValidationOptions<'static> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(false)
        .offline()
        .with_pattern_options(patterns)
}

/// Says where a schema breaks the rules for schemas.
fn meta_problems(source: &Value, at: &Pointer) -> Vec<Problem> {
    let meta = jsonschema::draft202012::meta::validator();
    let errors = meta.iter_errors(source);
    errors
        .map(|error| Problem::new(&at.join(error.instance_path().as_str()), Code::Schema, meta_sentence(&error)))
        .collect()
}

fn meta_sentence(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    let of_type = place.rsplit('/').find(|part| part.parse::<u32>().is_err()) == Some("type");
    let choice = matches!(error.kind(), jsonschema::error::ValidationErrorKind::AnyOf { .. });
    if of_type && choice {
        "a type is one of `null`, `boolean`, `object`, `array`, `number`, `integer`, `string`, or a list of them".into()
    } else {
        error.to_string()
    }
}

fn build_problem(error: &jsonschema::ValidationError<'_>, at: &Pointer) -> Problem {
    let place = at.join(error.instance_path().as_str());
    if place.as_str().ends_with("/pattern") || place.as_str().contains("/patternProperties") {
        let message = format!(
            "{error} of the linear engine: look-around and back-references are not supported, nor are huge repetitions"
        );
        return Problem::new(&place, Code::Schema, message);
    }
    Problem::new(&place, Code::Schema, error.to_string())
}

#[cfg(test)]
mod tests;
