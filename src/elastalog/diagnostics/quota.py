"""What the work of a thread may use: how much time, and how much memory of its own. The caller sets it. Long loops
check it, and code that is about to make a large array reports its size."""

from __future__ import annotations

import math
import os
import sys
import time
from contextvars import ContextVar, Token
from dataclasses import replace
from functools import cache

from elastalog.diagnostics.diagnostic import Diagnostic, Label, LimitReached, finding
from elastalog.diagnostics.source import Source, Span


class Stopped(LimitReached):
    """Another thread needs what this one is working on."""


class Quota:
    """Limits in force for a block: `with Quota(end, memory):`. `end` is a time of `time.monotonic`, `memory` a number
    of bytes that the block may allocate (None: any), `asked` the question that it answers, whose text errors show. A
    quota within another one ends no later, and what is taken from it is taken from that one, too."""

    __slots__ = ("_asked", "_is_stopped", "_memory", "_outer", "_taken", "_token", "end")

    def __init__(self, end: float | None = None, memory: int | None = None, asked: object = None) -> None:
        self._outer = outer = CURRENT.get()
        self._asked: object = asked if asked is not None or outer is None else outer._asked
        usual: float = math.inf if outer is None else outer.end
        self.end: float = usual if end is None else min(usual, end)
        self._memory = memory
        self._taken = 0
        self._is_stopped = False
        self._token: Token[Quota | None] | None = None

    def __enter__(self) -> Quota:
        self._token = CURRENT.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._token is not None
        CURRENT.reset(self._token)

    def stop(self, is_stopped: bool = True) -> None:
        """Called from another thread: the work ends when it next checks."""
        self._is_stopped = is_stopped

    def look(self) -> None:
        """Raises LimitReached when the time is over, Stopped if another thread said so."""
        if time.monotonic() > self.end:
            raise self._reached(_TIME)
        quota: Quota | None = self
        while quota is not None:  # asked very often, so that nothing is called
            if quota._is_stopped:
                raise Stopped(self._reached(_STOPPED).diagnostics)
            quota = quota._outer

    def take(self, size: int) -> None:
        """Counts memory that is about to be allocated, minus what it replaces. Raises LimitReached beyond the limit."""
        nested, outer = [self], self._outer
        while outer is not None:
            nested.append(outer)
            outer = outer._outer
        for quota in nested:
            if quota._memory is not None and quota._taken + size > quota._memory and size > 0:
                raise self._reached(finding("E0663", memory=quota._memory / 2**20, taken=(quota._taken + size) / 2**20))
        for quota in nested:
            quota._taken += size

    @property
    def bounds_memory(self) -> bool:
        """Whether memory is limited, by this quota or one around it."""
        return self._memory is not None or (self._outer is not None and self._outer.bounds_memory)

    def _reached(self, limit: Diagnostic) -> LimitReached:
        """The error for a limit, with the question that reached it."""
        if self._asked is None:
            return LimitReached([limit])
        source = Source("<question>", str(self._asked))
        return LimitReached([replace(limit, source=source, labels=(Label(Span(0, len(source.text)), "asked here"),))])


CURRENT: ContextVar[Quota | None] = ContextVar("what the work may take", default=None)


def within(seconds: float | None, memory: int | None = None, asked: object = None) -> Quota:
    """A quota from now on: seconds, and bytes of memory; None for no limit."""
    return Quota(None if seconds is None else time.monotonic() + seconds, memory, asked)


class lifted:  # noqa: N801  # used like a function
    """A block that must run to its end without limits."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = CURRENT.set(None)

    def __exit__(self, *exception: object) -> None:
        CURRENT.reset(self._token)


def time_left(seconds: float) -> float:
    """How much of `seconds` is left: all of it, unless the time of a surrounding block ends sooner. 0 or less if that
    is over."""
    quota = CURRENT.get()
    return seconds if quota is None else min(seconds, quota.end - time.monotonic())


def look() -> None:
    """Raises LimitReached when the time of the block is over."""
    quota = CURRENT.get()
    if quota is not None:
        quota.look()


def take(size: int) -> None:
    """Takes memory from the quota in force, if there is one."""
    quota = CURRENT.get()
    if quota is not None:
        quota.take(size)


_TIME = Diagnostic(
    "E0603",
    "the time limit was reached",
    help="allow more: `--timeout`, of a service `--question-time`, in Python `limits=Limits(time=…)`",
)
_STOPPED = Diagnostic(
    "E0939",
    "the question was in the way of an update, and is cancelled",
    help="ask again in a moment; or start the service without `--readers-wait`",
)


LEAST = 1 << 20
"""Bytes that are worth asking for: what is less is seen when the limit is next looked at."""

LIMIT: ContextVar[int | None] = ContextVar("memory of the work", default=None)
"""Bytes of this process; None: as many as a process may have where the user says nothing."""


def process_limit() -> int | None:
    """Bytes that this process may have while the work that is under way is done."""
    limit = LIMIT.get()
    return most_of_memory() if limit is None else limit


@cache
def most_of_memory() -> int | None:
    """The limit where the user sets none: nine tenths of the machine's memory, so that a program that outgrows it ends
    with a diagnostic instead of being killed. None where the system does not say how much there is."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 10 * 9
    except (AttributeError, OSError, ValueError):
        return None


def ask(size: int, replaced: int = 0) -> None:
    """Raises LimitReached if `size` more bytes would exceed a limit: that of the process, or that of the current work.
    The `replaced` bytes will be freed."""
    take(size - replaced)
    if size >= LEAST:
        require(size, process_limit())


def require(size: int, limit: int | None) -> None:
    """Raises LimitReached if `size` more bytes would take this process beyond a limit."""
    if limit is None:
        return
    needed = resident_bytes() + size
    if needed > limit:
        if limit < 1 << 20:
            raise LimitReached.of("E0604.bytes", limit=limit)
        raise LimitReached.of("E0604", needed=needed >> 20, limit=limit >> 20)


def resident_bytes() -> int:
    """The memory of this process; 0 if the system does not tell."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)  # a tenth of what `open` takes, which updates notice
        try:
            return int(os.read(file, 256).split()[1]) * os.sysconf("SC_PAGE_SIZE")
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return 0


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
