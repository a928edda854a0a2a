"""One thread that does what must be done one at a time, in the order in which it is asked for."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from elastalog.web import faults
from elastalog.web.waiting import Waiting

T = TypeVar("T")

TURN = 0.0005
"""Seconds after which a task that runs Python leaves the interpreter to a reader that waits for it. A reader goes in
and out of compiled code many times, and waits so long each time: with the usual 5 ms, a tenth of a second together."""


class Worker:
    """`most`: tasks that may wait for their turn. A task that has not begun when its time is over never begins."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(1, "elastalog-writer")
        self._waiting = Waiting(most)

    @property
    def waiting(self) -> int:
        """Tasks that have not ended."""
        return self._waiting.number

    def do(self, task: Callable[[float | None], T], seconds: float | None = None) -> T:
        """Does a task, which is told how much of its time is left, and returns what it returns."""
        began = time.monotonic()

        def in_turn() -> T:
            left = None if seconds is None else seconds - (time.monotonic() - began)
            if left is not None and left <= 0:
                raise faults.too_slow(seconds or 0)
            with giving_way():
                return task(left)

        future = self._waiting.submit(self._threads, in_turn)
        try:
            # A task that runs ends by itself soon after its time; one that waits is cancelled.
            return future.result(seconds)
        except TimeoutError:
            if future.cancel():
                raise faults.too_slow(seconds or 0) from None
            return future.result()

    def afterwards(self, task: Callable[[], object]) -> None:
        """Does a task when there is time, before whatever is asked for later; never, if the worker has ended."""
        with contextlib.suppress(faults.Closed):
            self._waiting.submit(self._threads, giving_way()(task), is_asked=False)

    def close(self) -> None:
        """Ends after what was begun."""
        self._threads.shutdown(cancel_futures=True)


@contextlib.contextmanager
def giving_way() -> Iterator[None]:
    """A block in which other threads get the interpreter sooner than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
