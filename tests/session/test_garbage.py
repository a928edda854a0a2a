"""Sessions that nobody holds any more leave nothing behind, though nobody asks Python to look for garbage."""

from __future__ import annotations

import gc

import elastalog
from tests.closures import CLOSURE as PROGRAM


def _live(sessions: int) -> int:
    for number in range(sessions):
        with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}) as db:
            db.apply({"edge": [(3, number)]})
            assert len(db.query("path(1, X)")) >= 2
    return len(gc.get_objects())


def test_sessions_are_collected() -> None:
    before = _live(20)
    assert _live(120) < before + 20_000  # a session has some hundred objects, and they would be 50,000
