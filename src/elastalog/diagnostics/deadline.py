"""Until when the work of a thread may take: who begins it says so, and loops that may be long ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached

END: ContextVar[float | None] = ContextVar("end of the work", default=None)
"""When the time of the block is over, of `time.monotonic`; None: never."""


@contextmanager
def until(end: float | None) -> Iterator[float | None]:
    """A block whose time is over at `end`, of `time.monotonic` (None: never), and no later than that of the blocks
    around it. Gives the end that is in force."""
    usual = END.get()
    if end is None or (usual is not None and usual <= end):
        yield usual
        return
    token = END.set(end)
    try:
        yield end
    finally:
        END.reset(token)


@contextmanager
def within(seconds: float | None) -> Iterator[float | None]:
    """A block that may take so many seconds from now on, otherwise the same."""
    with until(None if seconds is None else time.monotonic() + seconds) as end:
        yield end


@contextmanager
def lifted() -> Iterator[None]:
    """A block that must get to its end, however long it takes."""
    token = END.set(None)
    try:
        yield
    finally:
        END.reset(token)


def time_left(seconds: float) -> float:
    """What is left of so many seconds: all of them, unless the time of a block around is over sooner. 0 or less when it
    is over."""
    end = END.get()
    return seconds if end is None else min(seconds, end - time.monotonic())


def look() -> None:
    """Raises LimitReached when the time is over."""
    end = END.get()
    if end is not None and time.monotonic() > end:
        raise time_is_over()


def time_is_over() -> LimitReached:
    return LimitReached(
        [
            Diagnostic(
                "E0603", "the time limit was reached", help="allow more: `--timeout`, in Python `limits=Limits(time=…)`"
            )
        ]
    )
