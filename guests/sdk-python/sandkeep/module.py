"""What the host calls. Only a module can import this: its bindings are made when it is built."""

import json
from typing import Any, Optional

from componentize_py_types import Err
from wit_world.imports import types

import wit_world

from . import _tasks
from .error import TaskError


class WitWorld(wit_world.WitWorld):
    """The two exports of the contract."""

    def describe(self) -> list[types.TaskSpec]:
        return [
            types.TaskSpec(task.name, task.version, task.description, _text(task.input), _text(task.output))
            for task in _tasks.describe()
        ]

    def run(self, task: str, input: str) -> str:
        try:
            return _tasks.run(task, input)
        except TaskError as error:
            raise Err(_record(error)) from error


def _record(error: TaskError) -> types.TaskError:
    details = None if error.details is None else json.dumps(error.details, default=str)
    return types.TaskError(error.code, error.message, error.retryable, error.retry_after_ms, details)


def _text(schema: Any) -> Optional[str]:
    return None if schema is None else json.dumps(schema)
