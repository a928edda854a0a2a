"""Standard input in the place of a file, for commands that are given `-`."""

from __future__ import annotations

import sys

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

NAME = "<stdin>"
"""What stands for the name of a file in diagnostics."""


def standard_input() -> str:
    """All of standard input. Raises ElastalogError if it is not UTF-8."""
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        told = f"byte 0x{data[error.start]:02x} is not UTF-8"
        advice = "convert the text to UTF-8"
        raise ElastalogError([Diagnostic("E0505", told, help=advice, location=f"{NAME}:{line}")]) from None
