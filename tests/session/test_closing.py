"""The end of a session."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

import elastalog
from tests.closures import CLOSURE as PROGRAM


def test_closing_waits_for_what_another_thread_does(tmp_path: Path) -> None:
    db = elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}, store=tmp_path / "store")
    closing = threading.Thread(target=db.close)
    with db.engine.exclusively():
        closing.start()
        closing.join(0.2)
        assert closing.is_alive()
        db.apply({"edge": [(3, 4)]})
    closing.join()
    with pytest.raises(elastalog.ElastalogError, match="E0814"):
        db.apply({"edge": [(4, 5)]})
    with elastalog.open(store=tmp_path / "store") as again:
        assert (again.epoch, (1, 4) in again["path"]) == (2, True)


# --- sessions that are no longer referred to leave nothing behind, without garbage collection -------------------------


def _live(sessions: int) -> int:
    for number in range(sessions):
        with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}) as db:
            db.apply({"edge": [(3, number)]})
            assert len(db.query("path(1, X)")) >= 2
    return len(gc.get_objects())


def test_sessions_are_collected() -> None:
    before = _live(20)
    assert _live(120) < before + 20_000  # a session has some hundred objects, and they would be 50,000
