"""What the host offers: by the bindings in a module, by stand-ins everywhere else."""

try:
    from wit_world.imports import attempt as _attempt, log as _log, secrets as _secrets
except ModuleNotFoundError:
    from ._native import cancelled, current, get_secret, last_progress, report_progress, write
else:
    cancelled, current = _attempt.cancelled, _attempt.current
    last_progress, report_progress = _attempt.last_progress, _attempt.report_progress
    get_secret = _secrets.get

    def write(level, message, fields):
        _log.write(_log.Level[level.upper()], message, fields)


__all__ = ["cancelled", "current", "get_secret", "last_progress", "report_progress", "write"]
