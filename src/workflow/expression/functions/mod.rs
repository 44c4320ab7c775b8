//! The functions of expressions: one table, which lowering, the messages and the evaluator share.
//!
//! Every function takes values and a [`Budget`], and charges what it reads and makes before it does so. A function may be
//! called as `f(x, y)` and as `x.f(y)`.

mod calendar;
mod convert;
mod encode;
mod format;
mod lists;
mod maps;
mod operate;
mod pattern;
mod text;

pub(super) use maps::get_path;
pub(super) use operate::{combine, contains_element};
pub(super) use pattern::Pattern;

use std::sync::Arc;

use super::budget::Budget;
use super::problem::Fault;
use super::value::{Map, Value};

/// The result of a function.
type Outcome = Result<Value, Fault>;

/// What evaluates a function.
type Run = fn(&[Value], &mut Budget) -> Outcome;

/// A function by its name, with how many arguments it takes.
pub(super) struct Function {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    how: How,
}

enum How {
    Plain(Run),
    /// Lowered to a node of its own, since it does not simply take values.
    Special(Special, Run),
}

/// Functions with a node of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Get,
    Coalesce,
    Matches,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Function {
    /// Calls the function; the caller has counted the arguments.
    pub(super) fn call(&self, arguments: &[Value], budget: &mut Budget) -> Outcome {
        let (How::Plain(run) | How::Special(_, run)) = &self.how;
        run(arguments, budget)
    }

    /// Returns the kind of a function that has a node of its own.
    pub(super) fn special(&self) -> Option<Special> {
        if let How::Special(special, _) = &self.how { Some(*special) } else { None }
    }
}

/// Finds a function by its name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Returns the names of all functions and macros, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];
    FUNCTIONS.iter().map(|function| function.name).chain(MACROS)
}

const fn plain(name: &'static str, least: usize, most: usize, run: Run) -> Function {
    Function { name, least, most, how: How::Plain(run) }
}

const fn special(name: &'static str, least: usize, most: usize, special: Special, run: Run) -> Function {
    Function { name, least, most, how: How::Special(special, run) }
}

/// All functions. Those of CEL come first, ours after them.
static FUNCTIONS: &[Function] = &[
    plain("size", 1, 1, text::size),
    plain("contains", 2, 2, text::contains),
    plain("startsWith", 2, 2, text::starts_with),
    plain("endsWith", 2, 2, text::ends_with),
    special("matches", 2, 2, Special::Matches, pattern::matches),
    plain("int", 1, 1, convert::int),
    plain("uint", 1, 1, convert::uint),
    plain("double", 1, 1, convert::double),
    plain("string", 1, 1, convert::string),
    plain("bool", 1, 1, convert::boolean),
    plain("bytes", 1, 1, convert::bytes),
    plain("timestamp", 1, 1, convert::timestamp),
    plain("duration", 1, 1, convert::duration),
    plain("type", 1, 1, convert::type_of),
    plain("dyn", 1, 1, convert::dynamic),
    plain("getFullYear", 1, 2, calendar::full_year),
    plain("getMonth", 1, 2, calendar::month),
    plain("getDate", 1, 2, calendar::date),
    plain("getDayOfMonth", 1, 2, calendar::day_of_month),
    plain("getDayOfWeek", 1, 2, calendar::day_of_week),
    plain("getDayOfYear", 1, 2, calendar::day_of_year),
    plain("getHours", 1, 2, calendar::hours),
    plain("getMinutes", 1, 2, calendar::minutes),
    plain("getSeconds", 1, 2, calendar::seconds),
    plain("getMilliseconds", 1, 2, calendar::milliseconds),
    special("get", 3, 3, Special::Get, maps::get),
    special("coalesce", 1, usize::MAX, Special::Coalesce, maps::coalesce),
    plain("sum", 1, 1, lists::sum),
    plain("min", 1, usize::MAX, lists::min),
    plain("max", 1, usize::MAX, lists::max),
    plain("sort", 1, 1, lists::sort),
    plain("distinct", 1, 1, lists::distinct),
    plain("flatten", 1, 2, lists::flatten),
    plain("join", 1, 2, lists::join),
    plain("range", 1, 2, lists::range),
    plain("keys", 1, 1, maps::keys),
    plain("values", 1, 1, maps::values),
    plain("merge", 1, usize::MAX, maps::merge),
    plain("lower", 1, 1, text::lower),
    plain("upper", 1, 1, text::upper),
    plain("trim", 1, 1, text::trim),
    plain("split", 2, 3, text::split),
    plain("replace", 3, 4, text::replace),
    plain("format", 2, 2, format::format),
    plain("json_encode", 1, 1, encode::json_encode),
    plain("json_decode", 1, 1, encode::json_decode),
    plain("base64_encode", 1, 1, encode::base64_encode),
    plain("base64_decode", 1, 1, encode::base64_decode),
    plain("sha256", 1, 1, encode::sha256),
];

fn wrong(function: &str, takes: &str, given: &Value) -> Fault {
    Fault::failed(format!("{function}() takes {takes}, not {}", given.kind()))
}

/// Takes a text argument.
fn take_text<'v>(value: &'v Value, function: &str) -> Result<&'v Arc<str>, Fault> {
    if let Value::Text(text) = value { Ok(text) } else { Err(wrong(function, "a string", value)) }
}

/// Takes a list argument.
fn take_list<'v>(value: &'v Value, function: &str) -> Result<&'v Arc<Vec<Value>>, Fault> {
    if let Value::List(items) = value { Ok(items) } else { Err(wrong(function, "a list", value)) }
}

/// Takes a map argument.
fn take_map<'v>(value: &'v Value, function: &str) -> Result<&'v Arc<Map>, Fault> {
    if let Value::Map(map) = value { Ok(map) } else { Err(wrong(function, "a map", value)) }
}

/// Takes an integer argument.
fn take_int(value: &Value, function: &str) -> Result<i64, Fault> {
    match value {
        Value::Int(int) => Ok(*int),
        Value::Uint(uint) => i64::try_from(*uint).map_err(|_| wrong(function, "an int", value)),
        other => Err(wrong(function, "an int", other)),
    }
}

/// Makes a text of a known length, charged before it is made.
fn make_text(length: usize, budget: &mut Budget, make: impl FnOnce() -> String) -> Outcome {
    budget.make(length)?;
    Ok(Value::Text(make().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = names().collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
