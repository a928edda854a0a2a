"""Rows of deleted facts are dropped when they stay the majority, and nothing else changes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.store import relation as kernel_relation
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.settings import SETTINGS
from tests.closures import CLOSURE as PROGRAM
from tests.engine.judging import followed


def test_deleted_rows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "compact_from", 8)
    rng = random.Random(3)
    with followed(PROGRAM, {"edge": []}, "anew") as session:
        before = {"edge": 0, "path": 0}
        for _ in range(60):
            inserted = {(rng.randrange(12), rng.randrange(12)) for _ in range(4)}
            deleted = {edge for edge in session.explicit["edge"] if rng.random() < 0.4} - inserted
            session.apply({"edge": inserted}, {"edge": deleted})
            for name, relation in session.db._backend.held.relations.items():
                assert relation.used <= 2 * max(relation.present, before[name], 8) + 1
                before[name] = relation.present


@pytest.mark.parametrize("budget", [None, 0.0])
def test_rows_of_deleted_facts_stay_until_the_next_update(
    monkeypatch: pytest.MonkeyPatch, budget: float | None
) -> None:
    """Whether an update deleted them, or they were not found again when their stratum was evaluated anew."""
    monkeypatch.setattr(SETTINGS, "compact_from", 8)
    monkeypatch.setattr(SETTINGS, "least_budget", 0)
    chain = [(i, i + 1) for i in range(30)]
    with elastalog.open(PROGRAM, {"edge": chain}, budget=budget) as db:
        path = db._backend.held.relations["path"]
        db.apply(deleted={"edge": chain[3:]})
        assert db._backend.held.relations["path"] is path
        assert (path.present, path.used) == (3 * 4 / 2, 30 * 31 / 2)
        db.apply({"edge": [(90, 91)]}, {"edge": chain[2:3]})
        assert db._backend.held.relations["path"].used == 2 * 3 / 2 + 1
        assert db.verify().is_exact


def test_facts_that_come_back_find_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "compact_from", 8)
    chain = [(i, i + 1) for i in range(30)]
    with elastalog.open(PROGRAM, {"edge": chain}, budget=None) as db:
        path = db._backend.held.relations["path"]
        first = path.generation
        db.apply(deleted={"edge": chain[3:]})
        db.apply({"edge": chain[3:]})
        assert (path.present, path.used, path.generation) == (30 * 31 / 2, 30 * 31 / 2, first)
        assert db.verify().is_exact


def test_memory_follows_the_facts_not_the_history() -> None:
    with elastalog.open(PROGRAM) as db:
        for batch in range(30):
            rows = [(batch * 10_000 + i, batch * 10_000 + i + 1) for i in range(0, 3000, 2)]
            db.apply(inserted={"edge": rows})
            db.apply(deleted={"edge": rows})
        assert len(db["path"]) == 0
        assert db.statistics().bytes < 2 << 20


@pytest.mark.parametrize("failing", range(8))
def test_when_memory_ends_the_relation_is_as_before(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "compact_from", 8)
    made = 0

    def scarce(make: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*arguments: Any) -> Any:
            nonlocal made
            made += 1
            if made == failing:
                raise MemoryError
            return make(*arguments)

        return attempt

    relation = KernelRelation("edge", 2, is_annotated=True)
    relation.load(np.array([(i, i + 1) for i in range(100)], np.int32))
    relation.level[10:] = ABSENT
    relation.present, relation.is_settled = 10, False
    present, first = {(i, i + 1) for i in range(10)}, relation.generation
    relation.index((0,))
    for name in ("grown", "empty_table"):
        monkeypatch.setattr(kernel_relation, name, scarce(getattr(kernel_relation, name)))
    if 1 <= failing <= 4:
        with pytest.raises(MemoryError):
            relation.compact()
        assert (relation.used, relation.generation == first, relation.is_settled) == (100, True, False)
    else:
        relation.compact()
        assert (relation.used, relation.generation == first, relation.is_settled) == (10, False, True)
    assert {tuple(row) for row in relation.rows[relation.present_rows()].tolist()} == present
    assert (relation.find(np.array([(3, 4), (9, 10)], np.int32)) >= 0).all()
    assert len(relation.level) == len(relation.count) == len(relation.rows)


def test_an_epoch_is_committed_although_there_is_no_memory_to_compact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "compact_from", 8)
    tried = 0

    def fail(self: KernelRelation) -> None:
        nonlocal tried
        tried += 1
        raise MemoryError

    monkeypatch.setattr(KernelRelation, "compact", fail)
    with elastalog.open(PROGRAM, {"edge": [(i, i + 1) for i in range(30)]}) as db:
        db.apply(deleted={"edge": [(i, i + 1) for i in range(2, 30)]})
        db.apply(deleted={"edge": [(1, 2)]})
        assert tried
        assert (list(db["edge"]), list(db["path"])) == ([(0, 1)], [(0, 1)])
        db.apply({"edge": [(1, 2)]})
        assert sorted(db["path"]) == [(0, 1), (0, 2), (1, 2)]


def test_touching_no_rows_leaves_a_relation_settled() -> None:
    relation = KernelRelation("edge", 2, is_annotated=True)
    relation.load(np.array([(1, 2)], np.int32))
    assert len(transaction.touch(relation, np.empty(0, np.int32))) == 0
    assert relation.is_settled
    assert len(transaction.touch(relation, np.zeros(1, np.int32))) == 1
    assert not relation.is_settled
