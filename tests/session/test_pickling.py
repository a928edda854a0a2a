"""What may be handed to another process: rows and errors, not sessions."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.session import Session

PROGRAM = ".decl edge(from: number, to: number)\n"


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
def test_a_session_stays_in_its_process(db: Session, hand_on: Callable[[Session], object]) -> None:
    with pytest.raises(TypeError, match="a session cannot be copied or pickled"):
        hand_on(db)
