"""The module: what is imported here is what the host finds."""

from sandkeep.module import WitWorld

from . import stats

__all__ = ["WitWorld", "stats"]
