"""A stand-in for the host: one first attempt of nothing in particular, log lines on standard error."""

import sys
from dataclasses import dataclass
from typing import Optional


@dataclass
class Info:
    """One attempt at one unit of one execution."""

    tenant: str = "default"
    execution_id: str = "native"
    run: int = 1
    workflow: str = "native"
    workflow_version: str = "0.0.0"
    unit: str = "native"
    task: str = "native"
    attempt: int = 1
    redelivery: bool = False
    idempotency_key: str = "native"
    deadline_ms: Optional[int] = None


_progress: Optional[str] = None


def current():
    return Info()


def cancelled():
    return False


def report_progress(details):
    global _progress
    _progress = details


def last_progress():
    return _progress


def write(level, message, fields):
    print(level.upper(), message, fields or "", file=sys.stderr)


def get_secret(name):
    raise LookupError(f"there is no secret `{name}` outside of a server")
