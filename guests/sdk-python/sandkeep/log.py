"""Log lines, kept with the attempt's result. Keyword arguments become the line's fields."""

import json

from . import _host


def _write(level, message, fields):
    _host.write(level, str(message), json.dumps(fields, default=str) if fields else None)


def debug(message, **fields):
    _write("debug", message, fields)


def info(message, **fields):
    _write("info", message, fields)


def warn(message, **fields):
    _write("warn", message, fields)


def error(message, **fields):
    _write("error", message, fields)
