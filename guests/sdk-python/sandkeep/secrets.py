"""Secrets that the module was granted, by name."""

from . import _host


def get(name: str):
    """Returns a handle to a secret; its `reveal()` gives the value and is recorded. Both raise where there is none."""
    return _host.get_secret(name)
