"""What we use of numba that it does not promise, in one place: a version without it fails here, and says what to look
at."""

from __future__ import annotations

import re
from pathlib import Path

import numba
import pytest

import elastalog
from elastalog.jit import lowering


def test_operators_are_compiled_without_reference_counts() -> None:
    """`_nrt`: without it joins are a tenth slower. If numba drops or renames it, look for what replaces it."""

    def third(values, position):  # type: ignore[no-untyped-def]
        part = values[1:]
        return part[position]

    signature = numba.int64(numba.int64[::1], numba.int64)
    assert lowering.OPTIONS["_nrt"] is False
    assert "NRT_" not in _code(numba.njit(signature, **lowering.OPTIONS)(third))
    assert "NRT_" in _code(numba.njit(signature, **{**lowering.OPTIONS, "_nrt": True})(third))


def test_a_misspelt_option_is_an_error() -> None:
    """Otherwise the option could go without anyone noticing."""
    with pytest.raises(KeyError, match="_nrtt"):
        numba.njit("int64(int64)", _nrtt=False)(lambda x: x)


def test_numba_is_imported_by_what_compiles_alone() -> None:
    package = Path(elastalog.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^ *(import|from) numba\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"jit/intrinsics.py", "jit/lowering.py", "jit/meeting_points.py", "jit/records.py"}


def _code(compiled: object) -> str:
    return "\n".join(compiled.inspect_llvm().values())  # type: ignore[attr-defined]
