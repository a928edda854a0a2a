"""The walks of `docs/explanation/a-fact-and-an-update.md` can be taken: every step names a file and something in it,
and both ways go by these steps, in this order. The page on which they end has the algorithm as the reference has it.

A step is a line `1. `file` · `name`: …`; the file is one of `src/elastalog`, the name that of a function, a class, or a
method with its class.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import FrameType
from typing import Any

import pytest

import elastalog
from tests.reference.elastic_update import Update

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "elastalog"
PAGE = (ROOT / "docs" / "explanation" / "a-fact-and-an-update.md").read_text(encoding="utf-8")
ALGORITHM = (ROOT / "docs" / "explanation" / "the-elastic-update.md").read_text(encoding="utf-8")
MOST_STEPS = 15
MOST_FILES = 30

_STEP = re.compile(r"^(\d+)\. `([\w/]+\.py)` · `([\w.]+)`: ", re.MULTILINE)
_PROGRAM = re.search(r"^```prolog\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

Steps = list[tuple[str, str]]


def walk(title: str) -> Steps:
    """The steps of a section, as file and name."""
    section = PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
    found = _STEP.findall(section)
    assert [int(number) for number, _, _ in found] == list(range(1, len(found) + 1))
    assert len(found) == len(re.findall(r"^\d+\. ", section, re.MULTILINE))
    return [(file, name) for _, file, name in found]


FACT, UPDATE = walk("From a line of text"), walk("From `db.update()`")


def names_in(file: str) -> set[str]:
    """The functions, classes and methods that a file defines."""
    found: set[str] = set()
    for node in ast.parse((SOURCE / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("steps", [FACT, UPDATE], ids=["fact", "update"])
def test_every_step_is_there(steps: Steps) -> None:
    assert 10 <= len(steps) <= MOST_STEPS
    assert [(file, name) for file, name in steps if name not in names_in(file)] == []


def called_by(action: Callable[[], Any]) -> Steps:
    """What an action calls within the package, in the order of first calls."""
    met: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(SOURCE)):
            met.setdefault((str(Path(file).relative_to(SOURCE)), frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return list(met)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return tmp_path


def program() -> str:
    return _PROGRAM[1]


def test_a_fact_goes_this_way(folder: Path) -> None:
    proofs: list[elastalog.Proof] = []

    def go() -> None:
        with elastalog.open(program(), facts=folder, jobs=1) as db:
            proofs.append(db.explain("path(1, 2)"))

    met = called_by(go)
    steps, (last_file, last) = FACT[:-1], FACT[-1]
    assert [step for step in met if step in steps] == steps
    (leaf,) = proofs[0].children
    assert (type(leaf).__name__, type(leaf).__module__) == (last, "elastalog." + last_file[:-3].replace("/", "."))
    assert (str(leaf.fact), leaf.rule, leaf.children) == ("edge(1, 2)", None, ())


def test_an_update_goes_this_way(folder: Path) -> None:
    with elastalog.open(program(), facts=folder) as db:

        def go() -> None:
            with db.update() as update:
                update.insert("edge", [(2, 3)])
            assert set(update.changes["path"].inserted) == {(2, 3), (1, 3)}

        met = called_by(go)
    assert [step for step in met if step in UPDATE] == UPDATE


def test_a_small_update_goes_through_few_files(folder: Path) -> None:
    """Once what it needs has been made."""
    with elastalog.open(program(), facts=folder, engine="local") as db:

        def go() -> None:
            with db.update() as update:
                update.insert("edge", [(2, 3)])
            assert update.changes is not None

        for _ in range(3):
            met = called_by(go)
            db.apply(deleted={"edge": [(2, 3)]})
    assert len({file for file, _ in met}) <= MOST_FILES


def test_the_algorithm_is_that_of_the_reference() -> None:
    assert f"```python\n{dedent(inspect.getsource(Update.stratum)).strip()}\n```" in ALGORITHM


def test_the_functions_beside_the_algorithm_are_there() -> None:
    named = re.findall(r"`(machine/\w+\.py)` · `(\w+)`", ALGORITHM)
    assert len(named) > 10
    assert [(file, name) for file, name in named if name not in names_in(f"backends/kernel/{file}")] == []
