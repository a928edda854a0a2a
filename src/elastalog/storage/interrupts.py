"""Ctrl-C, or SIGTERM, at a moment when it can do no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds Ctrl-C and SIGTERM back until the end of the block, so that disk and memory cannot part company within it.
    Only the main thread is ever interrupted; elsewhere there is nothing to do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if callable(handler)}
    held: list[tuple[int, FrameType | None]] = []
    for number in before:
        signal.signal(number, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            before[signal.Signals(held[-1][0])](*held[-1])
