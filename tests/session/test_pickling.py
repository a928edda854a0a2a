"""What may be handed to another process: rows, tables and errors, not what belongs to a session."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.session import Session

PROGRAM = """
.decl edge, path(from: number, to: number)
path(x, y) :- edge(x, y).
"""


@pytest.fixture
def db() -> Session:
    return elastalog.open(PROGRAM, {"edge": [(1, 2)]})


def test_rows_are_tuples_elsewhere(db: Session) -> None:
    rows = pickle.loads(pickle.dumps(list(db["edge"])))
    assert rows == [(1, 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda db: db["none"],
        lambda db: db.query(5),
        lambda db: db.query("edge(1,"),
        lambda db: elastalog.open("x("),
        lambda db: elastalog.open(store=Path("/nowhere")),
        lambda db: db.explain("edge(2, 3)"),
    ],
)
def test_errors_are_the_same_elsewhere(db: Session, wrong: Callable[[Session], object]) -> None:
    with pytest.raises(ElastalogError) as raised:
        wrong(db)
    there = pickle.loads(pickle.dumps(raised.value))
    assert (type(there), str(there)) == (type(raised.value), str(raised.value))


@pytest.mark.parametrize("hand_on", [pickle.dumps, copy.deepcopy, copy.copy])
@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda db: db, "a session"),
        (lambda db: db.program, "a program"),
        (lambda db: db["edge"], "a relation"),
        (lambda db: db.query("edge(1, X)"), "a relation"),
        (lambda db: db.update(), "an update"),
        (lambda db: db.apply({"edge": [(2, 3)]}), "what an update changed"),
        (lambda db: db.explain("path(1, 2)"), "a proof"),
        (lambda db: db.why_not("path(2, 1)"), "why a fact is absent"),
        (lambda db: db.why_not("path(2, X)"), "why a fact is absent"),
    ],
)
def test_what_belongs_to_a_session_stays_in_its_process(
    db: Session, made: Callable[[Session], object], named: str, hand_on: Callable[[object], object]
) -> None:
    with pytest.raises(TypeError, match=f"{named} cannot be copied or pickled"):
        hand_on(made(db))


def test_a_suggestion_says_that_its_proofs_stay(db: Session) -> None:
    db.apply({"edge": [(2, 3)]})
    with pytest.raises(TypeError, match="a proof cannot be copied or pickled"):
        pickle.dumps(db.suggest(unwanted=["path(2, 3)"]))


def test_tables_are_the_same_elsewhere(db: Session) -> None:
    table = db["edge"].to_arrow()
    assert pickle.loads(pickle.dumps(table)) == table
