//! One turn of one execution: records events, each through the fold at once, and derives the effects on rows.

use super::{
    decision::{Answer, Decision, Effect},
    rows::ready_row,
};
use crate::{
    model::{
        Event, Execution, Facts, StepIndex, Timestamp, UnitStatus,
        fold::{apply, timers_of},
        row::{TimerKey, TimerRow},
    },
    workflow::{Definition, expression::Budget},
};

/// A turn under way.
pub(super) struct Turn<'a> {
    pub(super) execution: &'a mut Execution,
    pub(super) definition: &'a Definition,
    pub(super) facts: &'a Facts,
    pub(super) now: Timestamp,
    events: Vec<Event>,
    effects: Vec<Effect>,
    steps_spent: u64,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        execution: &'a mut Execution,
        definition: &'a Definition,
        facts: &'a Facts,
        now: Timestamp,
    ) -> Self {
        Self { execution, definition, facts, now, events: Vec::new(), effects: Vec::new(), steps_spent: 0 }
    }

    /// Whether the turn reached its bound, counted so that a replay cuts it at the same place.
    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= self.facts.limits.turn_events || self.steps_spent >= self.facts.limits.turn_steps
    }

    /// Charges the turn for what an evaluation spent.
    pub(super) fn charge(&mut self, budget: &Budget) {
        self.steps_spent += budget.steps_spent();
    }

    /// Records an event, and what it means for the unit's ready row and timers.
    pub(super) fn record(&mut self, event: impl Into<Event>) {
        let event = event.into();
        let index = event.unit().and_then(|unit| self.definition.plan.step_of(unit));
        let scheduled_before = index.is_some_and(|index| self.is_scheduled(index));
        let timers_before = self.timers_touched(index);
        apply(self.execution, &self.definition.plan, &event, self.now);
        for timer in timers_before {
            if !self.execution.timers.contains_key(&timer) {
                self.effects.push(Effect::Disarm(timer));
            }
        }
        if let Some(index) = index {
            self.derive_work(index, scheduled_before, &event);
        }
        if let Event::TimerStarted(armed) = &event {
            self.arm(armed.timer.clone(), armed.due_at_ms);
        } else if let Event::RetryScheduled(retry) = &event {
            self.arm(TimerKey::Retry(retry.attempt, retry.unit.clone()), retry.due_at_ms);
        }
        self.events.push(event);
    }

    fn arm(&mut self, timer: TimerKey, due_at: Timestamp) {
        self.effects.push(Effect::Arm(TimerRow { run: self.execution.key.clone(), timer, due_at }));
    }

    /// The armed timers that an event about this unit can disarm.
    fn timers_touched(&self, index: Option<StepIndex>) -> Vec<TimerKey> {
        let armed = |timer: &TimerKey| self.execution.timers.contains_key(timer);
        if self.execution.timers.is_empty() {
            return Vec::new();
        }
        let own = [TimerKey::Workflow, TimerKey::Start, TimerKey::WindDown];
        let of_unit = index
            .into_iter()
            .flat_map(|index| timers_of(&self.definition.plan.step(index).unit, self.execution.unit(index).attempt));
        own.into_iter().chain(of_unit).filter(armed).collect()
    }

    fn is_scheduled(&self, index: StepIndex) -> bool {
        self.execution.unit(index).status == UnitStatus::Scheduled
    }

    fn derive_work(&mut self, index: StepIndex, scheduled_before: bool, event: &Event) {
        let scheduled = self.is_scheduled(index);
        if scheduled && matches!(event, Event::StepScheduled(_) | Event::StepAttemptUncertain(_)) {
            if let Some((row, input)) = ready_row(self.execution, self.definition, index, self.now) {
                self.effects.push(Effect::Ready(Box::new(row), input));
            }
        } else if scheduled_before && !scheduled {
            self.effects.push(Effect::Withdraw(self.definition.plan.step(index).unit.clone()));
        }
    }

    /// Adds an effect that follows from no event.
    pub(super) fn also(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The seq that the next event gets.
    pub(super) fn next_seq(&self) -> u64 {
        self.execution.last_seq + 1
    }

    pub(super) fn finish(self, answer: Answer) -> Decision {
        Decision { events: self.events, at: self.now, effects: self.effects, answer }
    }
}
