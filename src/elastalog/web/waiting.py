"""Tasks given to threads, so many of which may wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from elastalog.web import faults

T = TypeVar("T")


class Waiting:
    """Counts tasks that have not ended, and refuses those beyond `most`."""

    def __init__(self, most: int) -> None:
        self.number = 0
        self._most = most
        self._lock = threading.Lock()

    def submit(self, threads: ThreadPoolExecutor, task: Callable[[], T], *, is_asked: bool = True) -> Future[T]:
        """Has a task done, in its turn. Nobody waits for one that is not `is_asked`: it is never refused."""
        with self._lock:
            if is_asked and self.number >= self._most:
                raise faults.too_many_questions(self.number)
            try:
                future = threads.submit(task)
            except RuntimeError:
                raise faults.closed() from None
            self.number += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self.number -= 1
