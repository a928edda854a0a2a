"""A fingerprint changes with everything that is compiled into an operator, and with nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.jit import trees, types
from elastalog.jit.fingerprint import fingerprint, reach
from elastalog.jit.operators import Operator, operator_of
from tests.jit.pythons import other_python
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


@pytest.mark.parametrize(
    ("old", "new"),
    table(__file__, "what is compiled counts"),
)
def test_what_is_compiled_counts(made: Callable[[str], Any], old: str, new: str) -> None:
    assert old in SOURCE
    assert print_of(made(SOURCE.replace(old, new)).used) != print_of(made(SOURCE).used)


@pytest.mark.parametrize(
    ("old", "new"),
    table(__file__, "what is not compiled does not count"),
)
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


def test_trees_are_read_once(made: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first = print_of(made(SOURCE).used)
    monkeypatch.setattr(trees, "_read", lambda source: pytest.fail("parsed again"))
    assert print_of(made(SOURCE).used) == first


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_every_python_finds_the_same_trees(minor: int, tmp_path: Path) -> None:
    python = other_python(minor)
    if python is None:
        pytest.skip(f"Python 3.{minor} is not installed")
    script = (
        "import sys, json, importlib.util\nfrom pathlib import Path\nfrom elastalog.jit.trees import _read\n"
        "print(json.dumps([_read(Path(path).read_bytes()) for path in sys.argv[1:]]))"
    )
    folder = Path(elastalog.__file__).parent
    paths = [
        str(path) for part in ("jit", "backends/kernel", "relations") for path in sorted((folder / part).rglob("*.py"))
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder.parent)}
    done = subprocess.run([python, "-c", script, *paths], env=environment, capture_output=True, text=True, check=True)
    expected = json.loads(json.dumps([trees._read(Path(path).read_bytes()) for path in paths]))
    assert json.loads(done.stdout) == expected


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
