"""Threads of a service: for calls from an event loop, a bounded number at a time and for a bounded time, and the one
thread that makes epochs, in the order in which they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from enum import Enum
from typing import ParamSpec, TypeVar

from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.diagnostics.quota import Quota
from elastalog.web.settings import Busy, Limits

Asked = ParamSpec("Asked")
T = TypeVar("T")

PATIENCE = 1.25
"""The answering thread enforces the limit itself, and knows better what was too slow; past this multiple of it, as
when a large answer is being written, the caller stops waiting."""


class Closed(ElastalogError):
    """The service has ended."""


class Kind(Enum):
    """What a call does, each in threads of its own, so that none keeps the others from theirs: it reads, it asks what
    may take long, or it commits."""

    READ = "reader"
    ASK = "question"
    COMMIT = "waiting"


def asks(method: Callable[Asked, T]) -> Callable[Asked, T]:
    """Marks a question that may take long."""
    method.kind = Kind.ASK  # type: ignore[attr-defined]
    return method


def commits(method: Callable[Asked, T]) -> Callable[Asked, T]:
    """Marks what waits for the one thread that commits."""
    method.kind = Kind.COMMIT  # type: ignore[attr-defined]
    return method


class Calls:
    """Threads for every kind of call."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = {
            kind: ThreadPoolExecutor(
                limits.questions if kind is Kind.ASK else limits.concurrent, f"elastalog-{kind.value}"
            )
            for kind in Kind
        }
        self._waiting = Waiting(limits.waiting)

    @property
    def waiting(self) -> int:
        """Calls that have not ended."""
        return self._waiting.number

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a function in a thread. A commit may take as long as it takes."""
        kind: Kind = getattr(function, "kind", Kind.READ)
        if kind is Kind.COMMIT:
            committing = self._waiting.submit(self._threads[kind], lambda: function(*asked, **options))
            return await asyncio.wrap_future(committing)
        end = time.monotonic() + self._limits.seconds

        def answer() -> T:
            with Quota(end):
                return function(*asked, **options)

        future = self._waiting.submit(self._threads[kind], answer)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds * PATIENCE)
        except TimeoutError:
            raise LimitReached.of("E0921", seconds=self._limits.seconds) from None

    def close(self) -> None:
        """Ends after what was begun."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


class Waiting:
    """Counts tasks that have not ended, and refuses those beyond `most`."""

    def __init__(self, most: int) -> None:
        self.number = 0
        self._most = most
        self._lock = threading.Lock()

    def submit(self, threads: ThreadPoolExecutor, task: Callable[[], T], *, is_asked: bool = True) -> Future[T]:
        """Has a task done, in its turn. One that is not `is_asked`, for which no client waits, is never refused."""
        with self._lock:
            if is_asked and self.number >= self._most:
                raise Busy.of("E0922", number=self.number)
            try:
                future = threads.submit(copy_context().run, task)
            except RuntimeError:
                raise Closed.of("E0936") from None
            self.number += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self.number -= 1


class Worker:
    """`most`: tasks that may wait for their turn."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(1, "elastalog-writer")
        self._waiting = Waiting(most)

    @property
    def waiting(self) -> int:
        """Tasks that have not ended."""
        return self._waiting.number

    def do(self, task: Callable[[], T]) -> T:
        """Does a task, and returns what it returns."""
        return self._waiting.submit(self._threads, task).result()

    def afterwards(self, task: Callable[[], object]) -> None:
        """Does a task when there is time, before whatever is asked for later; never, if the worker has ended."""
        with contextlib.suppress(Closed):
            self._waiting.submit(self._threads, task, is_asked=False)

    def close(self) -> None:
        """Ends after what was begun."""
        self._threads.shutdown(cancel_futures=True)
