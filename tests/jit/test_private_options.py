"""What we use of numba that it does not promise, in one place: a version without it fails here, and says what to look
at."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import elastalog
from elastalog.jit import lowering


def test_operators_are_compiled_without_reference_counts() -> None:
    """`_nrt`: without it joins are a tenth slower. If numba drops or renames it, look for what replaces it."""

    def third(values, position):
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


_BEFORE_THE_START = """
import numpy as np
from elastalog.jit import loading, lowering, objects
from elastalog.jit.operators import operator_of
from tests.jit import declared

lowering.prepare(objects.processor())
operator = operator_of(declared.element)
element = loading._load(operator, lowering.object_code(operator))
values = np.array([7, 8, 9])
print(element(values[1:], 1), element(values[1:], -1))
"""


def test_no_index_counts_from_the_end() -> None:
    """`fix_integer_index`: asking of each whether it does took a sixth of the instructions of an update. What is before
    the array is where the index says."""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE_THE_START], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "9 7\n"


def test_numba_is_imported_by_what_compiles_alone() -> None:
    package = Path(elastalog.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^ *(import|from) numba\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"jit/atomics.py", "jit/intrinsics.py", "jit/lowering.py"}


def _code(compiled: object) -> str:
    return "\n".join(compiled.inspect_llvm().values())
