"""An index that lacks rows is never probed, and nobody goes on with one that is gone: joins above a stratum that was
planned again, updates after relations were compacted."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.memory import STAMPS, Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.watch import Watch
from elastalog.planning.variants import plan_from_goal
from tests.engine.judging import facts_of, followed
from tests.forcing import THREADS, forced
from tests.poisoning import poisoned

# `d` runs dry at once, but the variant that starts at it is the only one that looks `r` up by its second column.
DRY = """
.decl s(x: number, y: number)
.decl z(x: number)
.decl v(a: number, m: number)
.decl d(m: number)
.decl r(c: number, m: number)
.decl p(c: number)
p(c) :- d(m), r(c, m).
r(c, n) :- r(c, m), s(m, n).
r(c, m) :- p(c), z(m).
d(m) :- p(m), z(m).
.decl k(a: number, c: number)
k(a, c) :- v(a, m), r(c, m).
.decl by_both(a: number, c: number)
by_both(a, c) :- v(a, m), z(c), r(c, m).
.decl absent(a: number)
absent(a) :- v(a, m), !r(0, m).
.decl most(a: number, n: number)
most(a, n) :- v(a, m), n = count : { r(_, m) }.
"""


def _dry_facts(length: int, number: int) -> dict[str, list[tuple[int, ...]]]:
    return {
        "v": [(1, length // 20), (2, length // 2), (3, length - length // 10), (4, length + 9)],
        "s": [(i, i + 1) for i in range(length)],
        "z": [],
        "d": [(0,)],
        "r": [(c, 0) for c in range(number)],
    }


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dense", "bfc", "levels", "jobs"])
def test_a_variant_that_runs_dry_leaves_no_index_behind(strategy: str) -> None:
    others: dict[str, dict[str, Any]] = {"levels": {"levels": "global"}, "jobs": {"jobs": 2}}
    options = others.get(strategy, {"strategy": strategy})
    with elastalog.open(DRY, facts=_dry_facts(200, 20), **options) as db:
        assert set(db["k"]) == {(a, c) for a, c in product((1, 2, 3), range(20))}
        assert set(db["absent"]) == {(4,)}
        assert set(db["most"]) == {(1, 20), (2, 20), (3, 20), (4, 0)}
        db.apply(inserted={"v": [(5, 77)], "z": [(3,)]}, deleted={"v": [(1, 10)]})
        assert {fact for fact in db["k"] if fact[0] == 5} == {(5, c) for c in range(20)}
        assert (5, 3) in db["by_both"]


@pytest.mark.parametrize("threads", [{}, THREADS], ids=["alone", "shared"])
def test_plans_made_anew_in_every_round(threads: dict[str, float]) -> None:
    facts = _dry_facts(40, 4)
    with elastalog.open(DRY, facts=facts, strategy="dense") as judge:
        wanted = facts_of(judge)
    with forced(replan_growth=1, replan_slack=0, **threads):
        for options in ({}, {"levels": "global"}, {"jobs": 2}):
            with elastalog.open(DRY, facts=facts, **options) as db:
                assert facts_of(db) == wanted


def test_an_index_is_extended_as_far_as_is_asked() -> None:
    relation = KernelRelation("r", 2, is_annotated=False)
    relation.load(np.array([(1, 1), (2, 1)], np.int32))
    assert relation.index((1,)).done == 2
    relation.load(np.array([(3, 1)], np.int32))
    assert relation.lacks((1,))
    assert relation.index((1,), 2).done == 2  # while others probe it, it stays as it is
    assert relation.index((1,), 3).done == 3
    assert not relation.lacks((1,))


JOINED = ".decl e, f, p(x: number, y: number)\np(x, z) :- e(x, y), f(y, z)."


def test_an_index_that_is_extended_where_it_is_is_known_as_a_whole() -> None:
    """It lacked rows when the enumeration first looked, and nothing has moved since."""
    e, f = (KernelRelation(name, 2, is_annotated=False) for name in ("e", "f"))
    e.load(np.array([(5, 1)], np.int32))
    f.load(np.array([(0, 7)], np.int32))
    f.index((0,))
    f.load(np.array([(1, 8)], np.int32))
    relations = {"e": e, "f": f}
    with elastalog.open(JOINED) as db:
        evaluation = db._backend.evaluation
        (clause,) = (clause for stratum in evaluation.program.strata for clause in stratum.clauses)
        planned = plan_from_goal(clause, 0, KernelStatistics(relations))
        variant = BoundVariant(planned, evaluation.dictionary, evaluation.program.checked.source)
        enumerator = Enumerator(variant, carried=0)
        setting = Setting(relations, frozenset(), Workspace(), Watch())
        found: list[list[int]] = []

        def keep(block: Matrix, used: int) -> None:
            found.extend(block[:used, :2].tolist())

        enumerator.of_rows(setting, (0, 0), keep)
        before = STAMPS.last
        f.index((0,))
        assert STAMPS.last == before
        enumerator.of_rows(setting, (0, 1), keep)
    assert found == [[5, 8]]


# The rule of `g` never fires, but its variants have indexes on `a`.
SPARSE = """
.decl e, f(x: number, y: number)
.decl n(x: number)
.decl b(x: number, y: number)
.decl c(x: number)
.decl a, g(x: number, y: number)
a(x, y) :- e(x, y).
a(x, z) :- a(x, y), f(y, z).
g(x, z) :- a(x, y), b(z, y), c(x), n(z).
e(x, y) :- g(x, y), n(y), n(x).
"""


def play(seed: int) -> None:
    """Large deletions, then updates; every one equals an evaluation of the same facts."""
    rng = random.Random(seed)
    size, nodes = rng.randint(30, 90), rng.randint(9, 30)

    def pairs(number: int) -> set[tuple[int, ...]]:
        return {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(number)}

    facts = {"e": pairs(size), "f": pairs(nodes // 3), "n": {(rng.randrange(nodes),) for _ in range(nodes // 4)}}
    levels, budget = rng.choice(("local", "global")), rng.choice(("auto", None))
    with followed(SPARSE, facts, "nobody", levels=levels, budget=budget) as session:
        for _ in range(3):
            for parts in ((0.0, 0.01, 0.05), (0.6, 0.8, 0.95), (0.0, 0.01, 0.05)):
                part = rng.choice(parts)
                deleted = {
                    n: rng.sample(sorted(known), int(len(known) * part)) for n, known in session.explicit.items()
                }
                inserted = {"e": pairs(rng.choice((0, 5, 30))), "f": pairs(rng.choice((0, 3)))}
                session.apply(inserted, deleted)
                with elastalog.open(SPARSE, session.explicit, strategy="dense") as judge:
                    assert facts_of(session.db) == facts_of(judge)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("compact_from", [0, 8])
def test_updates_after_relations_were_compacted(seed: int, compact_from: int) -> None:
    with forced(compact_from=compact_from, first_rows=1 + seed % 3), poisoned():
        play(seed)
