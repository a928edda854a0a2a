"""A fingerprint changes with everything that is compiled into an operator, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastalog.jit import types
from elastalog.jit.fingerprint import _text_of, fingerprint, reach
from elastalog.jit.operators import Operator, operator_of
from tests.tables import table

SOURCE = '''
from collections import namedtuple
import numpy as np
from elastalog.jit import types
from elastalog.jit.operators import inlined, intrinsic, operator, piece
from elastalog.jit.intrinsics import array_at

STEP = 3
TABLE = np.array([1, 2, 3])
WIDTHS = (1, 2)
Pair = namedtuple("Pair", "first second")
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
    return outer(value) + TABLE[0] + WIDTHS[1] + numbers_at(value, 1)[0] + Pair(1, value).first

@operator(types.int64, types.int64)
def other(value):
    return value + 5
'''


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes a module of a source. Operators are found in files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(source: str) -> Any:
        path = tmp_path / f"made{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source, encoding="utf-8")
        spec = spec_from_file_location("elastalog.made", path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


def print_of(called: Any) -> str:
    operator = operator_of(called)
    assert operator is not None
    return fingerprint(operator)


@pytest.mark.parametrize(("old", "new"), table(__file__, "what is compiled counts"))
def test_what_is_compiled_counts(made: Callable[[str], Any], old: str, new: str) -> None:
    assert old in SOURCE
    assert print_of(made(SOURCE.replace(old, new)).used) != print_of(made(SOURCE).used)


@pytest.mark.parametrize(("old", "new"), table(__file__, "what is not compiled does not count"))
def test_what_is_not_compiled_does_not_count(made: Callable[[str], Any], old: str, new: str) -> None:
    assert old in SOURCE
    assert print_of(made(SOURCE.replace(old, new)).used) == print_of(made(SOURCE).used)


def test_a_helper_of_an_intrinsic_counts(made: Callable[[str], Any]) -> None:
    helped = SOURCE.replace("STEP = 3", "STEP = 3\ndef one():\n    return 1\n") + (
        "\n@intrinsic\ndef strange(context):\n    return one()\n"
        "\n@operator(types.int64, types.int64)\ndef helped(value):\n    return strange()\n"
    )
    changed = helped.replace("return 1\n", "return 2\n")
    assert print_of(made(helped).helped) != print_of(made(changed).helped)


def test_the_text_of_a_function_is_all_of_it(made: Callable[[str], Any]) -> None:
    source = """
from elastalog.jit.operators import piece

def maker(step):
    @piece
    def first(
        value,
        more
    ):
        # says something
        \"\"\"Says nothing.

        At length.\"\"\"

        return value + more  # counts

    @piece
    def second(value):
        if value:
            return step

        return 2
    return first, second

AFTER = maker(1)
"""
    texts = [_text_of(each.function) for each in made(source).AFTER]
    assert [text.split() for text in texts] == [
        ["def", "first(", "value,", "more", "):", "return", "value", "+", "more", "#", "counts"],
        ["def", "second(value):", "if", "value:", "return", "step", "return", "2"],
    ]


def test_fields_of_records_count() -> None:
    def function(table):
        return table[0].a

    def printed(*fields: tuple[str, str]) -> str:
        return fingerprint(Operator(function, types.int64, (types.record(np.dtype(list(fields))),)))

    prints = {printed(("a", "i8"), ("b", "i8")), printed(("b", "i8"), ("a", "i8")), printed(("a", "i8"), ("b", "u8"))}
    assert len(prints) == 3


def test_reach_counts_pieces(made: Callable[[str], Any]) -> None:
    module = made(SOURCE)
    assert reach(operator_of(module.used)) > reach(operator_of(module.other)) > 0
