"""The end of a session."""

from __future__ import annotations

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
