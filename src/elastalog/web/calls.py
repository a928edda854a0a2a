"""The threads of a service: pools for calls from the event loop, bounded in number and time, and the one thread that
commits, in the order of the requests."""

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
from elastalog.diagnostics.quota import Quota, Stopped
from elastalog.web.settings import Busy, Limits

Asked = ParamSpec("Asked")
T = TypeVar("T")

PATIENCE = 1.25
"""The answering thread enforces the time limit itself and can say what was too slow. The caller stops waiting after
this multiple of the limit, which is reached when, for example, a large answer is being written."""


class Closed(ElastalogError):
    """The service has ended."""


class Kind(Enum):
    """What a call does: it reads, asks what may take long, or commits. Each kind has its own threads, so that none can
    starve the others."""

    READ = "reader"
    ASK = "question"
    COMMIT = "waiting"


def asks(method: Callable[Asked, T]) -> Callable[Asked, T]:
    """Marks a method as a question, which may take long."""
    method.kind = Kind.ASK  # type: ignore[attr-defined]
    return method


def commits(method: Callable[Asked, T]) -> Callable[Asked, T]:
    """Marks a method that waits for the committing thread."""
    method.kind = Kind.COMMIT  # type: ignore[attr-defined]
    return method


class Calls:
    """A thread pool for every kind of call."""

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
        """How many calls have not finished."""
        return self._waiting.number

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a function in a thread of its kind. Commits have no time limit."""
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
        """Ends the threads once their current tasks are done."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


class Waiting:
    """Counts unfinished tasks, and refuses more than `most`."""

    def __init__(self, most: int) -> None:
        self.number = 0
        self._most = most
        self._lock = threading.Lock()

    def submit(self, threads: ThreadPoolExecutor, task: Callable[[], T], *, is_asked: bool = True) -> Future[T]:
        """Queues a task. One that no client waits for (not `is_asked`) is never refused."""
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
    """The thread that commits. `most`: how many tasks may wait."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(1, "elastalog-writer")
        self._waiting = Waiting(most)
        self._at_work: Quota | None = None
        self._is_stopped = False

    @property
    def waiting(self) -> int:
        """How many tasks have not finished."""
        return self._waiting.number

    def do(self, task: Callable[[], T]) -> T:
        """Runs a task and returns its result. Raises Closed if it was stopped."""

        def work() -> T:
            if self._is_stopped:
                raise Closed.of("E0936")
            try:
                with Quota() as self._at_work:
                    return task()
            except Stopped:
                raise Closed.of("E0936.stopped") from None
            finally:
                self._at_work = None

        return self._waiting.submit(self._threads, work).result()

    def afterwards(self, task: Callable[[], object]) -> None:
        """Queues a task that no client waits for; dropped if the worker has ended."""
        with contextlib.suppress(Closed):
            self._waiting.submit(self._threads, task, is_asked=False)

    def stop(self) -> None:
        """Called from another thread: the task at work ends when it next looks at its limits, and has changed nothing;
        no other is begun."""
        self._is_stopped = True
        if (at_work := self._at_work) is not None:
            at_work.stop()

    def close(self) -> None:
        """Ends the threads once their current tasks are done."""
        self._threads.shutdown(cancel_futures=True)
