"""Calls from an event loop: in other threads, so many at a time, for so long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from elastalog.diagnostics.deadline import until
from elastalog.web import faults
from elastalog.web.limits import Limits
from elastalog.web.waiting import Waiting

Asked = ParamSpec("Asked")
T = TypeVar("T")

PATIENCE = 1.25
"""Who answers keeps to the time itself, ends, and knows better what was too slow; beyond this many times it, as when a
large answer is being written, nobody waits."""


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
        self._waiting = Waiting(limits.waiting)

    @property
    def waiting(self) -> int:
        """Calls that have not ended."""
        return self._waiting.number

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a function in a thread. A commit may take as long as it takes."""
        is_working = getattr(function, "works", False)
        threads = self._writers if is_working else self._readers
        end = time.monotonic() + self._limits.seconds

        def answer() -> T:
            with until(end):
                return function(*asked, **options)

        future = self._waiting.submit(threads, answer)
        if is_working:
            return await asyncio.wrap_future(future)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds * PATIENCE)
        except TimeoutError:
            raise faults.too_slow(self._limits.seconds) from None

    def close(self) -> None:
        """Ends after what was begun."""
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
