"""What can be imported from `elastalog`, and what a session shows to its users."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import elastalog
from tests.refusals import refused

HEAVY = {"numpy", "numba", "pyarrow", "pyspark"}


def test_every_public_name_can_be_imported() -> None:
    missing = [name for name in elastalog.__all__ if not hasattr(elastalog, name)]
    assert missing == []
    assert elastalog.Relation.__name__ == "Relation"
    assert isinstance(elastalog.PendingUpdate, type)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Realtion'"):
        _ = elastalog.Realtion


def test_names_for_annotations_are_those_of_type_checkers() -> None:
    tree = ast.parse(Path(inspect.getfile(elastalog)).read_text())
    checked = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert checked - {"annotations", "TYPE_CHECKING", "Any", "import_module"} == {*elastalog.__all__} - {"__version__"}


def test_importing_elastalog_imports_nothing_heavy() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import elastalog, sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(told.stdout.split())


def test_every_public_method_of_a_session_has_a_docstring() -> None:
    public = {name: value for name, value in vars(elastalog.Session).items() if not name.startswith("_")}
    assert [name for name, value in public.items() if not inspect.getdoc(value)] == []


PROGRAM = """.decl likes(who: symbol, what: symbol, much: float)
.decl small(x: number)
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (("likes", ("ann", "tea", -0.0)), ("likes", ("ann", "tea", 0.0))),
        (("likes", ["ann", "tea", 2]), ("likes", ("ann", "tea", 2.0))),
        (("small", (1 << 40,)), ("small", (1 << 40,))),
        ('likes("ann", "tea", 2)', ("likes", ("ann", "tea", 2.0))),
    ],
)
def test_a_fact_that_is_asked_about_has_plain_values(written: object, expected: object) -> None:
    with elastalog.open(PROGRAM) as db:
        found = db.engine.fact(written)
        assert found == expected
        assert [type(value) for value in found[1]] == [type(value) for value in expected[1]]
        assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (("likes", ("ann", "tea")), "E0501"),
        (("likes", ("ann", 3, 1.0)), "E0502"),
        (("small", (1 << 63,)), "E0503"),
        (("small", (None,)), "E0504"),
        (("smal", (1,)), "E0606"),
    ],
)
def test_a_fact_that_can_be_none_is_refused(written: tuple[str, tuple[object, ...]], code: str) -> None:
    with elastalog.open(PROGRAM) as db, refused(code):
        db.engine.fact(written)


def test_asking_about_a_fact_teaches_the_dictionary_nothing() -> None:
    with elastalog.open(PROGRAM, facts={"likes": [("ann", "tea", 1.0)]}) as db:
        known = len(db._dictionary.symbols), len(db._dictionary.wide)
        db.engine.fact(("likes", ("bob", "milk", 7.5)))
        db.why_not(("likes", ("bob", "milk", 7.5)))
        assert (len(db._dictionary.symbols), len(db._dictionary.wide)) == known
