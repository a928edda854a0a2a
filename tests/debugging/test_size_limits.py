"""States that a `.limitsize` cuts short are no answers, and looking at one leaves the session as it was."""

from __future__ import annotations

import elastalog

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.limitsize path(n = 10)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def test_a_state_that_is_cut_short_is_no_answer() -> None:
    """With `edge(2, 3)` back there would be a chain of six, and 15 paths."""
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2), (2, 3)]}) as db:
        db.apply({"edge": [(3, 4), (4, 5), (5, 6)]}, {"edge": [(2, 3)]})
        assert len(db["path"]) == 7
        found = db.suggest(missing=["path(2, 3)"])
        assert found.minimum
        assert len(found.elements) == 2
        assert "-edge(2, 3)" in map(str, found.elements)
        assert len(db["path"]) == 7
        assert found.apply()["path"].inserted
        assert len(db["path"]) < 10


def test_the_session_can_still_be_updated() -> None:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2), (2, 3)]}) as db:
        db.apply({"edge": [(3, 4), (4, 5), (5, 6)]}, {"edge": [(2, 3)]})
        db.suggest(missing=["path(2, 3)"])
        db.apply({"edge": [(8, 9)]})
        assert len(db["path"]) == 8
