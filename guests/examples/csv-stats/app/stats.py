"""What a table's columns hold, in numbers."""

import math
import statistics

import tablib
from sandkeep import TaskError, log, task
from tablib.exceptions import InvalidDimensions

# The most columns of a table. How many rows there can be follows from the limit of an input.
COLUMNS_MAX = 200

_NUMBER_OR_NULL = {"type": ["number", "null"]}

_COLUMN = {
    "type": "object",
    "required": ["name", "kind", "count", "missing", "distinct"],
    "properties": {
        "name": {"type": "string"},
        "kind": {"enum": ["number", "text", "empty"]},
        "count": {"type": "integer", "description": "Cells with content."},
        "missing": {"type": "integer", "description": "Empty cells."},
        "distinct": {"type": "integer"},
        "min": _NUMBER_OR_NULL,
        "max": _NUMBER_OR_NULL,
        "sum": _NUMBER_OR_NULL,
        "mean": _NUMBER_OR_NULL,
        "median": _NUMBER_OR_NULL,
        "stddev": {**_NUMBER_OR_NULL, "description": "Of the sample; null below two numbers."},
        "longest": {"type": "integer", "description": "Characters of the longest text."},
    },
}


@task(
    "csv.stats",
    "1.0.0",
    input={
        "type": "object",
        "required": ["csv"],
        "additionalProperties": False,
        "properties": {
            "csv": {"type": "string", "description": "The table; its first line names the columns."},
            "delimiter": {"type": "string", "minLength": 1, "maxLength": 1},
        },
    },
    output={
        "type": "object",
        "required": ["rows", "columns"],
        "properties": {"rows": {"type": "integer"}, "columns": {"type": "array", "items": _COLUMN}},
    },
)
def stats(input):
    """Summarises each column of a CSV table: count, distinct values, and for numbers minimum, maximum, mean and more."""
    table = _parse(input["csv"], input.get("delimiter", ","))
    log.info("read a table", rows=len(table), columns=len(table.headers))
    return {"rows": len(table), "columns": [_column(name, table.get_col(at)) for at, name in enumerate(table.headers)]}


def _parse(text, delimiter):
    try:
        table = tablib.Dataset().load(text.strip(), format="csv", delimiter=delimiter)
    except InvalidDimensions:
        raise TaskError.permanent("UNEVEN_ROWS", "a row has more cells than there are columns") from None
    except Exception as problem:  # The parser of the standard library has its own errors, tablib passes them on.
        raise TaskError.permanent("INVALID_CSV", f"the table cannot be read: {problem}") from problem
    if not table.headers or not len(table):
        raise TaskError.permanent("EMPTY_TABLE", "there is no row below the names of the columns")
    if len(table.headers) > COLUMNS_MAX:
        details = {"columns": len(table.headers), "columns_max": COLUMNS_MAX}
        raise TaskError.permanent("TOO_MANY_COLUMNS", "the table is too wide", details)
    return table


def _column(name, cells):
    texts = [cell.strip() for cell in cells]
    texts = [text for text in texts if text]
    counts = {"name": name, "count": len(texts), "missing": len(cells) - len(texts), "distinct": len(set(texts))}
    numbers = [_number(text) for text in texts]
    if not texts:
        return {**counts, "kind": "empty"}
    if None in numbers:
        return {**counts, "kind": "text", "longest": max(map(len, texts))}
    return {**counts, "kind": "number", **_summary(numbers)}


def _summary(numbers):
    """Sums that leave the range of doubles are null: JSON has no infinity."""
    total = _finite(lambda: math.fsum(numbers))
    return {
        "min": min(numbers),
        "max": max(numbers),
        "sum": total,
        "mean": None if total is None else total / len(numbers),
        "median": _finite(lambda: statistics.median(numbers)),
        "stddev": _finite(lambda: statistics.stdev(numbers)) if len(numbers) > 1 else None,
    }


def _finite(calculate):
    try:
        value = calculate()
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _number(text):
    """Returns the number that a cell is; None: it is none. `nan`, `inf` and `1_000` are texts."""
    if not text[-1].isdigit() and text[-1] != "." or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
