#!/usr/bin/env python3
"""A native worker for Sandkeep: Python's standard library and nothing else.

It registers, asks for work by long polls, runs handlers side by side, and reports what became of each task. It tells
the server that it is alive while handlers run, registers again when its session is gone, waits for a server that is
away, sends a result until the server has taken it, and finishes what it has when it is told to stop.

To make it yours: write a function that takes a `Task` and returns what JSON can hold, and name it in `HANDLERS`.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

Json = Any

POLL_SECONDS = 20
ANSWER_SECONDS = 30
BACKOFF_SECONDS = 0.2
BACKOFF_SECONDS_MAX = 10.0


class TaskFailed(Exception):
    """What a handler raises to fail its task with a code."""

    def __init__(self, code: str, message: str, *, retryable: bool, details: Json = None) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable, self.details = code, message, retryable, details


@dataclass(frozen=True)
class Task:
    """One delivery of a task."""

    token: str
    execution_id: str
    unit: str
    name: str
    input: Json
    attempt: int
    redelivery: bool
    idempotency_key: str
    cancelled: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def read(message: dict[str, Json]) -> Task:
        """Reads a task; fields that are not known here are for newer workers."""
        return Task(
            token=message["token"],
            execution_id=message["execution_id"],
            unit=message["step_id"],
            name=message["task_name"],
            input=message["input"],
            attempt=message["attempt"],
            redelivery=message["redelivery"],
            idempotency_key=message["idempotency_key"],
        )


Handler = Callable[[Task], Json]


def charge(task: Task) -> Json:
    """Charges a card.

    A real one would hand the idempotency key to the payment provider: it is the same for every attempt and delivery of
    this unit, so that a customer pays once. Here the key alone decides the payment's id.
    """
    order = task.input
    if not isinstance(order, dict) or not isinstance(order.get("amount_cents"), int) or order["amount_cents"] <= 0:
        raise TaskFailed("INVALID_INPUT", "amount_cents must be a whole number above zero", retryable=False)
    if order.get("card_token") == "tok_declined":
        raise TaskFailed("CARD_DECLINED", "the bank declined the card", retryable=False)
    if order.get("card_token") == "tok_flaky" and task.attempt == 1:
        raise TaskFailed("PROVIDER_BUSY", "the payment provider is busy", retryable=True)
    digest = hashlib.sha256(task.idempotency_key.encode()).hexdigest()
    return {
        "payment_id": f"pay_{digest[:16]}",
        "amount_cents": order["amount_cents"],
        "currency": order.get("currency", "EUR"),
    }


# What this worker does: the task's name, the version of its contract, and the function.
HANDLERS: dict[str, tuple[str, Handler]] = {
    "payments.charge": ("1.0.0", charge),
}


class Away(Exception):
    """The server cannot be asked now; the same request is worth another try."""


class Refused(Exception):
    """The server has answered that it will not."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.status, self.code = status, code


class Connection:
    """Requests to one server, one at a time, over a connection that is kept open."""

    def __init__(self, server: str, token: str | None) -> None:
        url = urlsplit(server)
        if url.scheme != "http" or url.hostname is None:
            raise SystemExit(f"--server {server}: it must begin with http://")
        self._host, self._port, self._base = url.hostname, url.port or 80, url.path.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._http: http.client.HTTPConnection | None = None
        self._is_cut = False

    def post(self, path: str, message: Json, timeout: float = ANSWER_SECONDS) -> Json:
        """Sends a message and returns the answer, `None` for an empty one."""
        status, body = self._exchange(path, json.dumps(message), timeout)
        try:
            answer = json.loads(body) if body else None
        except ValueError as error:
            raise Away(f"the answer {status} is not JSON") from error
        if status == 429 or status >= 500:
            raise Away(f"the server answered {status}")
        if status >= 400:
            problem = answer.get("error", {}) if isinstance(answer, dict) else {}
            raise Refused(status, problem.get("code", "UNKNOWN"), problem.get("message", f"answer {status}"))
        return answer

    def _exchange(self, path: str, body: str, timeout: float) -> tuple[int, bytes]:
        kept = self._http is not None
        try:
            if self._http is None:
                self._http = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            elif self._http.sock is not None:
                self._http.sock.settimeout(timeout)
            self._http.request("POST", self._base + path, body, self._headers)
            response = self._http.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # A connection that was kept open may have been closed by the server while nothing was said on it.
            if kept and isinstance(error, ConnectionError) and not self._is_cut:
                return self._exchange(path, body, timeout)
            raise Away(str(error) or type(error).__name__) from error

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def cut(self) -> None:
        """Ends a request that another thread waits for. A task that is on its way goes back to the server."""
        self._is_cut = True
        kept = self._http
        if kept is not None and kept.sock is not None:
            try:
                kept.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Backoff:
    """Pauses that grow while nothing works, each drawn anew so that many workers do not come back at once."""

    def __init__(self) -> None:
        self._failures = 0

    def next(self) -> float:
        """Returns the next pause in seconds."""
        longest = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return random.uniform(longest / 10, longest)

    def reset(self) -> None:
        """Begins anew, after something worked."""
        self._failures = 0


class Worker:
    """Serves tasks until it is told to stop."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._active: dict[str, Task] = {}
        self._session: str | None = None
        self._heartbeat_seconds = 5.0
        self._server_drains = False
        self._registered = threading.Event()
        self._stop = threading.Event()
        self._done = threading.Event()
        self._polling = self._connect()

    def run(self) -> None:
        """Serves until `stop`, then finishes what it has."""
        threads = [threading.Thread(target=self._heartbeats, daemon=True), threading.Thread(target=self._polls, daemon=True)]
        for thread in threads:
            thread.start()
        while not self._stop.wait(1.0):
            pass
        self._drain()

    def stop(self) -> None:
        """Takes nothing new."""
        self._stop.set()
        self._polling.cut()

    def _connect(self) -> Connection:
        return Connection(self._arguments.server, self._arguments.token)

    # Registration

    def _register(self, connection: Connection) -> str:
        contracts = [{"task_name": name, "version": version} for name, (version, _) in HANDLERS.items()]
        answer = connection.post("/v1/workers/register", {
            "worker_id": self._arguments.worker_id,
            "runtime": "python",
            "sdk": "example",
            "queues": self._arguments.queue,
            "capacity": self._arguments.capacity,
            "contracts": contracts,
        })
        with self._lock:
            self._session = answer["worker_session_id"]
            self._heartbeat_seconds = answer["heartbeat_interval_ms"] / 1000
            self._server_drains = False
            session, active = self._session, list(self._active.values())
        self._registered.set()
        say(f"registered as {self._arguments.worker_id} for {', '.join(HANDLERS)}")
        if active:
            # Before the first poll: a server that was away keeps for us what we name, and hands out the rest again.
            connection.post("/v1/workers/heartbeat", signs_of_life(session, active))
        return session

    def _forget(self, session: str) -> None:
        """Drops a session that the server does not know; whoever polls next registers again."""
        with self._lock:
            if self._session == session:
                self._session = None

    # Taking work

    def _polls(self) -> None:
        backoff = Backoff()
        while not self._stop.is_set():
            free = self._wait_for_room()
            if free == 0:
                continue
            session = self._session
            try:
                session = session or self._register(self._polling)
                # A stop that came before the request was out would not cut it.
                if self._stop.is_set():
                    break
                message = {"worker_session_id": session, "wait_ms": POLL_SECONDS * 1000, "max_tasks": free}
                answer = self._polling.post("/v1/workers/poll", message, POLL_SECONDS + ANSWER_SECONDS)
                backoff.reset()
            except Away as error:
                if not self._stop.is_set():
                    self._pause(backoff, str(error))
                continue
            except Refused as error:
                if error.code == "SESSION_NOT_FOUND" and session is not None:
                    self._forget(session)
                else:
                    self._pause(backoff, str(error))
                continue
            for task in (answer or {}).get("tasks", []):
                self._begin(Task.read(task))

    def _wait_for_room(self) -> int:
        """Returns how many more tasks may run; waits a moment where there are none."""
        with self._free:
            if len(self._active) >= self._arguments.capacity or self._server_drains:
                self._free.wait(1.0)
            return 0 if self._server_drains else self._arguments.capacity - len(self._active)

    def _pause(self, backoff: Backoff, problem: str) -> None:
        seconds = backoff.next()
        say(f"{problem}; asking again in {seconds:.1f} s")
        self._stop.wait(seconds)

    # Doing work

    def _begin(self, task: Task) -> None:
        with self._lock:
            self._active[task.token] = task
        threading.Thread(target=self._serve, args=(task,), daemon=True).start()

    def _serve(self, task: Task) -> None:
        again = ", delivered again" if task.redelivery else ""
        say(f"{task.name} for {task.execution_id}/{task.unit}, attempt {task.attempt}{again}")
        path, message = self._result(task)
        try:
            self._report(task, path, message)
        finally:
            with self._free:
                self._active.pop(task.token, None)
                self._free.notify_all()

    def _result(self, task: Task) -> tuple[str, Json]:
        try:
            if task.name not in HANDLERS:
                raise TaskFailed("UNKNOWN_TASK", f"this worker does not do {task.name}", retryable=True)
            _, handler = HANDLERS[task.name]
            output = handler(task)
            json.dumps(output, allow_nan=False)
            return "/v1/tasks/complete", {"token": task.token, "output": output}
        except TaskFailed as failure:
            return "/v1/tasks/fail", failed(task, failure.code, failure.message, failure.retryable, failure.details)
        except Exception as error:  # A handler's mistake is its task's failure, not the worker's.
            return "/v1/tasks/fail", failed(task, "HANDLER_ERROR", f"{type(error).__name__}: {error}", True, None)

    def _report(self, task: Task, path: str, message: Json) -> None:
        """Sends a result until the server has taken it. Until then the heartbeats go on to name the task."""
        connection, backoff = self._connect(), Backoff()
        outcome = message.get("error_code", "done")
        while not self._done.is_set():
            try:
                answer = connection.post(path, message)
                stale = " (too late to count)" if answer.get("stale") else ""
                say(f"{task.name} for {task.execution_id}/{task.unit}: {outcome}{stale}")
                break
            except Away as error:
                seconds = backoff.next()
                say(f"{error}; sending the result again in {seconds:.1f} s")
                self._done.wait(seconds)
            except Refused as error:
                say(f"{task.name} for {task.execution_id}/{task.unit}: the result was refused: {error}")
                break
        connection.close()

    # Signs of life

    def _heartbeats(self) -> None:
        connection = self._connect()
        # Only a registration tells how often.
        self._registered.wait()
        while not self._done.wait(self._heartbeat_seconds):
            with self._lock:
                session, active = self._session, list(self._active.values())
            if session is None:
                continue
            try:
                answer = connection.post("/v1/workers/heartbeat", signs_of_life(session, active))
            except Away as error:
                say(f"no heartbeat: {error}")
                continue
            except Refused as error:
                self._forget(session)
                say(f"no heartbeat: {error}")
                continue
            for task in active:
                if task.token in answer.get("cancel", []):
                    task.cancelled.set()
            with self._lock:
                self._server_drains = bool(answer.get("drain"))

    # The end

    def _drain(self) -> None:
        deadline = time.monotonic() + self._arguments.drain_seconds
        with self._free:
            say(f"stopping; {len(self._active)} tasks to finish")
            while self._active and time.monotonic() < deadline:
                self._free.wait(0.2)
            session = self._session
        self._done.set()
        if session is not None:
            try:
                self._connect().post("/v1/workers/unregister", {"worker_session_id": session}, 5)
            except (Away, Refused) as error:
                say(f"could not say goodbye: {error}")
        say("stopped")


def signs_of_life(session: str, active: list[Task]) -> Json:
    """Returns the message of a heartbeat, which names what runs."""
    return {"worker_session_id": session, "active": [{"token": task.token} for task in active]}


def failed(task: Task, code: str, message: str, retryable: bool, details: Json) -> Json:
    """Returns the message of a failure."""
    report = {"token": task.token, "error_code": code, "error_message": message, "retryable": retryable}
    return report if details is None else {**report, "details": details}


def say(sentence: str) -> None:
    """Tells people what happens."""
    print(f"worker: {sentence}", file=sys.stderr, flush=True)


def main() -> None:
    """Reads the arguments and serves until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="A native worker for Sandkeep.")
    parser.add_argument("--server", default=os.environ.get("SANDKEEP_SERVER", "http://127.0.0.1:7420"), metavar="URL")
    parser.add_argument("--token", default=os.environ.get("SANDKEEP_TOKEN"), help="the bearer token to show")
    parser.add_argument("--worker-id", default=f"python-{socket.gethostname()}-{os.getpid()}")
    parser.add_argument("--queue", action="append", help="a queue to take from; may be given again (default: default)")
    parser.add_argument("--capacity", type=int, default=4, help="how many tasks run at once (default: 4)")
    parser.add_argument("--drain-seconds", type=float, default=30, help="how long running tasks may take at the end")
    arguments = parser.parse_args()
    arguments.queue = arguments.queue or ["default"]
    if arguments.capacity < 1:
        parser.error("--capacity must be at least 1")
    worker = Worker(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
