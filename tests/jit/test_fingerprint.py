"""A fingerprint changes with everything that is compiled into an operator, and with nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastalog.jit import types
from elastalog.jit.fingerprint import fingerprint, reach
from elastalog.jit.operators import Operator

SOURCE = '''
import numpy as np
from elastalog.jit import types
from elastalog.jit.operators import inlined, operator, piece
from elastalog.jit.intrinsics import array_at

STEP = 3
TABLE = np.array([1, 2, 3])
WIDTHS = (1, 2)
ELEMENT = types.int32
numbers_at = array_at(ELEMENT, 1)

@inlined
def inner(value):
    return value + STEP

@piece
def outer(value):
    """Says something."""
    return inner(value) * 2

@operator(types.int64, types.int64)
def used(value):
    return outer(value) + TABLE[0] + WIDTHS[1] + numbers_at(value, 1)[0]

@operator(types.int64, types.int64)
def other(value):
    return value + 5
'''


def print_of(source: str, name: str = "used") -> str:
    space: dict[str, Any] = {"__name__": "elastalog.made"}
    exec(compile(source, "made", "exec"), space)
    return fingerprint(space[name])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STEP = 3", "STEP = 4"),
        ("STEP = 3", "STEP = 3.0"),
        ("STEP = 3", "STEP = np.int32(3)"),
        ("[1, 2, 3]", "[1, 2, 4]"),
        ("np.array([1, 2, 3])", "np.array([1, 2, 3], np.int32)"),
        ("(1, 2)", "(1, 3)"),
        ("types.int32", "types.int64"),
        ("value + STEP", "value - STEP"),
        ("inner(value) * 2", "inner(value) * 3"),
        ("@piece", "@inlined"),
        ("@operator(types.int64, types.int64)\ndef used", "@operator(types.int64, types.uint64)\ndef used"),
    ],
)
def test_what_is_compiled_counts(old: str, new: str) -> None:
    assert old in SOURCE
    assert print_of(SOURCE.replace(old, new)) != print_of(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Says something", "Says nothing"), ("STEP = 3", "# three\n\nSTEP = 3"), ("value + 5", "value + 6")],
)
def test_what_is_not_compiled_does_not_count(old: str, new: str) -> None:
    assert old in SOURCE
    assert print_of(SOURCE.replace(old, new)) == print_of(SOURCE)


def test_fields_of_records_count() -> None:
    def function(table):  # type: ignore[no-untyped-def]
        return table[0].a

    def printed(*fields: tuple[str, str]) -> str:
        return fingerprint(Operator(function, types.int64, (types.record(np.dtype(list(fields))),)))

    prints = {printed(("a", "i8"), ("b", "i8")), printed(("b", "i8"), ("a", "i8")), printed(("a", "i8"), ("b", "u8"))}
    assert len(prints) == 3


def test_reach_counts_pieces() -> None:
    space: dict[str, Any] = {"__name__": "elastalog.made"}
    exec(compile(SOURCE, "made", "exec"), space)
    assert reach(space["used"]) > reach(space["other"]) > 0
