import json
import unittest

import app.hello  # noqa: F401: defines the task
from sandkeep import TaskError, run


class Hello(unittest.TestCase):
    def call(self, input):
        return json.loads(run("{{task}}.hello", json.dumps(input)))

    def fails(self, input, code):
        with self.assertRaises(TaskError) as raised:
            self.call(input)
        self.assertEqual(raised.exception.code, code)

    def test_somebody_is_greeted(self):
        self.assertEqual(self.call({"name": " Ada "}), {"text": "Hello, Ada!"})

    def test_nobody_is_a_typed_error(self):
        self.fails({"name": ""}, "NAME_MISSING")
        self.fails({}, "INVALID_INPUT")
