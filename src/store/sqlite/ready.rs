//! Rows of ready units: put, dropped, noted, and read in the orders in which the dispatcher asks for them.

use std::collections::HashMap;

use rusqlite::{Connection, Statement, params};

use super::{
    classes,
    columns::{Columns, read_first, read_rows, signed},
    error::unreadable,
    events,
};
use crate::{
    model::{
        Timestamp,
        event::UnitTimeouts,
        id::{DeliveryId, RunKey},
        row::{Note, ReadyRow, SettingsRef},
    },
    store::{Error, NotePut, Noted, ReadyClass, ReadyItem, ReadyOrder, ReadyPage},
};

/// Puts a ready row over one of the same unit; it has no note.
pub(super) const PUT: &str = "INSERT OR REPLACE INTO ready (tenant, execution, run, unit, class, attempt, workflow, \
        workflow_version, module, priority, attempt_ms, heartbeat_ms, queue_ms, ready_at, queue_ends_at, losses, \
        redelivery, input_seq, settings_module, settings_revision) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";

/// Drops the ready row of a unit.
pub(super) const DROP: &str = "DELETE FROM ready WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND unit = ?4";

/// The columns that [`read`] reads.
const COLUMNS: &str = "r.tenant, r.execution, r.run, r.unit, r.attempt, r.workflow, r.workflow_version, c.task, \
    c.contract, c.queue, c.target, r.module, c.node, r.priority, r.attempt_ms, r.heartbeat_ms, r.queue_ms, r.ready_at, \
    r.losses, r.redelivery, r.input_seq, r.settings_module, r.settings_revision, r.note_delivery, r.note_worker, \
    r.note_session, r.note_handed_at";

type RowAndNote = (ReadyRow, Option<Note>);

fn read(columns: &mut Columns<'_>) -> Result<RowAndNote, Error> {
    let mut row = ReadyRow {
        unit: columns.unit()?,
        attempt: columns.number()?,
        workflow: columns.id()?,
        workflow_version: columns.id()?,
        task: columns.id()?,
        contract: columns.id_or_empty()?,
        queue: columns.id()?,
        target: columns.word(classes::target)?,
        module: columns.id_or_none()?,
        settings: None,
        node: columns.id_or_empty()?,
        priority: columns.number()?,
        timeouts: UnitTimeouts {
            attempt_ms: columns.span()?,
            heartbeat_ms: columns.span_or_none()?,
            queue_ms: columns.span_or_none()?,
        },
        ready_at: columns.time()?,
        losses: columns.number()?,
        redelivery: columns.flag()?,
        input_seq: columns.number()?,
    };
    let settings = (columns.id_or_none()?, columns.number_or_none()?);
    if let (Some(module), Some(revision)) = settings {
        row.settings = Some(SettingsRef { module, revision });
    }
    Ok((row, read_note(columns)?))
}

fn read_note(columns: &mut Columns<'_>) -> Result<Option<Note>, Error> {
    let Some(delivery) = columns.bytes_or_none()? else { return Ok(None) };
    let delivery = delivery.try_into().map_err(|_| unreadable("a noted delivery does not have 16 bytes"))?;
    Ok(Some(Note {
        delivery: DeliveryId(u128::from_be_bytes(delivery)),
        worker: columns.id()?,
        session: columns.id()?,
        handed_at: columns.time()?,
    }))
}

/// Puts a ready row by [`PUT`].
pub(super) fn put(statement: &mut Statement<'_>, run: &RunKey, class: i64, row: &ReadyRow) -> Result<(), Error> {
    statement.execute(params![
        run.tenant.as_str(),
        run.execution.as_str(),
        run.run,
        row.unit.unit.as_str(),
        class,
        row.attempt,
        row.workflow.as_str(),
        row.workflow_version.as_str(),
        row.module.as_ref().map(|digest| digest.as_str()),
        row.priority,
        signed(row.timeouts.attempt_ms.0),
        row.timeouts.heartbeat_ms.map(|span| signed(span.0)),
        row.timeouts.queue_ms.map(|span| signed(span.0)),
        row.ready_at.0,
        row.timeouts.queue_ms.map(|span| row.ready_at.after(span).0),
        row.losses,
        row.redelivery,
        signed(row.input_seq),
        row.settings.as_ref().map(|settings| settings.module.as_str()),
        row.settings.as_ref().map(|settings| signed(settings.revision)),
    ])?;
    Ok(())
}

/// Drops a unit's ready row by [`DROP`].
pub(super) fn drop_one(statement: &mut Statement<'_>, run: &RunKey, unit: &str) -> Result<(), Error> {
    statement.execute(params![run.tenant.as_str(), run.execution.as_str(), run.run, unit])?;
    Ok(())
}

/// Drops every ready row of a run: one by one, because a range of them would be collected in a temporary table, and most
/// runs have none left.
pub(super) fn drop_all(connection: &Connection, statement: &mut Statement<'_>, run: &RunKey) -> Result<(), Error> {
    let select = "SELECT unit FROM ready WHERE tenant = ?1 AND execution = ?2 AND run = ?3";
    let key = params![run.tenant.as_str(), run.execution.as_str(), run.run];
    for unit in read_rows(connection, select, key, usize::MAX, |columns| Ok(columns.text()?.to_owned()))? {
        drop_one(statement, run, &unit)?;
    }
    Ok(())
}

/// Puts or clears a note where the row is at the attempt.
pub(super) fn put_note(connection: &Connection, put: &NotePut) -> Result<(), Error> {
    let RunKey { tenant, execution, run } = &put.unit.run;
    let (tenant, execution, unit) = (tenant.as_str(), execution.as_str(), put.unit.unit.as_str());
    match &put.noted {
        Noted::Out(note) => {
            let update = "UPDATE ready SET note_delivery = ?6, note_worker = ?7, note_session = ?8, note_handed_at = ?9 \
                          WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND unit = ?4 AND attempt = ?5";
            connection.prepare_cached(update)?.execute(params![
                tenant,
                execution,
                run,
                unit,
                put.attempt,
                note.delivery.0.to_be_bytes(),
                note.worker.as_str(),
                note.session.as_str(),
                note.handed_at.0,
            ])?;
        }
        Noted::Back(at) => {
            let update = "UPDATE ready SET note_delivery = NULL, note_worker = NULL, note_session = NULL, \
                          note_handed_at = NULL, redelivery = 1, queue_ends_at = ?6 + queue_ms \
                          WHERE tenant = ?1 AND execution = ?2 AND run = ?3 AND unit = ?4 AND attempt = ?5";
            connection.prepare_cached(update)?.execute(params![tenant, execution, run, unit, put.attempt, at.0])?;
        }
    }
    Ok(())
}

/// Says of every ready row that a delivery cannot be ruled out.
pub(super) fn mark_redelivery(connection: &Connection) -> Result<(), Error> {
    connection.execute("UPDATE ready SET redelivery = 1 WHERE redelivery = 0", [])?;
    Ok(())
}

/// Returns how many rows there are of each class.
pub(super) fn counts(connection: &Connection) -> Result<HashMap<ReadyClass, u64>, Error> {
    let select = format!(
        "SELECT {}, n.rows FROM (SELECT class, count(*) AS rows FROM ready GROUP BY class) n \
         JOIN ready_classes c ON c.id = n.class",
        classes::COLUMNS
    );
    let counts =
        read_rows(connection, &select, [], usize::MAX, |columns| Ok((classes::read(columns)?, columns.number()?)))?;
    Ok(counts.into_iter().collect())
}

/// Returns rows of a class with their inputs.
pub(super) fn page(
    connection: &Connection,
    class: &ReadyClass,
    order: ReadyOrder,
    limit: usize,
) -> Result<ReadyPage, Error> {
    let Some(class) = classes::find(connection, class)? else { return Ok(ReadyPage::default()) };
    let rows = match order {
        ReadyOrder::Priority => by_priority(connection, class, limit)?,
        ReadyOrder::Age => by_age(connection, class, limit)?,
    };
    with_inputs(connection, rows)
}

fn with_inputs(connection: &Connection, rows: Vec<RowAndNote>) -> Result<ReadyPage, Error> {
    let mut page = ReadyPage::default();
    for (row, note) in rows {
        match events::input(connection, &row.unit.run, row.input_seq)? {
            Ok(input) => page.items.push(ReadyItem { row, input, note }),
            Err(reason) => page.unreadable.push((row.unit, reason)),
        }
    }
    Ok(page)
}

fn by_priority(connection: &Connection, class: i64, limit: usize) -> Result<Vec<RowAndNote>, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM ready r INDEXED BY ready_line JOIN ready_classes c ON c.id = r.class \
         WHERE r.class = ?1 ORDER BY r.priority DESC, r.ready_at"
    );
    read_rows(connection, &select, [class], limit, read)
}

/// Merges the oldest of each priority that occurs: there are few, and an index by age alone would cost every row.
fn by_age(connection: &Connection, class: i64, limit: usize) -> Result<Vec<RowAndNote>, Error> {
    let next = "SELECT max(priority) FROM ready WHERE class = ?1 AND priority < ?2";
    let select = format!(
        "SELECT {COLUMNS} FROM ready r INDEXED BY ready_line JOIN ready_classes c ON c.id = r.class \
         WHERE r.class = ?1 AND r.priority = ?2 ORDER BY r.ready_at"
    );
    let mut rows = Vec::new();
    let mut priority = i64::MAX;
    let below = |priority| read_first(connection, next, [class, priority], |columns| columns.number_or_none());
    while let Some(Some(lower)) = below(priority)? {
        rows.extend(read_rows(connection, &select, [class, lower], limit, read)?);
        priority = lower;
    }
    rows.sort_by_key(|(row, _)| row.ready_at);
    rows.truncate(limit);
    Ok(rows)
}

/// Returns every row with a note.
pub(super) fn noted(connection: &Connection) -> Result<ReadyPage, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM ready r INDEXED BY ready_noted JOIN ready_classes c ON c.id = r.class \
         WHERE r.note_delivery IS NOT NULL"
    );
    with_inputs(connection, read_rows(connection, &select, [], usize::MAX, read)?)
}

/// Returns rows whose time in the queue ends at or before `until`, earliest first.
pub(super) fn queue_ends(connection: &Connection, until: Timestamp, limit: usize) -> Result<Vec<ReadyRow>, Error> {
    let select = format!(
        "SELECT {COLUMNS} FROM ready r INDEXED BY ready_queue_ends JOIN ready_classes c ON c.id = r.class \
         WHERE r.queue_ends_at IS NOT NULL AND r.queue_ends_at <= ?1 ORDER BY r.queue_ends_at"
    );
    read_rows(connection, &select, [until.0], limit, |columns| Ok(read(columns)?.0))
}

/// Returns when the earliest time in a queue ends.
pub(super) fn next_queue_end(connection: &Connection) -> Result<Option<Timestamp>, Error> {
    let select = "SELECT min(queue_ends_at) FROM ready INDEXED BY ready_queue_ends WHERE queue_ends_at IS NOT NULL";
    let next = read_first(connection, select, [], |columns| columns.time_or_none())?;
    Ok(next.flatten())
}
