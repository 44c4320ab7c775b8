"""The module `{{name}}`: what is imported here is what the host finds."""

from sandkeep.module import WitWorld

from . import hello

__all__ = ["WitWorld", "hello"]
