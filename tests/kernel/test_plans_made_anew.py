"""Plans of a recursive stratum are made anew as it grows, where that may change them."""

from __future__ import annotations

import random

import pytest

import elastalog
from elastalog.backends.kernel.bootstrap import fixpoint
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.planning.order import Statistics
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_again, plan_by_way_of

PROGRAM = """
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), !edge(z, x).
path(x, z) :- path(x, y), path(y, z), edge(y, w), w > 2.
"""


def opened() -> elastalog.Session:
    choice = random.Random(5)
    edges = {(choice.randrange(150), choice.randrange(150)) for _ in range(350)}
    return elastalog.open(PROGRAM, facts={"edge": sorted(edges)}, engine="local")


def test_those_that_depend_on_no_relation_of_the_stratum_are_final(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []

    def noted(variant: Variant, statistics: Statistics) -> Variant:
        planned.append(len(variant.clause.scans))
        return plan_again(variant, statistics)

    monkeypatch.setattr(fixpoint, "plan_again", noted)
    with opened() as db:
        assert len(db["path"]) > 10_000
    assert set(planned) == {3}


def test_bodies_stay_whose_plans_do(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[BoundVariant]] = []
    bodies = StratumVariants.bodies.fget
    assert bodies is not None

    def noted(self: StratumVariants) -> list[BoundVariant]:
        found = bodies(self)
        if not seen or found is not seen[-1]:
            seen.append(found)
        return found

    def changed(variant: Variant, statistics: Statistics) -> Variant:
        return plan_by_way_of(variant, 2, statistics) if variant.gather.goal == 0 else variant

    monkeypatch.setattr(StratumVariants, "bodies", property(noted))
    monkeypatch.setattr(fixpoint, "plan_again", changed)
    with opened() as db:
        assert len(db["path"]) > 10_000
    before, after = seen[0], seen[1]
    assert [body is other for body, other in zip(before, after, strict=True)] == [True, True, False, True]
