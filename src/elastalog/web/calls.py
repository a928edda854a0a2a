"""Calls from an event loop: in other threads, so many at a time, for so long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import ParamSpec, TypeVar

from elastalog.diagnostics.quota import Quota
from elastalog.web import faults
from elastalog.web.limits import Limits
from elastalog.web.waiting import Waiting

Asked = ParamSpec("Asked")
T = TypeVar("T")

PATIENCE = 1.25
"""Who answers keeps to the time itself, ends, and knows better what was too slow; beyond this many times it, as when a
large answer is being written, nobody waits."""


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
            raise faults.too_slow(self._limits.seconds) from None

    def close(self) -> None:
        """Ends after what was begun."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)
