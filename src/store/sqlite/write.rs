//! Writes a batch: notes, then each change that wins its race, then registered things.

use rusqlite::{CachedStatement, Connection};

use super::{
    classes::Classes, events, executions, keys, logs, modules, pins, ready, recordings, tenants, timers, uploads,
    workflows,
};
use crate::{
    model::{id::RunKey, row::ReadyRow},
    store::{Batch, Change, Conflict, Error, ReadyClass, batch::check_dense},
};

/// Writes everything of a batch and returns of each change whether it won its race.
pub(super) fn write_batch(
    connection: &Connection,
    classes: &mut Classes,
    batch: &Batch,
) -> Result<Vec<Result<(), Conflict>>, Error> {
    // Before the changes: what they make ready again is not what was noted.
    for note in &batch.notes {
        ready::put_note(connection, note)?;
    }
    let mut outcomes = Vec::with_capacity(batch.changes.len());
    if !batch.changes.is_empty() {
        let mut writing = Writing::new(connection, classes)?;
        for change in &batch.changes {
            check_dense(change)?;
            outcomes.push(writing.change(change)?);
        }
    }
    workflows::write(connection, batch)?;
    uploads::write(connection, batch)?;
    modules::write(connection, batch)?;
    uploads::remove(connection, batch)?;
    tenants::write(connection, batch)?;
    recordings::write(connection, batch)?;
    Ok(outcomes)
}

/// Writes changes, with the statements at hand that nearly all of them need.
struct Writing<'batch> {
    connection: &'batch Connection,
    classes: &'batch mut Classes,
    advance: CachedStatement<'batch>,
    add_event: CachedStatement<'batch>,
    put_ready: CachedStatement<'batch>,
    drop_ready: CachedStatement<'batch>,
}

impl<'batch> Writing<'batch> {
    fn new(connection: &'batch Connection, classes: &'batch mut Classes) -> Result<Self, Error> {
        Ok(Self {
            connection,
            classes,
            advance: connection.prepare_cached(executions::ADVANCE)?,
            add_event: connection.prepare_cached(events::ADD)?,
            put_ready: connection.prepare_cached(ready::PUT)?,
            drop_ready: connection.prepare_cached(ready::DROP)?,
        })
    }

    /// Writes one change, or nothing of it when its run is not where it expects it.
    fn change(&mut self, change: &Change) -> Result<Result<(), Conflict>, Error> {
        if !self.win(change)? {
            let found = events::last_seq(self.connection, &change.run)?;
            return Ok(Err(Conflict { expected: change.expected_seq, found }));
        }
        for event in &change.events {
            events::add(&mut self.add_event, &change.run, event)?;
        }
        if change.projection.status.is_terminal() {
            ready::drop_all(self.connection, &mut self.drop_ready, &change.run)?;
            timers::drop_all(self.connection, &change.run)?;
            pins::drop_all(self.connection, &change.run)?;
        } else {
            self.write_rows(change)?;
        }
        logs::add(self.connection, &change.run, &change.logs)?;
        keys::put(self.connection, &change.keys)?;
        Ok(Ok(()))
    }

    /// Writes the row of the execution, which checks the expected seq; false: the race is lost and nothing is written.
    fn win(&mut self, change: &Change) -> Result<bool, Error> {
        let row = &change.projection;
        if change.expected_seq == 0 {
            return executions::create(self.connection, row, &change.labels);
        }
        // As long as the status stays, it is left alone, and with it the indexes that depend on it.
        let stays = !row.status.is_terminal() && executions::advance(&mut self.advance, row, change.expected_seq)?;
        Ok(stays || executions::advance_to_status(self.connection, row, change.expected_seq)?)
    }

    /// Writes ready rows and timers; what goes, goes first.
    fn write_rows(&mut self, change: &Change) -> Result<(), Error> {
        for unit in &change.ready_drop {
            ready::drop_one(&mut self.drop_ready, &change.run, unit.as_str())?;
        }
        for row in &change.ready_put {
            self.put_ready(&change.run, row)?;
        }
        pins::drop_some(self.connection, &change.run, &change.pins_drop)?;
        pins::put(self.connection, &change.run, &change.pins_put)?;
        timers::drop_some(self.connection, &change.run, &change.timers_drop)?;
        timers::put(self.connection, &change.run, &change.timers_put)
    }

    fn put_ready(&mut self, run: &RunKey, row: &ReadyRow) -> Result<(), Error> {
        let class = self.classes.number(self.connection, ReadyClass::from(row))?;
        ready::put(&mut self.put_ready, run, class, row)
    }
}
