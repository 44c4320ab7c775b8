"""The task outside of a module."""

import json
import unittest

from app import stats
from sandkeep import TaskError, run


def summary(csv, **more):
    return json.loads(run("csv.stats", json.dumps({"csv": csv, **more})))


class Stats(unittest.TestCase):
    def fails(self, csv, code, **more):
        with self.assertRaises(TaskError) as raised:
            summary(csv, **more)
        self.assertEqual((raised.exception.code, raised.exception.retryable), (code, False))

    def test_numbers_are_summarised(self):
        table = summary("city,people,note\nOslo,700000,\nBergen,290000,wet\nVoss,,\n")
        self.assertEqual(table["rows"], 3)
        city, people, note = table["columns"]
        self.assertEqual(city, {"name": "city", "kind": "text", "count": 3, "missing": 0, "distinct": 3, "longest": 6})
        self.assertEqual((people["kind"], people["count"], people["missing"]), ("number", 2, 1))
        self.assertEqual((people["min"], people["max"], people["mean"]), (290000, 700000, 495000))
        self.assertAlmostEqual(people["stddev"], 289913.78, places=2)
        self.assertEqual((note["kind"], note["count"]), ("text", 1))

    def test_cells_may_have_quotes_and_other_delimiters(self):
        table = summary('a;b\n"1;5";2\n3;4\n', delimiter=";")
        self.assertEqual([column["kind"] for column in table["columns"]], ["text", "number"])

    def test_what_only_looks_like_a_number_is_text(self):
        for cell in ["nan", "inf", "1_000", "0x1f", "1e999", "-"]:
            self.assertEqual(summary(f"a\n{cell}")["columns"][0]["kind"], "text", cell)
        for cell in ["1", "-2.5", "1e3", "3."]:
            self.assertEqual(summary(f"a\n{cell}")["columns"][0]["kind"], "number", cell)

    def test_what_leaves_the_range_is_null(self):
        column = summary("a\n1e308\n1e308\n1e308")["columns"][0]
        self.assertEqual((column["sum"], column["max"]), (None, 1e308))

    def test_tables_are_refused_with_typed_errors(self):
        self.fails("", "EMPTY_TABLE")
        self.fails("a,b", "EMPTY_TABLE")
        self.fails("a,b\n1,2,3", "UNEVEN_ROWS")
        self.fails(",".join("abc" for _ in range(stats.COLUMNS_MAX + 1)) + "\n1", "TOO_MANY_COLUMNS")
        self.fails("a\n1", "INVALID_INPUT", delimiter="::")


if __name__ == "__main__":
    unittest.main()
