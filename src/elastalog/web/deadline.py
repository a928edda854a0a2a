"""Until when the question that a thread is answering may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float | None] = ContextVar("end of the question", default=None)


@contextmanager
def until(end: float) -> Iterator[None]:
    """A block that answers a question whose time is over at `end`, of `time.monotonic`."""
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)


def time_left(seconds: float) -> float:
    """What is left of so many seconds: all of them, unless the question was asked before and its time is over sooner.
    0 or less when it is over."""
    end = _END.get()
    return seconds if end is None else min(seconds, end - time.monotonic())
