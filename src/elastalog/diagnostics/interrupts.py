"""Who may cut in, and when: Ctrl-C and SIGTERM only where they do no harm, other threads sooner than usual."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without enumerations, which cost a lot
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


class uninterrupted:  # noqa: N801  # used like a function
    """Holds Ctrl-C and SIGTERM back until the end of the block, so that disk and memory cannot come to differ within
    it. Only the main thread is ever interrupted; elsewhere there is nothing to do."""

    __slots__ = ("_before", "_held")

    def __enter__(self) -> None:
        self._held: tuple[int, FrameType | None] | None = None
        self._before: dict[int, Handler] = {}
        try:
            for number in _NUMBERS:
                if callable(before := _getsignal(number)):
                    self._before[number] = before
                    _set(number, self._hold)
        except ValueError:  # this is not the main thread
            self._before = {}

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._held = number, frame

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            _set(number, before)
        if self._held is not None:
            self._before[self._held[0]](*self._held)


_NUMBERS = int(signal.SIGINT), int(signal.SIGTERM)
_getsignal, _set = _signal.getsignal, _signal.signal


SHORT_INTERVAL = 0.0005
"""Seconds after which a thread that runs Python hands the interpreter to one that waits for it."""


@contextmanager
def switching_sooner() -> Iterator[None]:
    """A block with a short switch interval. A thread that calls the system or compiled code many times may have to wait
    for the interpreter each time: with the usual interval, a commit some tens of milliseconds in all."""
    global _blocks, _usual
    with _COUNTING:
        if not _blocks:
            _usual = sys.getswitchinterval()  # the program may have set its own
            sys.setswitchinterval(min(_usual, SHORT_INTERVAL))
        _blocks += 1
    try:
        yield
    finally:
        with _COUNTING:
            _blocks -= 1
            if not _blocks:
                sys.setswitchinterval(_usual)


_COUNTING = threading.Lock()
_blocks, _usual = 0, 0.0
