"""Calls from an event loop: in other threads, so many at a time, for so long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from elastalog.web import faults
from elastalog.web.limits import Limits

Asked = ParamSpec("Asked")
T = TypeVar("T")

PATIENCE = 1.25
"""Who answers keeps to the time itself, and knows better what was too slow; beyond this many times it, nobody waits."""


def works(method: Callable[Asked, T]) -> Callable[Asked, T]:
    """Marks what is done by the one thread that commits: whoever waits for that must not keep readers from a thread."""
    method.works = True  # type: ignore[attr-defined]
    return method


class Calls:
    """Threads for readers, and others for those who wait for the one that commits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._readers = ThreadPoolExecutor(limits.concurrent, "elastalog-reader")
        self._writers = ThreadPoolExecutor(limits.concurrent, "elastalog-waiting")
        self._waiting = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Calls that have not ended."""
        return self._waiting

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a function in a thread. A commit may take as long as it takes."""
        is_working = getattr(function, "works", False)
        future = self._submit(self._writers if is_working else self._readers, partial(function, *asked, **options))
        if is_working:
            return await asyncio.wrap_future(future)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds * PATIENCE)
        except TimeoutError:
            raise faults.too_slow(self._limits.seconds) from None

    def _submit(self, threads: ThreadPoolExecutor, task: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._waiting >= self._limits.waiting:
                raise faults.too_many_questions(self._waiting)
            self._waiting += 1
        try:
            future = threads.submit(task)
        except RuntimeError:
            self._done(None)
            raise faults.closed() from None
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """Ends after what was begun."""
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
