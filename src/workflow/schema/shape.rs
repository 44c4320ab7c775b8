//! The shape of a schema: which schemas it holds and where they lead, checked before anything is compiled.
//!
//! A check visits, for one value, every schema that applies to it, and follows references each time: forty definitions
//! that each name the next one twice would cost 2^40 visits. So references are counted as if they were written out, and
//! refused past a limit. References that lead back, for values nested in themselves, cannot be counted so; a schema
//! with such is [`Shape::recursive`] and checked under a budget.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Allowance;
use crate::workflow::{
    cycle,
    pointer::Pointer,
    problem::{Code, Problem},
};

/// How many schemas a schema may hold when its references are written out.
const WRITTEN_OUT_MAX: u64 = 10_000;

/// How many schemas may apply to one value by leading to each other: what a check recurses into per level of the value.
const CHAIN_MAX: usize = 32;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a keyword holds.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    /// One schema.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by name.
    Names,
}

/// What a schema that stands under a keyword applies to.
#[derive(Clone, Copy, PartialEq)]
enum Applies {
    /// The same value.
    Here,
    /// Members or elements of it.
    Below,
    /// Nothing until a reference names it.
    Nowhere,
}

/// Every keyword that holds schemas.
const KEYWORDS: &[(&str, Holds, Applies)] = &[
    ("allOf", Holds::List, Applies::Here),
    ("anyOf", Holds::List, Applies::Here),
    ("oneOf", Holds::List, Applies::Here),
    ("not", Holds::Schema, Applies::Here),
    ("if", Holds::Schema, Applies::Here),
    ("then", Holds::Schema, Applies::Here),
    ("else", Holds::Schema, Applies::Here),
    ("dependentSchemas", Holds::Names, Applies::Here),
    ("dependencies", Holds::Names, Applies::Here),
    ("properties", Holds::Names, Applies::Below),
    ("patternProperties", Holds::Names, Applies::Below),
    ("additionalProperties", Holds::Schema, Applies::Below),
    ("unevaluatedProperties", Holds::Schema, Applies::Below),
    ("propertyNames", Holds::Schema, Applies::Below),
    ("items", Holds::Schema, Applies::Below),
    ("additionalItems", Holds::Schema, Applies::Below),
    ("prefixItems", Holds::List, Applies::Below),
    ("unevaluatedItems", Holds::Schema, Applies::Below),
    ("contains", Holds::Schema, Applies::Below),
    ("contentSchema", Holds::Schema, Applies::Below),
    ("$defs", Holds::Names, Applies::Nowhere),
    ("definitions", Holds::Names, Applies::Nowhere),
];

/// Takes the JSON values of `source` from the allowance of its document.
pub fn count(source: &Value, at: &Pointer, allowance: &mut Allowance) -> Result<(), Vec<Problem>> {
    let mut todo = vec![source];
    while let Some(value) = todo.pop() {
        let Some(left) = allowance.values.checked_sub(1) else {
            let message = "the schemas of one document may hold at most 50,000 values together";
            return Err(vec![Problem::new(at, Code::Limit, message)]);
        };
        allowance.values = left;
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => todo.extend(members.values()),
            _ => {}
        }
    }
    Ok(())
}

/// Calls `visit` for every schema object in `source`, inner ones first.
pub fn for_each_schema(source: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = source else { return };
    for (keyword, holds, _) in KEYWORDS {
        match (schema.get_mut(*keyword), holds) {
            (Some(inner), Holds::Schema) => for_each_schema(inner, visit),
            (Some(Value::Array(items)), Holds::List) => items.iter_mut().for_each(|item| for_each_schema(item, visit)),
            (Some(Value::Object(names)), Holds::Names) => {
                names.values_mut().for_each(|named| for_each_schema(named, visit));
            }
            _ => {}
        }
    }
    visit(schema);
}

/// Returns how many schemas `schema` itself tries for one value, at least 1.
pub fn branches(schema: &Map<String, Value>) -> usize {
    let tried = KEYWORDS.iter().map(|(keyword, _, applies)| match (schema.get(*keyword), applies) {
        (Some(Value::Array(items)), Applies::Here | Applies::Below) => items.len(),
        (Some(Value::Object(named)), Applies::Here) => named.len(),
        (Some(Value::Object(named)), _) if *keyword == "patternProperties" => named.len(),
        _ => 0,
    });
    1 + tried.sum::<usize>()
}

/// What a look at a schema found.
pub struct Shape {
    /// Whether a reference leads back, so that the depth of a check is that of the value.
    pub recursive: bool,
    /// How many schemas there are when references are written out: what a check may visit for one value.
    pub written_out: u64,
    /// What is wrong with its references and its size.
    pub problems: Vec<Problem>,
}

/// Looks at the references and the size of `source`, taking its patterns from `allowance`.
pub fn look(source: &Value, at: &Pointer, allowance: &mut Allowance) -> Shape {
    let mut walk = Walk { at, allowance, schemas: Vec::new(), by_place: HashMap::new(), problems: Vec::new() };
    walk.enter(source, Pointer::root());
    walk.follow_references();
    let (recursive, written_out) = if walk.problems.is_empty() { walk.measure() } else { (false, 0) };
    Shape { recursive, written_out, problems: walk.problems }
}

/// One schema of a schema.
struct Schema<'s> {
    place: Pointer,
    source: Option<&'s Map<String, Value>>,
    here: Vec<usize>,
    below: Vec<usize>,
    reference: Option<usize>,
}

struct Walk<'s, 'w> {
    /// Where the whole schema stands in its document.
    at: &'w Pointer,
    allowance: &'w mut Allowance,
    schemas: Vec<Schema<'s>>,
    /// Schemas by what a reference may call them: a pointer from the top, or an anchor.
    by_place: HashMap<String, usize>,
    problems: Vec<Problem>,
}

impl<'s> Walk<'s, '_> {
    fn problem(&mut self, place: &Pointer, code: Code, message: impl Into<String>) {
        self.problems.push(Problem::new(&self.at.join(place.as_str()), code, message));
    }

    /// Notes a schema and all that it holds, and returns its number. What is no schema is left to the meta-schema.
    fn enter(&mut self, value: &'s Value, place: Pointer) -> Option<usize> {
        let source = match value {
            Value::Bool(_) => None,
            Value::Object(schema) => Some(schema),
            _ => return None,
        };
        let number = self.schemas.len();
        self.by_place.insert(place.as_str().to_owned(), number);
        self.schemas.push(Schema {
            place: place.clone(),
            source,
            here: Vec::new(),
            below: Vec::new(),
            reference: None,
        });
        if let Some(schema) = source {
            self.check_keywords(schema, &place, number);
            for (keyword, holds, applies) in KEYWORDS {
                if let Some(held) = schema.get(*keyword) {
                    let inner = self.enter_held(held, &place.key(keyword), *holds);
                    match applies {
                        Applies::Here => self.schemas[number].here.extend(inner),
                        Applies::Below => self.schemas[number].below.extend(inner),
                        Applies::Nowhere => {}
                    }
                }
            }
        }
        Some(number)
    }

    fn enter_held(&mut self, held: &'s Value, place: &Pointer, holds: Holds) -> Vec<usize> {
        match (held, holds) {
            (_, Holds::Schema) => self.enter(held, place.clone()).into_iter().collect(),
            (Value::Array(items), Holds::List) => {
                items.iter().enumerate().filter_map(|(at, item)| self.enter(item, place.item(at))).collect()
            }
            (Value::Object(names), Holds::Names) => {
                names.iter().filter_map(|(name, named)| self.enter(named, place.key(name))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Checks the keywords that decide what other keywords mean, and counts patterns.
    fn check_keywords(&mut self, schema: &'s Map<String, Value>, place: &Pointer, number: usize) {
        for keyword in ["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"] {
            if schema.contains_key(keyword) {
                let message = format!("`{keyword}` is not supported; use `$ref` and `$anchor`");
                self.problem(&place.key(keyword), Code::Schema, message);
            }
        }
        if let Some(dialect) = schema.get("$schema")
            && dialect.as_str().is_none_or(|dialect| dialect.trim_end_matches('#') != DIALECT)
        {
            self.problem(&place.key("$schema"), Code::Schema, format!("the only dialect is `{DIALECT}`"));
        }
        if schema.contains_key("$id") && !place.as_str().is_empty() {
            self.problem(&place.key("$id"), Code::Schema, "`$id` is supported only at the top of a schema");
        }
        if let Some(Value::String(anchor)) = schema.get("$anchor")
            && self.by_place.insert(format!("#{anchor}"), number).is_some()
        {
            self.problem(&place.key("$anchor"), Code::Schema, format!("the anchor `{anchor}` is there twice"));
        }
        let named = schema.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        let patterns = named + usize::from(schema.contains_key("pattern"));
        match self.allowance.patterns.checked_sub(patterns) {
            Some(left) => self.allowance.patterns = left,
            None => {
                self.problem(place, Code::Limit, "the schemas of one document may hold at most 200 patterns together")
            }
        }
    }

    fn follow_references(&mut self) {
        for number in 0..self.schemas.len() {
            let Some(Value::String(reference)) = self.schemas[number].source.and_then(|schema| schema.get("$ref"))
            else {
                continue;
            };
            let target = match target_name(reference) {
                Some(name) => self.by_place.get(&name).copied().ok_or("there is no schema at"),
                None => Err("nothing outside of the schema is fetched, so a reference begins with `#`; this one is"),
            };
            match target {
                Ok(target) => self.schemas[number].reference = Some(target),
                Err(what) => {
                    let place = self.schemas[number].place.key("$ref");
                    self.problem(&place, Code::Schema, format!("{what} `{reference}`"));
                }
            }
        }
    }

    /// Refuses what would make a check endless or too long; returns whether a reference leads back, and the number of
    /// schemas when references are written out.
    fn measure(&mut self) -> (bool, u64) {
        let here: Vec<Vec<usize>> =
            self.schemas.iter().map(|schema| schema.here.iter().copied().chain(schema.reference).collect()).collect();
        if let Some(cycle) = cycle::find(&here) {
            let through = cycle.into_iter().find(|number| self.schemas[*number].reference.is_some());
            let place = through.map_or_else(Pointer::root, |number| self.schemas[number].place.key("$ref"));
            self.problem(&place, Code::Schema, "the reference leads back to itself without going into the value");
            return (true, 0);
        }
        let edges: Vec<Vec<usize>> =
            self.schemas.iter().zip(&here).map(|(s, h)| [h.as_slice(), &s.below].concat()).collect();
        let component = cycle::components(&edges);
        if self.longest_chain(&here) > CHAIN_MAX {
            let message = format!("more than {CHAIN_MAX} schemas lead to each other for one and the same value");
            self.problem(&Pointer::root(), Code::Limit, message);
        }
        let written_out = self.written_out(&component);
        if written_out > WRITTEN_OUT_MAX {
            let message = format!("with its references written out, it holds more than {WRITTEN_OUT_MAX} schemas");
            self.problem(&Pointer::root(), Code::Limit, message);
        }
        let lead_back = |(number, schema): (usize, &Schema<'_>)| {
            schema.reference.is_some_and(|to| component[to] == component[number])
        };
        (self.schemas.iter().enumerate().any(lead_back), written_out)
    }

    /// Returns the longest path of schemas that apply to one value. `here` has no cycle.
    fn longest_chain(&self, here: &[Vec<usize>]) -> usize {
        let mut longest = vec![1; here.len()];
        for number in inner_first(here) {
            longest[number] = 1 + here[number].iter().map(|next| longest[*next]).max().unwrap_or(0);
        }
        longest.into_iter().max().unwrap_or(0)
    }

    /// Returns how many schemas there are when references are written out, but for those that lead back.
    fn written_out(&self, component: &[usize]) -> u64 {
        let edges: Vec<Vec<usize>> = self
            .schemas
            .iter()
            .enumerate()
            .map(|(number, schema)| {
                let away = schema.reference.filter(|target| component[*target] != component[number]);
                schema.here.iter().chain(&schema.below).copied().chain(away).collect()
            })
            .collect();
        let mut size = vec![1u64; edges.len()];
        for number in inner_first(&edges) {
            let inner = edges[number].iter().fold(1u64, |sum, next| sum.saturating_add(size[*next]));
            // To know what is left over, the crate visits the other keywords of such a schema once more.
            let source = self.schemas[number].source;
            let twice = ["unevaluatedProperties", "unevaluatedItems"]
                .iter()
                .any(|keyword| source.is_some_and(|schema| schema.contains_key(*keyword)));
            size[number] = if twice { inner.saturating_mul(2) } else { inner };
        }
        size.first().copied().unwrap_or(0)
    }
}

/// Returns the nodes so that each comes after all that it leads to. The graph has no cycle.
fn inner_first(edges: &[Vec<usize>]) -> Vec<usize> {
    let component = cycle::components(edges);
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_unstable_by_key(|node| component[*node]);
    order
}

/// Returns what a reference calls its target: a pointer, or `#` and an anchor; none when it leads outside.
fn target_name(reference: &str) -> Option<String> {
    let fragment = percent_decoded(reference.strip_prefix('#')?)?;
    Some(if fragment.is_empty() || fragment.starts_with('/') { fragment } else { format!("#{fragment}") })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let hex = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}
