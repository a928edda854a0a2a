"""A stratum that an update evaluates anew is what a first evaluation would make of it, and its changes are exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.maintenance import KernelReach
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.evaluation import costs
from elastalog.planning.logical import LogicalStratum
from elastalog.settings import SETTINGS
from tests.closures import CLOSURE
from tests.engine.judging import followed, state_of
from tests.kernel import plans_of

PROGRAM = """
.decl edge, path(x: number, y: number)
.decl far, near(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
far(x) :- path(0, x), !edge(0, x).
near(x) :- path(0, x), !far(x).
"""
STRATEGIES = ("elastic", "recompute", "dense", "dred", "dredc", "bf", "bfc")
Edges = set[tuple[int, int]]


@pytest.fixture
def always_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every affected stratum is evaluated anew, whatever the strategy."""
    monkeypatch.setattr(KernelReach, "must_rebuild", lambda reach, stratum: True)


def updates(seed: int, number: int) -> Iterator[tuple[Edges, Edges, Edges, Edges]]:
    """Edges and explicit paths that go and come; every few updates nearly all of them go."""
    rng = random.Random(seed)
    held: list[Edges] = [set(), set()]
    for turn in range(number):
        share = 0.9 if turn % 5 == 4 else 0.2
        sides = []
        for facts, most in zip(held, (8, 3), strict=True):
            went = {fact for fact in facts if rng.random() < share}
            came = {(rng.randrange(9), rng.randrange(9)) for _ in range(rng.randrange(most))} - went
            facts -= went
            facts |= came
            sides += [went, came]
        yield sides[0], sides[1], sides[2], sides[3]


@pytest.mark.usefixtures("always_anew")
@pytest.mark.parametrize(("strategy", "levels"), [("elastic", "global"), *((name, "local") for name in STRATEGIES)])
def test_a_rebuilt_stratum_equals_a_bootstrap_and_its_changes_are_exact(strategy: str, levels: Any) -> None:
    with followed(PROGRAM, {}, "anew", strategy=strategy, levels=levels) as session:
        for less, more, fewer, others in updates(5, 15):
            session.apply({"edge": more, "path": others}, {"edge": less, "path": fewer})


@pytest.mark.usefixtures("always_anew")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_rebuilt_stratum_can_be_taken_back(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def refused() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(db._epochs, "make_durable", _refuse)
            yield

    with elastalog.open(PROGRAM, facts={"edge": [(i, i + 1) for i in range(9)]}, strategy=strategy) as db:
        for less, more, fewer, others in updates(6, 12):
            update = {
                "deleted": {"edge": list(less), "path": list(fewer)},
                "inserted": {"edge": list(more), "path": list(others)},
            }
            before = state_of(db)
            with refused(), pytest.raises(RuntimeError):
                db.apply(**update)
            assert state_of(db) == before
            db.apply(**update)


def _refuse(*_: object) -> None:
    raise RuntimeError("refused")


def test_an_update_after_a_rebuild_uses_what_the_update_before_it_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "least_budget", 0)
    chain = [(i, i + 1) for i in range(60)]
    with elastalog.open(PROGRAM, facts={"edge": chain}, budget=0.1) as db:
        stratum = next(s for s in db._backend.program.strata if "path" in s.relations)
        db.apply(deleted={"edge": [(59, 60)]})
        plan, variants = (plans_of(db)[stratum.number], db._backend.evaluation.variants[stratum.number])
        db.apply(deleted={"edge": [(30, 31)]})
        assert [work.how for work in db.log()[-1].strata if "path" in work.relations] == ["switch"]
        assert plans_of(db)[stratum.number] is plan
        assert db._backend.evaluation.variants[stratum.number] is variants
        db.apply(inserted={"edge": [(59, 60)]})
        with elastalog.open(PROGRAM, facts={"edge": [edge for edge in chain if edge != (30, 31)]}) as fresh:
            assert state_of(db) == state_of(fresh)
            # What a rule has derived is what it derived in this evaluation, not in all of them together.
            derived = [rule.derivations for rule in db.statistics().rules if rule.relation == "path"]
            assert sum(derived) <= sum(r.derivations for r in fresh.statistics().rules if r.relation == "path")


def test_plans_for_other_sizes_are_made_anew() -> None:
    with elastalog.open(PROGRAM, strategy="recompute") as db:
        stratum = next(s for s in db._backend.program.strata if "path" in s.relations)
        small: StratumVariants = db._backend.evaluation.variants[stratum.number]
        assert small.suit(stratum)
        db.apply(inserted={"edge": [(i, 0) for i in range(1, 3000)]})
        assert not small.suit(stratum)
        db.apply(deleted={"edge": [(1, 0)]})
        assert db._backend.evaluation.variants[stratum.number] is not small


FACTS = st.lists(st.tuples(st.integers(-2, 12), st.integers(0, 5)), unique=True, max_size=200)


@settings(max_examples=60, deadline=None)
@given(first=FACTS, second=FACTS, shuffled=st.booleans(), absent=st.sets(st.integers(0, 199)))
def test_rows_of_one_relation_are_found_in_another(
    first: list[tuple[int, int]], second: list[tuple[int, int]], shuffled: bool, absent: set[int]
) -> None:
    # In the same order, but for what is between, or in another one.
    if not shuffled:
        second = first[: len(first) // 2] + [f for f in second if f not in first] + first[len(first) // 2 + 1 :]
    old, new = KernelRelation("r", 2, is_annotated=True), KernelRelation("r", 2, is_annotated=True)
    old.load(np.array(first, np.int32).reshape(-1, 2))
    new.load(np.array(second, np.int32).reshape(-1, 2))
    gone = [row for row in absent if row < len(first)]
    old.level[gone] = rebuild.ABSENT
    old.is_settled = not gone
    expected = [-2 if row in gone else second.index(fact) if fact in second else -1 for row, fact in enumerate(first)]
    assert old.matches(new).tolist() == expected


def test_what_is_left_of_a_relation_is_kept_in_the_old_one_and_can_be_taken_back(
    monkeypatch: pytest.MonkeyPatch, always_anew: None
) -> None:
    """Where little is left. The first such update fails in a stratum above, the second is kept."""
    shrunk: list[str] = []
    shrink = rebuild.shrink

    def noted(old: KernelRelation, new: KernelRelation, is_level_change: bool) -> Any:
        shrunk.append(old.name)
        return shrink(old, new, is_level_change)

    monkeypatch.setattr(rebuild, "shrink", noted)
    chain = [(i, i + 1) for i in range(60)]
    program = PROGRAM + ".decl given(x: number)\n.decl square(x: number)\nsquare(x * x) :- given(x), !path(x, x).\n"
    with elastalog.open(program, {"edge": chain, "given": [(2,)]}, budget=0.0) as db:
        before = state_of(db)
        with pytest.raises(elastalog.ElastalogError, match="E0601"):
            db.apply({"given": [(2**62,)]}, {"edge": chain[3:]})
        assert "path" in shrunk
        assert state_of(db) == before
        assert db.verify().is_exact
        shrunk.clear()
        db.apply(deleted={"edge": chain[3:]})
        assert "path" in shrunk
        assert set(db["path"]) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
        assert db.verify().is_exact
        db.apply({"edge": chain[3:]})
        assert state_of(db) == before


def test_an_update_that_has_begun_is_not_mixed_with_what_is_left(
    monkeypatch: pytest.MonkeyPatch, always_anew: None
) -> None:
    """With the least budget a drive is within the stratum when it turns out that it is evaluated anew."""
    monkeypatch.setattr(SETTINGS, "least_budget", 0)
    chain = [(i, i + 1) for i in range(60)]
    with elastalog.open(PROGRAM, {"edge": chain}) as db:
        db.apply(deleted={"edge": chain[3:]})
        assert set(db["path"]) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
        assert db.verify().is_exact


class AlwaysAnew(costs.CostModel):
    """Has every stratum evaluated anew before an update of it begins."""

    def choose(self, stratum: LogicalStratum, *features: Any) -> costs.Forecast:
        return costs.Forecast(stratum.number, stratum.relations, costs.How.RECOMPUTE, "always", None, None)


def test_indexes_that_updates_use_are_made_again_by_an_evaluation_once() -> None:
    chain = [(i, i + 1) for i in range(40)]
    with elastalog.open(CLOSURE, {"edge": chain[:20]}) as db:
        relations = db._backend.held.relations
        evaluated = set(relations["path"].indexed)

        def grow_anew(edges: list[tuple[int, int]]) -> set[tuple[int, ...]]:
            strategy: Any = db._epochs.strategy
            usual, strategy.costs = strategy.costs, AlwaysAnew(None)
            strategy.costs.become(usual)
            db.apply({"edge": edges})
            strategy.costs = usual
            return set(relations["path"].indexed)

        db.apply({"edge": [(100, 0)]})
        db.apply(deleted={"edge": [(100, 0)]})
        used = set(relations["path"].indexed)
        assert used > evaluated
        assert grow_anew(chain[20:25]) == used
        assert not any(map(relations["path"].lacks, relations["path"].indexed))
        assert grow_anew(chain[25:30]) == evaluated  # no update has asked for the others since
        db.apply({"edge": [(100, 0)]})
        assert set(relations["path"].indexed) == used
        db.apply({"edge": chain[30:]}, {"edge": [(100, 0)]})
        assert set(db["path"]) == {(x, y) for x in range(41) for y in range(x + 1, 41)}
        assert db.verify().is_exact
