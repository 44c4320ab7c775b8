//! The ready units of one class: a bounded window in memory, and a count of those that are only rows.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::model::{Delivery, DeliveryId, Payload, Timestamp, WorkerId, id::UnitRef, row::ReadyRow};

/// A ready unit with its input.
#[derive(Debug)]
pub(in crate::app) struct Ready {
    pub(in crate::app) row: ReadyRow,
    pub(in crate::app) input: Payload,
}

impl Ready {
    /// Returns the delivery that hands the unit to `worker`.
    pub(in crate::app) fn delivery(
        &self,
        id: DeliveryId,
        worker: Option<WorkerId>,
        handed_at: Timestamp,
        deadline: Timestamp,
    ) -> Delivery {
        Delivery { unit: self.row.unit.clone(), attempt: self.row.attempt, id, worker, handed_at, deadline }
    }
}

/// The most units of a class in memory.
pub(super) const WINDOW_MAX: usize = 1_024;

/// How long a unit of priority n waits until it stands beside a fresh one of priority n + 1, in milliseconds.
const AGEING_MS: i64 = 30_000;

/// Where a unit stands: smaller is earlier. Ageing makes the order independent of the time, as every unit ages alike.
pub(super) type Place = (i64, u64);

/// The window of one class.
#[derive(Default)]
pub(super) struct Window {
    units: BTreeMap<Place, Arc<Ready>>,
    places: HashMap<UnitRef, Place>,
    /// How many ready rows are not in the window and not out.
    pub(super) stored: u64,
    refill: Option<Refill>,
}

/// What happens while a refill reads: its picture of the rows is old by then.
#[derive(Default)]
struct Refill {
    left: HashSet<UnitRef>,
    arrived: u64,
}

impl Window {
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns where a unit stands. `number` is larger than that of every unit that came before.
    pub(super) fn place(row: &ReadyRow, number: u64) -> Place {
        (row.ready_at.0 - i64::from(row.priority) * AGEING_MS, number)
    }

    pub(super) fn insert(&mut self, place: Place, ready: Arc<Ready>) {
        self.places.insert(ready.row.unit.clone(), place);
        self.units.insert(place, ready);
    }

    pub(super) fn contains(&self, unit: &UnitRef) -> bool {
        self.places.contains_key(unit)
    }

    /// Returns the unit that stands first.
    pub(super) fn first(&self) -> Option<(Place, &Arc<Ready>)> {
        self.units.first_key_value().map(|(place, ready)| (*place, ready))
    }

    pub(super) fn at(&self, place: Place) -> Option<&Arc<Ready>> {
        self.units.get(&place)
    }

    /// Takes a unit out of the window.
    pub(super) fn remove(&mut self, unit: &UnitRef) -> Option<(Place, Arc<Ready>)> {
        self.departs(unit);
        let place = self.places.remove(unit)?;
        self.units.remove(&place).map(|ready| (place, ready))
    }

    /// A unit is not what its row said when a refill began to read: what the refill found of it is old.
    pub(super) fn departs(&mut self, unit: &UnitRef) {
        if let Some(refill) = &mut self.refill {
            refill.left.insert(unit.clone());
        }
    }

    /// Counts a unit that stays a row only.
    pub(super) fn count_stored(&mut self) {
        self.stored += 1;
        if let Some(refill) = &mut self.refill {
            refill.arrived += 1;
        }
    }

    /// There may be a row that was never counted: the next refill looks for it.
    pub(super) fn expect_row(&mut self) {
        // A refill that reads now may have read before that row was there.
        if self.stored == 0 || self.refill.is_some() {
            self.count_stored();
        }
    }

    /// Whether the window is low while rows are stored, and no refill is reading.
    pub(super) fn wants_refill(&self) -> bool {
        self.stored > 0 && self.units.len() < WINDOW_MAX / 4 && self.refill.is_none()
    }

    /// A refill begins to read.
    pub(super) fn refill_begins(&mut self) {
        self.refill = Some(Refill::default());
    }

    /// A refill ends; returns what left while it was reading, and how many units came to be rows only.
    pub(super) fn refill_ends(&mut self) -> (HashSet<UnitRef>, u64) {
        let refill = self.refill.take().unwrap_or_default();
        (refill.left, refill.arrived)
    }

    /// Empties the window into the count: nobody can take from it.
    pub(super) fn spill(&mut self) {
        self.stored += u64::try_from(self.units.len()).unwrap_or(u64::MAX);
        self.units.clear();
        self.places.clear();
    }
}
