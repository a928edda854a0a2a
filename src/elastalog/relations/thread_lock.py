"""A lock among the threads of one process, which a forked child may not find held for ever."""

from __future__ import annotations

import os
import threading
import weakref

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError


class ThreadLock:
    """Re-entrant, for `with`. A child that is forked has no other threads: where one of them held the lock, what it
    guards may be half changed, so that taking it there raises ElastalogError instead of waiting for no one."""

    __slots__ = ("__weakref__", "_is_lost", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_lost = False
        _LOCKS.add(self)

    def __enter__(self) -> None:
        if self._is_lost:
            raise ElastalogError([_lost()])
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def _after_fork(self) -> None:
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._is_lost = True


_LOCKS: weakref.WeakSet[ThreadLock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_LOCKS):
        lock._after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _lost() -> Diagnostic:
    return Diagnostic(
        "E0819",
        "the session was in use by another thread when this process was forked: its copy here is not whole",
        help="open it again in this process",
    )
