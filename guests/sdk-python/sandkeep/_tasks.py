"""The table of a module's tasks, and calling one by name with JSON texts."""

import inspect
import json
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import log
from ._schema import misfit
from .error import TaskError


@dataclass(frozen=True)
class Task:
    """A task of a module."""

    name: str
    version: str
    description: Optional[str]
    input: Any
    output: Any
    call: Callable[[Any], Any]


TASKS: dict[str, Task] = {}


def task(name: str, version: str, *, input: Any = None, output: Any = None):
    """Makes a task of a function from JSON to JSON; its docstring is the description.

    `input` and `output` are JSON Schemas. An input that does not fit fails with `INVALID_INPUT` before the function is
    called.
    """

    def add(function):
        if name in TASKS:
            raise ValueError(f"there are two tasks `{name}`")
        TASKS[name] = Task(name, version, inspect.getdoc(function), input, output, function)
        return function

    return add


def describe() -> list[Task]:
    """Returns the tasks in the order in which they were defined."""
    return list(TASKS.values())


def run(name: str, text: str) -> str:
    """Calls the task of that name with a JSON text and returns its output as one.

    Raises the task's own `TaskError`; `UNKNOWN_TASK`, `INVALID_INPUT`; `INVALID_OUTPUT` when its output has no JSON form.
    Whatever else it raises is logged with its trace, then ends the attempt as `TRAP`.
    """
    try:
        return _encoded(_call(name, json.loads(text)))
    except TaskError:
        raise
    except Exception:
        log.error(traceback.format_exc())
        raise


def _call(name, value):
    if name not in TASKS:
        raise TaskError.permanent("UNKNOWN_TASK", f"this module has no task `{name}`")
    found = TASKS[name]
    problem = misfit(found.input, value)
    if problem:
        raise TaskError.permanent("INVALID_INPUT", problem)
    return found.call(value)


def _encoded(output):
    try:
        return json.dumps(output, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise TaskError.permanent("INVALID_OUTPUT", str(problem)) from problem
