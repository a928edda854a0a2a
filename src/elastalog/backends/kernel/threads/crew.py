"""Threads that work at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted."""


def in_threads(number: int, work: Callable[[int], None], abort: Callable[[], None]) -> None:
    """Calls work(0) in this thread and work(1), … in others, and returns when all have. When one fails, `abort` must
    bring the others to an end soon; then its exception is raised. An interruption by the user is such a failure."""
    failures: list[BaseException] = []

    def guarded(own: int) -> None:
        try:
            work(own)
        except (Stopped, threading.BrokenBarrierError):
            # Where this comes from has failed too, and says why.
            pass
        except BaseException as failure:
            failures.append(failure)
            abort()

    # Not daemons, although none is left over: should one be, after Ctrl-C upon Ctrl-C, the interpreter waits for it
    # before it takes away the arrays that it works on.
    threads = [threading.Thread(target=guarded, args=(own,), daemon=False) for own in range(1, number)]
    started: list[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        guarded(0)
        for thread in started:
            thread.join()
    except BaseException:
        abort()
        for thread in started:
            thread.join()
        raise
    if failures:
        raise next((failure for failure in failures if isinstance(failure, KeyboardInterrupt)), failures[0])
