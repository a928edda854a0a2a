"""The first run on a machine compiles the operators; later runs find their object code and load it.

`python -m elastalog.backends.kernel.compile.warm` compiles them beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from elastalog.jit.building import build, build_here, reported

MESSAGE = "compiling operators, once per machine"


class Progress:
    """Says how far compilation is: one line that changes on a terminal, one that does not elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, done: int, number: int) -> None:
        if self._stream.isatty():
            self._stream.write(f"\rcompiling operators {done} of {number}, once per machine")
            self._stream.write("\n" if done == number else "")
        elif done == 0:
            self._stream.write(f"{MESSAGE}\n")
        self._stream.flush()


@contextmanager
def announced_compilation(announce: Callable[[str], None]) -> Iterator[None]:
    """Says so, once, when operators have to be compiled during the block."""
    with reported(lambda done, number: announce(MESSAGE) if done == 0 else None):
        yield


@contextmanager
def shown_compilation(stream: TextIO) -> Iterator[None]:
    """Shows how far it is when operators have to be compiled during the block."""
    with reported(Progress(stream)):
        yield


def warm() -> None:
    """Compiles every operator that has no object code."""
    build()


if __name__ == "__main__":
    build_here(Progress(sys.stderr))
