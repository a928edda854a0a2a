"""Threads that work at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

_PATIENCE = 1.0
"""Seconds after which a thread that waits for work looks whether somebody may still give it some."""


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted."""


class Crew:
    """So many threads, the caller's among them, which do one work after another within the block of the crew."""

    def __init__(self, number: int) -> None:
        self._work: Callable[[int], None] = lambda own: None
        self._abort: Callable[[], None] = lambda: None
        self._failures: list[BaseException] = []
        self._is_over = False
        self._begin = [_held() for _ in range(1, number)]
        self._ended = [_held() for _ in range(1, number)]
        # Not daemons, although none is left over: should one be, after Ctrl-C upon Ctrl-C, the interpreter waits for it
        # before it takes away the arrays that it works on.
        self._threads = [threading.Thread(target=self._serve, args=(own,), daemon=False) for own in range(1, number)]
        self._started: list[threading.Thread] = []

    def __enter__(self) -> Crew:
        try:
            for thread in self._threads:
                thread.start()
                self._started.append(thread)
        except BaseException:
            self._dismiss()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._dismiss()

    def do(self, work: Callable[[int], None], abort: Callable[[], None]) -> None:
        """Calls work(0) in this thread and work(1), … in the others, and returns when all have. When one fails, `abort`
        must bring the others to an end soon; then its exception is raised, and there is no further work for the crew.
        An interruption by the user is such a failure."""
        self._work, self._abort = work, abort
        try:
            for begin in self._begin:
                begin.release()
            self._guarded(0)
            for ended in self._ended:
                ended.acquire()
        except BaseException:
            abort()
            self._dismiss()
            raise
        if self._failures:
            failures = self._failures
            raise next((failure for failure in failures if isinstance(failure, KeyboardInterrupt)), failures[0])

    def _guarded(self, own: int) -> None:
        try:
            self._work(own)
        except (Stopped, threading.BrokenBarrierError):
            # Where this comes from has failed too, and says why.
            pass
        except BaseException as failure:
            self._failures.append(failure)
            self._abort()

    def _serve(self, own: int) -> None:
        begin, ended = self._begin[own - 1], self._ended[own - 1]
        while True:
            while not begin.acquire(timeout=_PATIENCE):
                if not threading.main_thread().is_alive():
                    return
            if self._is_over:
                return
            self._guarded(own)
            ended.release()

    def _dismiss(self) -> None:
        """Ends the threads, when they have done what they are doing."""
        self._is_over = True
        for begin in self._begin:
            if begin.locked():
                begin.release()
        for thread in self._started:
            thread.join()


def in_threads(number: int, work: Callable[[int], None], abort: Callable[[], None]) -> None:
    """One work for a crew of its own (see `Crew.do`)."""
    with Crew(number) as crew:
        crew.do(work, abort)


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
