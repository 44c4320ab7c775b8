//! What one evaluation may spend: steps (its time) and bytes made (its memory).

use super::problem::{Fault, Limit};

/// Ticks in one step: reading a JSON value or a few bytes is cheaper than evaluating a node.
const TICKS_PER_STEP: u64 = 8;
/// Bytes scanned or compared for one tick.
const BYTES_PER_TICK: u64 = 8;
/// Bytes charged for one place in a list or a map.
pub(super) const PLACE_BYTES: usize = 24;

/// The steps and bytes an evaluation may spend. One budget serves all expressions of a template.
///
/// A step is a node evaluated, an element compared, or 64 bytes of text scanned. Bytes are charged before they are
/// made, so that nothing large is ever allocated for an expression that cannot pay for it.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    bytes: u64,
    ticks_spent: u64,
    bytes_made: u64,
    exceeded: Option<Limit>,
}

impl Default for Budget {
    /// 100,000 steps and 1 MiB.
    fn default() -> Self {
        Self::new(100_000, 1 << 20)
    }
}

impl Budget {
    /// A fresh budget of `steps` and of `bytes` made.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps, bytes, ticks_spent: 0, bytes_made: 0, exceeded: None }
    }

    /// Returns the steps spent so far, rounded up, never more than the budget.
    pub fn steps_spent(&self) -> u64 {
        self.ticks_spent.div_ceil(TICKS_PER_STEP).min(self.steps)
    }

    /// Returns the bytes made so far, never more than the budget.
    pub fn bytes_made(&self) -> u64 {
        self.bytes_made.min(self.bytes)
    }

    /// Returns the limit that was passed, if one was.
    pub(super) fn exceeded(&self) -> Option<Limit> {
        self.exceeded
    }

    /// Charges `count` steps.
    pub(super) fn steps(&mut self, count: u64) -> Result<(), Fault> {
        self.ticks(count.saturating_mul(TICKS_PER_STEP))
    }

    /// Charges the scan of `bytes`.
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), Fault> {
        self.ticks(bytes as u64 / BYTES_PER_TICK)
    }

    /// Charges one value read from JSON text.
    pub(super) fn value_read(&mut self) -> Result<(), Fault> {
        self.ticks(1)
    }

    /// Charges `bytes` that are about to be made.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes_made = self.bytes_made.saturating_add(bytes as u64);
        if self.bytes_made > self.bytes {
            return Err(self.exceed(Limit::Bytes(self.bytes)));
        }
        Ok(())
    }

    /// Charges the places of a list or map of `length` that is about to be made.
    pub(super) fn make_places(&mut self, length: usize) -> Result<(), Fault> {
        self.make(length.saturating_mul(PLACE_BYTES))
    }

    fn ticks(&mut self, count: u64) -> Result<(), Fault> {
        self.ticks_spent = self.ticks_spent.saturating_add(count);
        if self.ticks_spent > self.steps.saturating_mul(TICKS_PER_STEP) {
            return Err(self.exceed(Limit::Steps(self.steps)));
        }
        Ok(())
    }

    fn exceed(&mut self, limit: Limit) -> Fault {
        self.exceeded.get_or_insert(limit);
        Fault::Spent(limit)
    }
}
