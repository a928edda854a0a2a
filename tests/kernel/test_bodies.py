"""A recursive rule with several heads is run once for all of them: facts, levels and counts are those of as many
rules."""

from __future__ import annotations

import random

import pytest

import elastalog
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.settings import SETTINGS
from tests.engine.judging import levels_of
from tests.kernel import plans_of

DECLARATIONS = """
.decl edge(x: number, y: number)
.decl start, reached(x: number)
.decl step(x: number, y: number)
.decl twice(x: number, y: number, z: number)
.decl tagged(kind: number, x: number)
reached(x) :- start(x).
step(x, y) :- reached(x), edge(x, y), x > 3.
reached(x) :- twice(x, _, _), tagged(_, x).
"""

TOGETHER = (
    DECLARATIONS + "reached(y), step(x, y), twice(y, y, x), tagged(7, y) :- reached(x), edge(x, y), step(_, x).\n"
)

APART = (
    DECLARATIONS
    + """
reached(y) :- reached(x), edge(x, y), step(_, x).
step(x, y) :- step(_, x), edge(x, y), reached(x).
twice(y, y, x) :- edge(x, y), reached(x), step(_, x).
tagged(7, y) :- edge(x, y), step(_, x), reached(x).
"""
)

RANGES = """
.decl seed, near(x: number)
.decl far(x: number, y: number)
near(x) :- seed(x).
near(y), far(x, y) :- near(x), x < 40000, y = range(x + 1, x + 40000, 2).
"""


def facts() -> dict[str, list[tuple[int, ...]]]:
    choice = random.Random(11)
    edges = {(choice.randrange(60), choice.randrange(60)) for _ in range(200)}
    return {"edge": sorted(edges), "start": [(4,), (9,)]}


def state(program: str, jobs: int) -> dict[tuple[str, tuple[object, ...]], tuple[int, int]]:
    with elastalog.open(program, facts=facts(), engine="local", jobs=jobs) as db:
        return levels_of(db)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_same_as_separate_rules(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "share_round_from", 1)
    shared: list[BoundVariant] = []
    bodies = StratumVariants.bodies.fget
    assert bodies is not None

    def noted(self: StratumVariants) -> list:
        shared.extend(body for body in bodies(self) if len(body.members) > 1)
        return bodies(self)

    monkeypatch.setattr(StratumVariants, "bodies", property(noted))
    together = state(TOGETHER, jobs)
    assert {len(body.members) for body in shared} == {4}
    shared.clear()
    assert together == state(APART, jobs)
    assert not shared
    assert sum(name == "twice" for name, _ in together) > 50


@pytest.mark.parametrize("strategy", ["dred", "bf", "dense"])
def test_other_annotations_are_those_of_separate_rules(strategy: str) -> None:
    states = []
    for program in (TOGETHER, APART):
        with elastalog.open(program, facts=facts(), engine="local", strategy=strategy) as db:
            db.apply(deleted={"edge": facts()["edge"][::60]})
            states.append({name: set(db[name]) for name in db})
    assert states[0] == states[1]
    assert len(states[0]["twice"]) > 20


@pytest.mark.parametrize("strategy", ["elastic", "dense"])
def test_updates_run_what_is_shared_once(strategy: str) -> None:
    choice = random.Random(5)
    edges = facts()["edge"]
    steps = [choice.sample(edges, size) for size in (1, 20, 60, 150)]
    states = []
    heads: dict[str, set[int]] = {}
    for name, program in (("together", TOGETHER), ("apart", APART)):
        with elastalog.open(program, facts=facts(), engine="local", strategy=strategy, budget=None) as db:
            seen = []
            for some in steps:
                for change in ({"deleted": {"edge": some}}, {"inserted": {"edge": some}}):
                    db.apply(**change)
                    seen.append(levels_of(db))
            states.append(seen)
            plans = plans_of(db).values()
            heads[name] = {variant.heads for plan in plans for variant in plan.machine.code.variants}
    assert states[0] == states[1]
    assert heads == {"together": {0, 4}, "apart": {0}}
    assert len({str(sorted(state.items())) for state in states[0]}) > 4


MARKED = """
.decl seed(x: number)
.decl below(x: number, y: number)
below(0, z), below(z, 4) :- seed(y), z = range(0, y).
below(x, z) :- below(x, y), below(y, z).
"""


@pytest.mark.parametrize("levels", ["local", "global"])
def test_updates_give_every_head_what_a_range_makes(levels: str) -> None:
    with elastalog.open(MARKED, facts={"seed": [(2,)]}, engine="local", levels=levels, budget=None) as db:
        db.apply(inserted={"seed": [(7,)]})
        db.apply(deleted={"seed": [(2,)]})
        kept = levels_of(db)
    with elastalog.open(MARKED, facts={"seed": [(7,)]}, engine="local", levels=levels) as db:
        assert kept == levels_of(db)


def test_blocks_of_any_length() -> None:
    with elastalog.open(RANGES, facts={"seed": [(39_990,)]}, engine="local") as db:
        expected = {(39_990,)}
        pairs = set()
        waiting = [39_990]
        while waiting:
            x = waiting.pop()
            for y in range(x + 1, x + 40_000, 2) if x < 40_000 else ():
                pairs.add((x, y))
                if (y,) not in expected:
                    expected.add((y,))
                    waiting.append(y)
        assert set(db["near"]) == expected
        assert set(db["far"]) == pairs
