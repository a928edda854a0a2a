"""One thread that does what must be done one at a time, in the order in which it is asked for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from elastalog.web import faults

T = TypeVar("T")


class Worker:
    """`most`: tasks that may wait for their turn. A task that has not begun when its time is over never begins."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = ThreadPoolExecutor(1, "elastalog-writer")
        self._waiting = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Tasks that have not ended."""
        return self._waiting

    def do(self, task: Callable[[float | None], T], seconds: float | None = None) -> T:
        """Does a task, which is told how much of its time is left, and returns what it returns."""
        began = time.monotonic()

        def in_turn() -> T:
            left = None if seconds is None else seconds - (time.monotonic() - began)
            if left is not None and left <= 0:
                raise faults.too_slow(seconds or 0)
            return task(left)

        future = self._submit(in_turn)
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
            self._submit(task, is_asked=False)

    def _submit(self, task: Callable[[], T], *, is_asked: bool = True) -> Future[T]:
        with self._lock:
            if is_asked and self._waiting >= self._most:
                raise faults.too_many_questions(self._waiting)
            self._waiting += 1
            try:
                future = self._threads.submit(task)
            except RuntimeError:
                self._waiting -= 1
                raise faults.closed() from None
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """Ends after what was begun."""
        self._threads.shutdown(cancel_futures=True)
