"""Standard output that can not be written: a full disk behind it, a device that fails."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.display import show_character


class _Terminal(io.RawIOBase):
    """Writes text so that nothing in it can move the cursor, reorder the line, or give the terminal orders."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", "backslashreplace")
        self._out.write("".join(c if c in "\n\t" else show_character(c) for c in text).encode())
        return len(data)

    def flush(self) -> None:
        self._out.flush()


def fit_for_terminal(out: BinaryIO) -> BinaryIO:
    """Standard output for facts: as they are to a file or a program, escaped to a terminal."""
    return cast(BinaryIO, _Terminal(out)) if out.isatty() else out


@contextmanager
def checked_output() -> Iterator[None]:
    """Turns a failure to write standard output during the block into an error. A reader who has seen enough is none."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        # What is left in the buffer would fail once more when Python closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = fault.strerror or str(fault)
        advice = "check where the output goes, and the space left there"
        raise ElastalogError([Diagnostic("E0517", f"cannot write the output: {reason}", help=advice)]) from None
