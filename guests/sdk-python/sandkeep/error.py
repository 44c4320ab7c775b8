"""Why an attempt failed, as a task says it."""

from typing import Any, Optional


class TaskError(Exception):
    """Why an attempt failed. Workflows decide by the code, people read the message.

    `code` is stable and in capitals, such as `OUT_OF_STOCK`; `retryable` says whether another attempt may succeed;
    `retry_after_ms` how long to wait before it, which makes the error retryable; `details` is whatever JSON helps to
    handle the error.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_ms: Optional[int] = None,
        details: Any = None,
    ):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable or retry_after_ms is not None
        self.retry_after_ms = retry_after_ms
        self.details = details

    @classmethod
    def permanent(cls, code: str, message: str, details: Any = None) -> "TaskError":
        """Makes an error that another attempt would meet again."""
        return cls(code, message, details=details)

    @classmethod
    def transient(
        cls, code: str, message: str, *, retry_after_ms: Optional[int] = None, details: Any = None
    ) -> "TaskError":
        """Makes an error that another attempt may not meet."""
        return cls(code, message, retryable=True, retry_after_ms=retry_after_ms, details=details)
