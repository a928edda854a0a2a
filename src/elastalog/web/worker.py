"""One thread that makes epochs, in the order in which they are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from elastalog.web import faults
from elastalog.web.waiting import Waiting

T = TypeVar("T")


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
        with contextlib.suppress(faults.Closed):
            self._waiting.submit(self._threads, task, is_asked=False)

    def close(self) -> None:
        """Ends after what was begun."""
        self._threads.shutdown(cancel_futures=True)
