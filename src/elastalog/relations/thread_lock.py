"""A lock among the threads of one process, which a forked child may not find held for ever."""

from __future__ import annotations

import os
import weakref
from threading import RLock
from typing import TYPE_CHECKING

from elastalog.diagnostics.diagnostic import error

if TYPE_CHECKING:

    class ReentrantLock:
        def acquire(self, blocking: bool = True) -> bool: ...
        def release(self) -> None: ...
        def __enter__(self) -> object: ...
        def __exit__(self, *exception: object) -> None: ...

else:
    ReentrantLock = type(RLock())


class ThreadLock(ReentrantLock):
    """Re-entrant, for `with`. A forked child has no other threads: where one of them held the lock, what it guards may
    be half changed. Taking it there raises ElastalogError instead of waiting for no one."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        _LOCKS.add(self)

    def _after_fork(self) -> None:
        if self.acquire(blocking=False):
            self.release()
        else:
            self.__class__ = _LostLock


class _LostLock(ThreadLock):
    """A lock held by a thread that does not exist in this process."""

    __slots__ = ()

    def __enter__(self) -> object:
        raise error("E0819.thread")


_LOCKS: weakref.WeakSet[ThreadLock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_LOCKS):
        lock._after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
