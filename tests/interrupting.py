"""Ctrl-C at a place of one's choice among those where Python looks for it: when a function begins, and when one in C
has returned. How many functions are called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def calls_of(function: Callable[[], object]) -> int:
    """How many functions of Python it calls."""
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


class Places:
    """Counts the places that are passed, and interrupts at one of them, 0: at none."""

    def __init__(self, place: int = 0) -> None:
        self.passed = 0
        self._place = place

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_return"):
            self.passed += 1
            if self.passed == self._place:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)


@contextmanager
def interrupted_at(place: int = 0) -> Iterator[Places]:
    """A block that is interrupted at a place, if it passes so many."""
    places = Places(place)
    sys.setprofile(places)
    try:
        yield places
    finally:
        sys.setprofile(None)
