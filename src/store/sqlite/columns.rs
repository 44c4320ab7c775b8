//! Reads the columns of a row, in order, into the model's types; binds what SQLite has no type for.

use std::str::FromStr;

use rusqlite::{Connection, Params, Row, types::ValueRef};

use super::error::unreadable;
use crate::{
    model::{
        Millis, Timestamp,
        id::{Invalid, RunKey, UnitRef},
    },
    store::Error,
};

/// The columns of one row, read from the first to the last.
pub(super) struct Columns<'row> {
    row: &'row Row<'row>,
    next: usize,
}

impl<'row> Columns<'row> {
    /// Begins at the first column.
    pub(super) fn of(row: &'row Row<'row>) -> Self {
        Self { row, next: 0 }
    }

    fn value(&mut self) -> Result<ValueRef<'row>, Error> {
        let value = self.row.get_ref(self.next)?;
        self.next += 1;
        Ok(value)
    }

    /// Says what is wrong with the column read last.
    fn wrong(&self, why: impl std::fmt::Display) -> Error {
        let column = self.row.as_ref().column_name(self.next - 1).unwrap_or("?");
        unreadable(format_args!("column `{column}`: {why}"))
    }

    /// Reads a text, or none for NULL.
    pub(super) fn text_or_none(&mut self) -> Result<Option<&'row str>, Error> {
        self.value()?.as_str_or_null().map_err(|error| self.wrong(error))
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Result<&'row str, Error> {
        self.text_or_none()?.ok_or_else(|| self.wrong("it is NULL"))
    }

    /// Reads bytes, or none for NULL.
    pub(super) fn bytes_or_none(&mut self) -> Result<Option<&'row [u8]>, Error> {
        self.value()?.as_bytes_or_null().map_err(|error| self.wrong(error))
    }

    /// Reads bytes.
    pub(super) fn bytes(&mut self) -> Result<&'row [u8], Error> {
        self.bytes_or_none()?.ok_or_else(|| self.wrong("it is NULL"))
    }

    /// Reads bytes that are a text.
    pub(super) fn utf8(&mut self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|error| self.wrong(error))
    }

    /// Reads an id, or none for NULL.
    pub(super) fn id_or_none<T: FromStr<Err = Invalid>>(&mut self) -> Result<Option<T>, Error> {
        let text = self.text_or_none()?;
        text.map(|text| text.parse().map_err(|error: Invalid| self.wrong(error))).transpose()
    }

    /// Reads an id.
    pub(super) fn id<T: FromStr<Err = Invalid>>(&mut self) -> Result<T, Error> {
        let text = self.text()?;
        text.parse().map_err(|error: Invalid| self.wrong(error))
    }

    /// Reads an id for which the empty text stands for none.
    pub(super) fn id_or_empty<T: FromStr<Err = Invalid>>(&mut self) -> Result<Option<T>, Error> {
        match self.text()? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|error: Invalid| self.wrong(error)),
        }
    }

    /// Reads one of the words that `word` knows.
    pub(super) fn word<T>(&mut self, word: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
        let text = self.text()?;
        word(text).ok_or_else(|| self.wrong(format_args!("`{}` is not known", text.escape_default())))
    }

    /// Reads a number, or none for NULL.
    pub(super) fn number_or_none<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, Error> {
        let number = self.value()?.as_i64_or_null().map_err(|error| self.wrong(error))?;
        number
            .map(|number| T::try_from(number).map_err(|_| self.wrong(format_args!("{number} is out of range"))))
            .transpose()
    }

    /// Reads a number.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Error> {
        self.number_or_none()?.ok_or_else(|| self.wrong("it is NULL"))
    }

    /// Reads a time.
    pub(super) fn time(&mut self) -> Result<Timestamp, Error> {
        self.number().map(Timestamp)
    }

    /// Reads a time, or none for NULL.
    pub(super) fn time_or_none(&mut self) -> Result<Option<Timestamp>, Error> {
        Ok(self.number_or_none()?.map(Timestamp))
    }

    /// Reads a span.
    pub(super) fn span(&mut self) -> Result<Millis, Error> {
        self.number().map(Millis)
    }

    /// Reads a span, or none for NULL.
    pub(super) fn span_or_none(&mut self) -> Result<Option<Millis>, Error> {
        Ok(self.number_or_none()?.map(Millis))
    }

    /// Reads a truth.
    pub(super) fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.number::<i64>()? != 0)
    }

    /// Reads tenant, execution and run.
    pub(super) fn run(&mut self) -> Result<RunKey, Error> {
        Ok(RunKey { tenant: self.id()?, execution: self.id()?, run: self.number()? })
    }

    /// Reads tenant, execution, run and unit.
    pub(super) fn unit(&mut self) -> Result<UnitRef, Error> {
        Ok(UnitRef { run: self.run()?, unit: self.id()? })
    }
}

/// Reads the first row, if there is one.
pub(super) fn read_first<T>(
    connection: &Connection,
    select: &str,
    params: impl Params,
    read: impl FnOnce(&mut Columns<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(|row| read(&mut Columns::of(row))).transpose()
}

/// Reads rows until there are `limit`. One that cannot be read is reported and passed over, so that it does not stand in
/// the way of those behind it.
pub(super) fn read_rows<T>(
    connection: &Connection,
    select: &str,
    params: impl Params,
    limit: usize,
    read: impl Fn(&mut Columns<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut found = Vec::new();
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query(params)?;
    while found.len() < limit {
        let Some(row) = rows.next()? else { break };
        match read(&mut Columns::of(row)) {
            Ok(item) => found.push(item),
            Err(Error::Unreadable { what }) => tracing::error!(what, "passed over a stored row that cannot be read"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns a count as SQLite holds it. No seq, size or span comes near the end of the range.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a limit as SQLite holds it.
pub(super) fn signed_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
