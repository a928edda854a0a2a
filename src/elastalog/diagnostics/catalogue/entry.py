"""One entry of the catalogue of errors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """What `elastalog explain-error CODE` teaches: why it is an error, a program that has it, and the same program
    mended."""

    code: str
    title: str
    explanation: str
    example: str
    fix: str
