"""Rows of deleted facts are dropped when they are the majority, and nothing else changes."""

from __future__ import annotations

import random

import pytest

import elastalog
from elastalog.backends.kernel import relation as kernel_relation

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def test_deleted_rows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_relation, "_FEW_ROWS", 8)
    rng = random.Random(3)
    with elastalog.open(PROGRAM) as db:
        held: set[tuple[int, int]] = set()
        for _ in range(60):
            inserted = {(rng.randrange(12), rng.randrange(12)) for _ in range(4)}
            deleted = {edge for edge in held if rng.random() < 0.4} - inserted
            held = (held | inserted) - deleted
            db.apply(inserted={"edge": list(inserted)}, deleted={"edge": list(deleted)})
            with elastalog.open(PROGRAM, facts={"edge": list(held)}) as fresh:
                for name in ("edge", "path"):
                    after, anew = db[name].to_arrow(annotations=True), fresh[name].to_arrow(annotations=True)
                    assert sorted(map(tuple, after.to_pandas().values.tolist())) == sorted(
                        map(tuple, anew.to_pandas().values.tolist())
                    )
            for relation in db._backend.relations.values():
                assert relation.used <= 2 * max(relation.present, 8) + 1


def test_memory_follows_the_facts_not_the_history() -> None:
    with elastalog.open(PROGRAM) as db:
        for batch in range(30):
            rows = [(batch * 10_000 + i, batch * 10_000 + i + 1) for i in range(0, 3000, 2)]
            db.apply(inserted={"edge": rows})
            db.apply(deleted={"edge": rows})
        assert len(db["path"]) == 0
        assert db.statistics().bytes < 2 << 20
