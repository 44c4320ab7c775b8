//! Classes of ready units: a number for each, so that a hot row need not hold six texts.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use super::columns::Columns;
use crate::{
    model::execution::Target,
    store::{Error, ReadyClass},
};

/// The numbers of classes as the writer knows them. What a transaction made is forgotten unless it is kept.
#[derive(Default)]
pub(super) struct Classes {
    known: HashMap<ReadyClass, i64>,
    made: Vec<ReadyClass>,
}

impl Classes {
    /// How many are remembered; past it all are asked for again.
    const KNOWN_MAX: usize = 10_000;

    /// Begins a transaction; one before it that was not kept made nothing.
    pub(super) fn begin(&mut self) {
        for class in self.made.drain(..) {
            self.known.remove(&class);
        }
    }

    /// Says that the transaction was committed.
    pub(super) fn keep(&mut self) {
        self.made.clear();
    }

    /// Returns the number of a class, new where it has none.
    pub(super) fn number(&mut self, connection: &Connection, class: ReadyClass) -> Result<i64, Error> {
        if let Some(number) = self.known.get(&class) {
            return Ok(*number);
        }
        if self.known.len() >= Self::KNOWN_MAX {
            self.known.clear();
        }
        let number = match find(connection, &class)? {
            Some(number) => number,
            None => insert(connection, &class)?,
        };
        self.made.push(class.clone());
        self.known.insert(class, number);
        Ok(number)
    }
}

/// Returns the number of a class that has one.
pub(super) fn find(connection: &Connection, class: &ReadyClass) -> Result<Option<i64>, Error> {
    let select = "SELECT id FROM ready_classes WHERE tenant = ?1 AND queue = ?2 AND target = ?3 AND task = ?4 \
                  AND contract = ?5 AND node = ?6";
    Ok(connection.prepare_cached(select)?.query_row(texts(class), |row| row.get(0)).optional()?)
}

fn insert(connection: &Connection, class: &ReadyClass) -> Result<i64, Error> {
    let insert =
        "INSERT INTO ready_classes (tenant, queue, target, task, contract, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(insert)?.execute(texts(class))?;
    Ok(connection.last_insert_rowid())
}

fn texts(class: &ReadyClass) -> [&str; 6] {
    [
        class.tenant.as_str(),
        class.queue.as_str(),
        class.target.as_str(),
        class.task.as_str(),
        class.contract.as_ref().map_or("", |contract| contract.as_str()),
        class.node.as_ref().map_or("", |node| node.as_str()),
    ]
}

/// The columns that [`read`] reads.
pub(super) const COLUMNS: &str = "c.tenant, c.queue, c.target, c.task, c.contract, c.node";

/// Reads a class.
pub(super) fn read(columns: &mut Columns<'_>) -> Result<ReadyClass, Error> {
    Ok(ReadyClass {
        tenant: columns.id()?,
        queue: columns.id()?,
        target: columns.word(target)?,
        task: columns.id()?,
        contract: columns.id_or_empty()?,
        node: columns.id_or_empty()?,
    })
}

/// Reads the text of a target.
pub(super) fn target(text: &str) -> Option<Target> {
    [Target::Module, Target::Worker].into_iter().find(|target| target.as_str() == text)
}
