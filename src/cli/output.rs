//! What is printed: data on standard output as a table or JSON, sentences on standard error.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Error, client::Client, json};

/// The widest cell of a table that is not its row's last, in characters.
const CELL_CHARS_MAX: usize = 60;

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// One JSON value
    Json,
    /// One JSON value a line
    Jsonl,
}

/// The flag that chooses.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Output {
    /// How to print what was found
    #[arg(long, short, value_enum, default_value = "table")]
    pub(super) output: Format,
}

/// Prints data on standard output and ends the line.
pub(super) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Says something to people. That nobody listens is no error.
pub(super) fn say(sentence: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(sentence));
}

/// Returns a text whose control characters, which a terminal would obey, are written out. Ends of lines stay.
pub(crate) fn printable(text: &str) -> String {
    let obeyed = |character: char| {
        // Marks that turn the direction of writing can make one name look like another.
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (character.is_control() && character != '\n')
    };
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if obeyed(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

impl Output {
    /// Returns whether the output is for people.
    pub(super) fn is_table(self) -> bool {
        self.output == Format::Table
    }

    /// Prints one value: as JSON as it was sent, else what `table` makes of it.
    pub(super) fn value(self, value: &RawValue, table: impl FnOnce() -> Result<String, Error>) -> Result<(), Error> {
        match self.output {
            Format::Table => print(&printable(&table()?)),
            Format::Json => print(&json::pretty(value.get())),
            Format::Jsonl => print(&json::compact(value.get())),
        }
    }

    /// Prints a JSON value that people, too, want as JSON.
    pub(super) fn json(self, value: &RawValue) -> Result<(), Error> {
        match self.output {
            Format::Table | Format::Json => print(&json::pretty(value.get())),
            Format::Jsonl => print(&json::compact(value.get())),
        }
    }

    /// Prints rows: as one JSON array, a JSON value a line, or a table with a line for each.
    pub(super) fn rows<T: DeserializeOwned>(
        self,
        client: &Client,
        rows: &[Box<RawValue>],
        headings: &[&str],
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Error> {
        match self.output {
            Format::Table => {
                let mut table = Table::new(headings);
                for row in rows {
                    table.row(cells(&client.read(row)?));
                }
                print(&table.to_text())
            }
            Format::Json => print(&json::pretty(&array(rows))),
            Format::Jsonl if rows.is_empty() => Ok(()),
            Format::Jsonl => {
                print(&rows.iter().fold(String::new(), |text, row| text + &json::compact(row.get()) + "\n"))
            }
        }
    }
}

/// The flags of a command that prints one JSON value, which may be a text.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ValueOutput {
    /// What is a text: without quotes and escapes
    #[arg(long, conflicts_with = "output")]
    raw: bool,
    #[command(flatten)]
    output: Output,
}

impl ValueOutput {
    /// Prints a value as it is; with `--raw` a text without quotes and escapes.
    pub(super) fn print(self, value: &RawValue) -> Result<(), Error> {
        match serde_json::from_str::<String>(value.get()) {
            Ok(text) if self.raw => print(&text),
            _ => self.output.json(value),
        }
    }
}

/// Returns rows as one JSON array.
pub(super) fn array(rows: &[Box<RawValue>]) -> String {
    let rows: Vec<&str> = rows.iter().map(|row| row.get()).collect();
    format!("[{}]", rows.join(","))
}

/// Columns for people.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table.
    pub(super) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        let last = cells.len().saturating_sub(1);
        let cells = cells.into_iter().enumerate().map(|(at, cell)| {
            let cell = printable(&cell).replace('\n', " ");
            let cell = if at < last { cut(&cell, CELL_CHARS_MAX) } else { cell };
            if cell.is_empty() { "-".to_owned() } else { cell }
        });
        self.rows.push(cells.collect());
    }

    /// Returns the table's lines, each column as wide as its widest cell.
    pub(super) fn to_text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a string cannot fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns the first characters of a text, with a mark where more follow.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(&["ID", "STATUS"]);
        table.row(vec!["order-1".to_owned(), "RUNNING".to_owned()]);
        table.row(vec!["ü".to_owned(), String::new()]);
        assert_eq!(table.to_text(), "ID       STATUS\norder-1  RUNNING\nü        -\n");
    }

    #[test]
    fn cells_keep_to_their_line() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec!["x".repeat(100), "one\ntwo\u{1b}[31m\u{202e}".to_owned()]);
        let text = table.to_text();
        assert_eq!(text.lines().nth(1), Some(&*format!("{}…  one two\\u{{1b}}[31m\\u{{202e}}", "x".repeat(59))));
    }
}
