"""The attempt that is being served."""

import json
from typing import Any

from . import _host


def current():
    """Returns the attempt being served.

    `tenant`, `execution_id`, `run`, `workflow`, `workflow_version`, `unit`, `task`, `attempt` (from 1), `redelivery`
    (whether its effects may be there already), `idempotency_key` (the same in every attempt: give it to the systems you
    call), `deadline_ms` (since 1970; None where nothing limits it).
    """
    return _host.current()


def cancelled() -> bool:
    """Returns whether the attempt is no longer wanted. The host ends it soon after; this lets it end well."""
    return _host.cancelled()


def report_progress(details: Any) -> None:
    """Keeps `details`, any JSON, with the attempt and shows it live. The next attempt can read the last one reported."""
    _host.report_progress(json.dumps(details))


def last_progress() -> Any:
    """Returns what was reported last for this unit, by this attempt or an earlier one; None: nothing yet."""
    details = _host.last_progress()
    return None if details is None else json.loads(details)
