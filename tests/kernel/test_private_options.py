"""What we use of numba that it does not promise, in one place: a version without it fails here, and says what to look
at."""

from __future__ import annotations

import re
from pathlib import Path

import numba
import pytest

from elastalog.jit import operators
from elastalog.jit.operators import operator


def test_operators_are_compiled_without_reference_counts() -> None:
    """`_nrt`: without it joins are a tenth slower. If numba drops or renames it, look for what replaces it."""

    @operator(numba.int64, numba.int64[::1], numba.int64)
    def third(values, position):  # type: ignore[no-untyped-def]
        part = values[1:]
        return part[position]

    options = third._options  # type: ignore[attr-defined]
    assert options["_nrt"] is False
    plain = numba.njit(third._signature, **options)(third.function)  # type: ignore[attr-defined]
    counted = numba.njit(third._signature, **{**options, "_nrt": True})(third.function)  # type: ignore[attr-defined]
    assert "NRT_" not in _code(plain)
    assert "NRT_" in _code(counted)


def test_a_misspelt_option_is_an_error() -> None:
    """Otherwise the option could go without anyone noticing."""
    with pytest.raises(KeyError, match="_nrtt"):
        numba.njit("int64(int64)", _nrtt=False)(lambda x: x)


def test_private_options_are_named_in_one_file() -> None:
    package = Path(operators.__file__).parents[1]
    users = [path for path in package.rglob("*.py") if re.search(r'"_nrt"', path.read_text(encoding="utf-8"))]
    assert users == [Path(operators.__file__)]


def _code(compiled: object) -> str:
    return "\n".join(compiled.inspect_llvm().values())  # type: ignore[attr-defined]
