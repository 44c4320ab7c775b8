//! The document's numbers: which steps there are, of what kind, and who waits for whom. Built by `workflow` once for each
//! definition; the fold reads it and nothing else of a document.

use std::collections::HashMap;

use super::id::{SignalName, StepId, UnitKey};

/// A step's place in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepIndex(pub u32);

impl StepIndex {
    /// Returns the place as an index into per-step lists.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// What the fold must know of a step's kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Work for a module or a worker.
    Task,
    /// A value that the engine evaluates.
    Compute,
    /// A durable timer.
    Sleep,
    /// Takes the oldest unconsumed signal of this name.
    Await(SignalName),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// Its id in the document.
    pub id: StepId,
    /// The key of its unit.
    pub unit: UnitKey,
    /// Its kind.
    pub kind: StepKind,
    /// The steps that must be resolved before it starts, ascending.
    pub depends_on: Vec<StepIndex>,
    /// The steps that wait for it, ascending: the inverse of `depends_on`.
    pub dependants: Vec<StepIndex>,
}

/// The numbers of one definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<PlanStep>,
    by_unit: HashMap<UnitKey, StepIndex>,
}

impl Plan {
    /// Builds a plan from steps in document order with their dependencies, which must be free of cycles and in range.
    /// `dependants` are made here.
    pub fn new(steps: impl IntoIterator<Item = (StepId, StepKind, Vec<StepIndex>)>) -> Self {
        let mut plan = Self::default();
        for (at, (id, kind, mut depends_on)) in steps.into_iter().enumerate() {
            depends_on.sort_unstable();
            depends_on.dedup();
            let unit = UnitKey::from(&id);
            let index = StepIndex(u32::try_from(at).expect("a document has at most 1,000 steps"));
            plan.by_unit.insert(unit.clone(), index);
            plan.steps.push(PlanStep { id, unit, kind, depends_on, dependants: Vec::new() });
        }
        for at in 0..plan.steps.len() {
            for on in plan.steps[at].depends_on.clone() {
                let index = StepIndex(u32::try_from(at).expect("counted above"));
                plan.steps[on.at()].dependants.push(index);
            }
        }
        plan
    }

    /// Returns the steps in document order.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Returns one step. The index must come from this plan.
    pub fn step(&self, index: StepIndex) -> &PlanStep {
        &self.steps[index.at()]
    }

    /// Returns the step that a unit is an instance of.
    pub fn step_of(&self, unit: &UnitKey) -> Option<StepIndex> {
        self.by_unit.get(unit).copied()
    }

    /// Returns every index, ascending.
    pub fn indexes(&self) -> impl Iterator<Item = StepIndex> + use<> {
        (0..u32::try_from(self.steps.len()).expect("a document has at most 1,000 steps")).map(StepIndex)
    }
}
