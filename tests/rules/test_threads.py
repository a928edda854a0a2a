"""Several threads that change the rules of one session, and read it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import elastalog
from elastalog.program import rule_texts
from tests.closures import RIGHT_CLOSURE as PROGRAM


def test_threads_wait_for_each_other() -> None:
    db = elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]})
    faults: list[BaseException] = []
    is_over = threading.Event()

    def told(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as fault:
                faults.append(fault)

        return run

    def change(number: int) -> None:
        for step in range(8):
            db.apply({"edge": [(100 + number, 200 + step)]})
            db.change_rules(added=f"path(x, {1000 + 10 * number + step}) :- edge(x, 2).")

    def ask() -> None:
        while not is_over.is_set():
            assert (1, 3) in db["path"]
            assert len(db.query("path(1, X)")) >= 2
            assert db.explain("path(1, 3)").height == 2
            assert len(list(db.proofs("path(1, 3)"))) == 1
            db.statistics()
            db.forecast({"edge": [(5, 6)]})

    writers = [threading.Thread(target=told(lambda n=n: change(n))) for n in range(2)]
    reader = threading.Thread(target=told(ask))
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    reader.join()
    assert faults == []
    assert (db.epoch, len(rule_texts(db.program))) == (33, 18)
    assert len(db.query("path(1, X)")) == 2 + 16
    found = db.verify()
    assert (found.missing, found.unwanted, found.misplaced) == ({}, {}, {})


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda db: db.explain("path(1, 3)", depth=0).expand, "path(1, 3)"),
        (lambda db: db.why_not("path(3, 1)").expand, "edge(3, 1)"),
    ],
)
def test_what_is_expanded_waits_for_the_updates_of_other_threads(ask: Any, expected: str) -> None:
    db = elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]})
    expand = ask(db)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(expand()))
    with db.engine.exclusively():  # as a commit does
        thread.start()
        thread.join(0.3)
        assert found == []
    thread.join()
    assert str(found[0].fact) == expected


def test_a_closed_session_is_not_updated() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        pass
    with pytest.raises(elastalog.ElastalogError, match=r"E0814.*closed"):
        db.change_rules(removed=[2])
    assert list(db["path"]) == [(1, 2)]
