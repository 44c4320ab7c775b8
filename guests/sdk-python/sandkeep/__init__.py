"""Tasks of Sandkeep as plain functions with JSON Schemas.

    from sandkeep import TaskError, log, task

    @task("greet.hello", "1.0.0", input={...}, output={...})
    def hello(input):
        '''Greets somebody by name.'''
        return {"text": f"Hello, {input['name']}!"}

A module's file then says `from sandkeep.module import WitWorld`, which is what the host calls.

In a module the host is the server; elsewhere, in tests, it is a stand-in (`_native.py`).
"""

from . import attempt, log, secrets
from ._tasks import TASKS, describe, run, task
from .error import TaskError

__all__ = ["TASKS", "TaskError", "attempt", "describe", "log", "run", "secrets", "task"]
