//! When a task is tried again, and how long it may take.

use super::{
    super::{
        definition::{Retry, Span, Timeouts},
        problem::{Code, Problems},
    },
    fields::{Fields, Part},
    text::Reader,
};
use crate::model::{Millis, code};

/// How many codes a list may name.
const CODES_MAX: usize = 100;

/// How long an attempt may take where the document says nothing.
const ATTEMPT: Millis = Millis(5 * 60_000);

/// A step's own object above that of `defaults`.
#[derive(Clone)]
pub struct Layers<'v> {
    own: Option<Fields<'v>>,
    under: Option<Fields<'v>>,
}

impl<'v> Layers<'v> {
    /// Puts `own` above `under`.
    pub fn new(own: Option<Fields<'v>>, under: Option<Fields<'v>>) -> Self {
        Self { own, under }
    }

    /// Returns the member of the upper object, else of the lower.
    pub fn get(&self, key: &str) -> Option<Part<'v>> {
        let of = |fields: &Option<Fields<'v>>| fields.as_ref().and_then(|fields| fields.get(key));
        of(&self.own).or_else(|| of(&self.under))
    }

    /// Returns the members of that name as layers of their own.
    pub fn inner(&self, key: &str, known: &[&str], problems: &mut Problems) -> Self {
        let mut open = |fields: &Option<Fields<'v>>| {
            let inner = fields.as_ref()?.get(key)?.fields(problems)?;
            inner.check_keys(known, &[], problems);
            Some(inner)
        };
        Self { own: open(&self.own), under: open(&self.under) }
    }
}

/// Reads `retry`. What is wrong gets a problem and its default.
pub fn retry(layers: &Layers<'_>, problems: &mut Problems) -> Retry {
    let mut retry = Retry::default();
    let mut count = |key: &str, into: &mut u32| {
        if let Some(number) = layers.get(key).and_then(|part| part.whole(0..=u64::from(u32::MAX), problems)) {
            *into = u32::try_from(number).expect("the range was checked");
        }
    };
    count("max_attempts", &mut retry.max_attempts);
    count("max_redeliveries", &mut retry.max_redeliveries);
    if let Some(part) = layers.get("factor")
        && let Some(factor) = part.number("of at least 1", |factor| factor >= 1.0, problems)
    {
        retry.factor = factor;
    }
    if let Some(part) = layers.get("jitter")
        && let Some(jitter) = part.number("from 0 to 1", |jitter| (0.0..=1.0).contains(&jitter), problems)
    {
        retry.jitter = jitter;
    }
    delays(layers, &mut retry, problems);
    retry.retryable = codes(layers.get("retryable"), problems);
    retry.non_retryable = codes(layers.get("non_retryable"), problems);
    retry
}

fn delays(layers: &Layers<'_>, retry: &mut Retry, problems: &mut Problems) {
    if let Some(part) = layers.get("initial")
        && let Some(initial) = duration(&part, problems)
    {
        if initial == Millis(0) {
            // C006: a first delay of nothing stays nothing however it grows, and failing work runs hot.
            problems.push(&part.at, Code::Duration, "the first delay must be longer than nothing");
            return;
        }
        retry.initial = initial;
    }
    match layers.get("max") {
        // The default bends to a longer first delay; a limit that was written does not.
        None => retry.max = retry.max.max(retry.initial),
        Some(part) => {
            if let Some(max) = duration(&part, problems) {
                if max < retry.initial {
                    let message = format!("the longest delay is shorter than the first, which is {}", retry.initial);
                    problems.push(&part.at, Code::Duration, message);
                }
                retry.max = max;
            }
        }
    }
}

/// Reads a duration that cannot be a template.
fn duration(part: &Part<'_>, problems: &mut Problems) -> Option<Millis> {
    let read = Millis::parse(part.value.as_str().unwrap_or_default());
    read.map_err(|error| problems.push(&part.at, Code::Duration, error.to_string())).ok()
}

fn codes(part: Option<Part<'_>>, problems: &mut Problems) -> Vec<code::Code> {
    let Some(items) = part.as_ref().and_then(|part| part.items(problems)) else { return Vec::new() };
    if items.len() > CODES_MAX
        && let Some(part) = part
    {
        problems.push(&part.at, Code::Limit, format!("at most {CODES_MAX} codes can be listed"));
        return Vec::new();
    }
    let mut code = |item: &Part<'_>| {
        let read = code::Code::new(item.text(problems)?);
        read.map_err(|invalid| item.wrong(invalid.to_string(), problems)).ok()
    };
    items.iter().filter_map(&mut code).collect()
}

/// Reads `timeouts`.
pub fn timeouts(layers: &Layers<'_>, reader: &mut Reader<'_, '_>) -> Timeouts {
    let mut limit = |key: &str| layers.get(key).and_then(|part| reader.time_limit(&part));
    Timeouts {
        attempt: limit("attempt").unwrap_or(Span::Fixed(ATTEMPT)),
        heartbeat: limit("heartbeat"),
        queue: limit("queue"),
        total: limit("total"),
    }
}
