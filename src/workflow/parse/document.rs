//! The top of a document.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{
    super::{
        canonical,
        definition::{Contract, Definition, Step},
        expression::Template,
        pointer::Pointer,
        problem::{Code, Problem, Problems},
        schema::{Allowance, Schema},
    },
    IR_VERSIONS, Limits,
    fields::{Fields, Part},
    hint, keys, order, step, task,
    text::{Readable, Reader},
};
use crate::model::{DefinitionHash, Plan, SignalName, TaskName, id::Invalid};

/// What is known of the document, and what is wrong with it.
#[derive(Default)]
pub struct Context<'v> {
    /// What is wrong.
    pub problems: Problems,
    /// The steps by id, with their place in the document.
    pub steps: HashMap<&'v str, usize>,
    /// The declared signals.
    pub signals: BTreeSet<SignalName>,
    allowance: Allowance,
    hints: usize,
}

/// How many unknown steps get a hint: each is compared with every step.
const HINTS_MAX: usize = 50;

impl Context<'_> {
    /// Returns the sentence for a step that is not there.
    pub fn unknown_step(&mut self, id: &str) -> String {
        self.hints += 1;
        let compared = if self.hints <= HINTS_MAX { self.steps.len() } else { 0 };
        hint::unknown("step", id, self.steps.keys().copied().take(compared))
    }

    fn schema(&mut self, part: Option<Part<'_>>) -> Option<Schema> {
        let part = part?;
        let schema = Schema::parse_within(part.value, &part.at, &mut self.allowance);
        schema.map_err(|found| found.into_iter().for_each(|problem| self.problems.add(problem))).ok()
    }
}

/// Reads a document.
pub fn read(value: &Value, limits: &Limits) -> Result<Definition, Vec<Problem>> {
    let mut context = Context::default();
    let whole = Part { value, at: Pointer::root() };
    let fields = whole.fields(&mut context.problems);
    let definition = fields.and_then(|fields| read_fields(&fields, value, limits, &mut context));
    match definition {
        Some(definition) if context.problems.is_empty() => Ok(definition),
        _ => Err(context.problems.into_sorted()),
    }
}

fn read_fields<'v>(
    fields: &Fields<'v>,
    value: &Value,
    limits: &Limits,
    context: &mut Context<'v>,
) -> Option<Definition> {
    fields.check_keys(keys::DOCUMENT, &[], &mut context.problems);
    check_version(fields, &mut context.problems);
    let hash = check_hash(fields, value, &mut context.problems);
    check_handlers(fields, &mut context.problems);
    let problems = &mut context.problems;
    let name = fields.need("name", problems).and_then(|part| part.id(problems));
    let version = fields.need("version", problems).and_then(|part| part.id(problems));
    let description = fields.get("description").and_then(|part| part.text(problems)).map(str::to_owned);
    let input = context.schema(fields.get("input"));
    let output = context.schema(fields.get("output"));
    let contracts = read_contracts(fields, context);
    let signals = read_signals(fields, context);
    let steps = read_steps(fields, limits, context);
    let timeout = fields.get("timeout").and_then(|part| Reader::new(context, Readable::Nothing).time_limit(&part));
    let result = fields.get("result").and_then(|part| Reader::new(context, Readable::Every).template(&part));
    let queries = read_queries(fields, context);
    let (plan, steps) = steps?;
    Some(Definition {
        name: name?,
        version: version?,
        hash,
        description,
        plan,
        steps,
        timeout,
        input,
        output,
        signals,
        queries,
        contracts,
        result,
    })
}

fn check_version(fields: &Fields<'_>, problems: &mut Problems) {
    let Some(part) = fields.need("ir_version", problems) else { return };
    if !part.value.as_str().is_some_and(|version| IR_VERSIONS.contains(&version)) {
        let message = format!("the supported versions are: {}", IR_VERSIONS.join(", "));
        problems.push(&part.at, Code::UnsupportedVersion, message);
    }
}

fn check_hash(fields: &Fields<'_>, value: &Value, problems: &mut Problems) -> DefinitionHash {
    let hash = canonical::definition_hash(value);
    if let Some(part) = fields.get("definition_hash")
        && let Some(stated) = part.text(problems)
        && stated != hash.as_str()
    {
        problems.push(&part.at, Code::HashMismatch, format!("the hash of this document is {hash}"));
    }
    hash
}

fn check_handlers(fields: &Fields<'_>, problems: &mut Problems) {
    if let Some(handlers) = fields.get("on").and_then(|part| part.fields(problems)) {
        handlers.check_keys(keys::HANDLERS, keys::HANDLERS, problems);
    }
}

/// Reads an object whose keys are names of one kind.
fn named<'v, T: std::str::FromStr<Err = Invalid>>(
    fields: &Fields<'v>,
    key: &str,
    problems: &mut Problems,
) -> Vec<(Option<T>, Part<'v>)> {
    let Some(members) = fields.get(key).and_then(|part| part.fields(problems)) else { return Vec::new() };
    let read = |(name, part): (&str, Part<'v>)| {
        let name = name.parse().map_err(|invalid: Invalid| part.wrong(invalid.to_string(), problems)).ok();
        (name, part)
    };
    members.all().map(read).collect()
}

fn read_contracts(fields: &Fields<'_>, context: &mut Context<'_>) -> HashMap<TaskName, Contract> {
    let mut contracts = HashMap::new();
    for (name, part) in named(fields, "contracts", &mut context.problems) {
        let Some(fields) = part.fields(&mut context.problems) else { continue };
        fields.check_keys(keys::CONTRACT, &[], &mut context.problems);
        let version = fields.get("version").and_then(|part| part.id(&mut context.problems));
        let contract = Contract {
            version,
            input: context.schema(fields.get("input")),
            output: context.schema(fields.get("output")),
        };
        if let Some(name) = name {
            contracts.insert(name, contract);
        }
    }
    contracts
}

fn read_signals(fields: &Fields<'_>, context: &mut Context<'_>) -> BTreeMap<SignalName, Option<Schema>> {
    let mut signals = BTreeMap::new();
    for (name, part) in named::<SignalName>(fields, "signals", &mut context.problems) {
        // A signal whose declaration is wrong is declared: awaits of it have no problem of their own.
        context.signals.extend(name.clone());
        let Some(fields) = part.fields(&mut context.problems) else { continue };
        fields.check_keys(keys::SIGNAL, &[], &mut context.problems);
        let payload = context.schema(fields.get("payload"));
        if let Some(name) = name {
            signals.insert(name, payload);
        }
    }
    signals
}

fn read_queries<'v>(fields: &Fields<'v>, context: &mut Context<'v>) -> BTreeMap<SignalName, Template> {
    let mut queries = BTreeMap::new();
    for (name, part) in named(fields, "queries", &mut context.problems) {
        let template = Reader::new(context, Readable::Every).template(&part);
        if let (Some(name), Some(template)) = (name, template) {
            queries.insert(name, template);
        }
    }
    queries
}

fn read_steps<'v>(fields: &Fields<'v>, limits: &Limits, context: &mut Context<'v>) -> Option<(Plan, Vec<Step>)> {
    let defaults = fields.get("defaults").and_then(|part| part.fields(&mut context.problems));
    if let Some(defaults) = &defaults {
        task::check_defaults(defaults, &mut Reader::new(context, Readable::Nothing));
    }
    let part = fields.need("steps", &mut context.problems)?;
    if part.value.get("sequential").is_some() {
        let message = super::fields::not_yet("sequential");
        context.problems.push(&part.at.key("sequential"), Code::Unsupported, message);
        return None;
    }
    let items = part.items(&mut context.problems)?;
    if items.len() > limits.steps {
        let message = format!("the document has {} steps; at most {} are allowed", items.len(), limits.steps);
        context.problems.push(&part.at, Code::Limit, message);
        return None;
    }
    let opened: Vec<_> = items.iter().map(|item| item.fields(&mut context.problems)).collect();
    let ids: Vec<_> = opened
        .iter()
        .enumerate()
        .map(|(number, fields)| fields.as_ref().and_then(|fields| step::read_id(fields, number, context)))
        .collect();
    let steps = opened.into_iter().zip(ids).enumerate().map(|(number, (fields, id))| match fields {
        Some(fields) => step::read(&fields, id, number, defaults.as_ref(), context),
        None => step::Read { id: None, step: None, depends_on: BTreeSet::new() },
    });
    let steps = steps.collect();
    order::plan(steps, context)
}
