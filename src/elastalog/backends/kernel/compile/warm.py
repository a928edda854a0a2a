"""The first run on a machine compiles the operators, unless a wheel brought them; later runs find their object code.

`python -m elastalog.backends.kernel.compile.warm` compiles them beforehand; with a folder and families of processors,
as the build of a wheel has it, it puts object code for these into the folder.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

from elastalog.jit.building import build, pack, reported

SECONDS = 1.0
"""What an operator takes one core to compile, roughly."""


def message(number: int) -> str:
    """What is about to be done, and how long it will take."""
    about = max(5, round(number * SECONDS / (os.cpu_count() or 1) / 5) * 5)
    return f"compiling {number} operators, once per machine: about {about} s"


class Progress:
    """Says how far compilation is: one line that changes on a terminal, elsewhere one at the start and one at the
    end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = 0.0

    def __call__(self, done: int, number: int) -> None:
        if done == 0:
            self._began = time.monotonic()
        passed = time.monotonic() - self._began
        if done == number:
            line = f"compiled {number} operators in {passed:.0f} s"
        elif done == 0:
            line = message(number)
        else:
            line = f"compiling operators, once per machine: {done} of {number}, {passed:.0f} s"
        if self._stream.isatty():
            self._stream.write(f"\r\033[K{line}" + ("\n" if done == number else ""))
        elif done in (0, number):
            self._stream.write(f"{line}\n")
        self._stream.flush()


def announced_compilation(announce: Callable[[str], None]) -> AbstractContextManager[None]:
    """Says so, once, when operators have to be compiled during the block."""
    return reported(lambda done, number: announce(message(number)) if done == 0 else None)


def shown_compilation(stream: TextIO) -> AbstractContextManager[None]:
    """Shows how far it is when operators have to be compiled during the block."""
    return reported(Progress(stream))


def main(arguments: list[str]) -> None:
    with shown_compilation(sys.stderr):
        if not arguments:
            build()
        for family in arguments[1:]:
            build(family)
            pack(Path(arguments[0]), family)


if __name__ == "__main__":
    main(sys.argv[1:])
