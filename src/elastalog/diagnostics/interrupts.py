"""Ctrl-C, or SIGTERM, at a moment when it can do no harm."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without enumerations, which cost a lot
import signal
from collections.abc import Callable
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
