//! Who waits for whom, as numbers.

use super::{
    super::{cycle, definition::Step, pointer::Pointer, problem::Code},
    document::Context,
    step::Read,
};
use crate::model::{Plan, StepIndex};

/// How many cycles one answer shows; they share no step.
const CYCLES_MAX: usize = 20;

/// How many steps of a cycle are shown.
const CYCLE_SHOWN: usize = 20;

/// Makes a plan of the steps, when they are all there and none waits for itself.
pub fn plan(read: Vec<Read>, context: &mut Context<'_>) -> Option<(Plan, Vec<Step>)> {
    refuse_cycles(&read, context);
    if !context.problems.is_empty() {
        return None;
    }
    let mut numbers = Vec::with_capacity(read.len());
    let mut steps = Vec::with_capacity(read.len());
    for Read { id, step, depends_on } in read {
        let step = step?;
        let index = |on| StepIndex(u32::try_from(on).expect("a document has few steps"));
        numbers.push((id?, Read::plan_kind(&step), depends_on.into_iter().map(index).collect()));
        steps.push(step);
    }
    Some((Plan::new(numbers), steps))
}

fn refuse_cycles(read: &[Read], context: &mut Context<'_>) {
    let edges = read.iter().map(|step| step.depends_on.iter().copied().collect()).collect();
    for cycle in cycle::find_disjoint(edges, CYCLES_MAX) {
        let name = |number: &usize| read[*number].id.as_ref().map_or("?", |id| id.as_str());
        let mut names: Vec<_> = cycle.iter().take(CYCLE_SHOWN).map(name).collect();
        if cycle.len() > CYCLE_SHOWN {
            names.push("…");
        }
        names.push(name(&cycle[0]));
        let message = format!("these steps wait for each other: {}", names.join(" → "));
        context.problems.push(&Pointer::root().key("steps").item(cycle[0]), Code::Cycle, message);
    }
}
