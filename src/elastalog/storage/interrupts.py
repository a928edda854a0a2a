"""Ctrl-C at a moment when it can do no harm."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without enumerations, which cost a lot
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class uninterrupted:  # noqa: N801  # used like a function
    """Holds Ctrl-C back until the end of the block, so that disk and memory cannot part company within it. Only the
    main thread is ever interrupted; elsewhere there is nothing to do."""

    __slots__ = ("_before", "_held")

    def __init__(self) -> None:
        self._before: Callable[[int, FrameType | None], Any] | None = None
        self._held: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = _signal.getsignal(_SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(_SIGINT, self._hold)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._held = self._held or (number, frame)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        before = self._before
        if before is not None:
            _signal.signal(_SIGINT, before)
            if self._held is not None:
                before(*self._held)


_SIGINT = int(signal.SIGINT)
