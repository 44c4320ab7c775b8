"""Tasks outside of a module: `python3 -m unittest discover tests`"""

import unittest

from sandkeep import TaskError, attempt, describe, run, task
from sandkeep._schema import misfit


@task("n.half", "1.0.0", input={"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
def half(input):
    """Halves a number."""
    if input["n"] % 2:
        raise TaskError.transient("ODD", "it is odd", retry_after_ms=1500, details=[input["n"]])
    return {"half": input["n"] // 2}


@task("n.nan", "1.0.0")
def nan(input):
    return float("nan")


@task("n.broken", "1.0.0")
def broken(input):
    return input["missing"]


class Tasks(unittest.TestCase):
    def fails(self, name, text, code):
        with self.assertRaises(TaskError) as raised:
            run(name, text)
        self.assertEqual(raised.exception.code, code)
        return raised.exception

    def test_docstrings_describe(self):
        self.assertEqual([(one.name, one.description) for one in describe()][0], ("n.half", "Halves a number."))

    def test_json_goes_in_and_comes_out(self):
        self.assertEqual(run("n.half", '{"n": 8}'), '{"half": 4}')

    def test_errors_are_typed(self):
        error = self.fails("n.half", '{"n": 7}', "ODD")
        self.assertEqual((error.retryable, error.retry_after_ms, error.details), (True, 1500, [7]))
        self.assertIn("lacks `n`", self.fails("n.half", "{}", "INVALID_INPUT").message)
        self.fails("n.none", "{}", "UNKNOWN_TASK")
        self.fails("n.nan", "{}", "INVALID_OUTPUT")

    def test_anything_else_is_passed_on(self):
        with self.assertRaises(KeyError):
            run("n.broken", "{}")

    def test_a_name_is_given_once(self):
        with self.assertRaises(ValueError):
            task("n.half", "1.0.0")(half)

    def test_progress_is_read_back(self):
        attempt.report_progress({"done": 3})
        self.assertEqual(attempt.last_progress(), {"done": 3})

    def test_misfits_are_told_with_their_place(self):
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "ages": {"type": "array", "maxItems": 2, "items": {"type": ["integer", "null"], "minimum": 0}},
                "kind": {"enum": ["a", 1]},
            },
        }
        self.assertIsNone(misfit(schema, {"name": "x", "ages": [1.0, None], "kind": 1}))
        for value, sentence in [
            ([], "the input is not object"),
            ({"name": ""}, "`/name` has 0, less than `minLength` 1"),
            ({"ages": [1, 2.5]}, "`/ages/1` is not integer or null"),
            ({"ages": [True]}, "`/ages/0` is not integer or null"),
            ({"ages": [-1]}, "`/ages/0` has -1, less than `minimum` 0"),
            ({"ages": [1, 2, 3]}, "`/ages` has 3, more than `maxItems` 2"),
            ({"kind": True}, '`/kind` is none of ["a", 1]'),
            ({"other": 1}, "the input has a member `other` that nobody knows"),
        ]:
            self.assertEqual(misfit(schema, value), sentence)


if __name__ == "__main__":
    unittest.main()
