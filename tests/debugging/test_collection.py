"""How derivations are collected, and in how much of a program answers are tried, makes no difference to answers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.debugging.dependencies import Parts
from elastalog.session import Session
from elastalog.settings import SETTINGS
from tests.closures import CLOSURE as EDGES
from tests.debugging.test_random import NEGATION, POSITIVE, debug
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case


def texts(answer: Any) -> list[str]:
    assert answer.verified
    assert answer.minimum
    return [str(element) for element in answer.elements]


WIDE = """
.decl row(a: number, b: number, c: symbol)
.decl same(a: number)
.decl named(a: number, c: symbol)
.decl turned(a: number, b: number)
.decl unknown, hit(a: number)
same(x) :- row(x, x, _).
named(x, "found") :- row(x, _, "n").
turned(y, x) :- row(x, y, _).
unknown(x) :- row(x, _, "never").
hit(x) :- same(x), named(x, "found").
hit(x) :- turned(x, 5).
hit(x) :- unknown(x).
"""


@pytest.fixture
def wide() -> Session:
    db = elastalog.open(WIDE, facts={"row": [(8, 8, "m")]})
    db.apply({"row": [(1, 1, "n"), (1, 2, "n"), (2, 2, "n"), (5, 2, "m"), (5, 3, "m"), (4, 4, "m")]})
    return db


@pytest.mark.parametrize(
    ("unwanted", "undone"),
    [
        (["same(4)"], ["+row(4, 4, \"m\")"]),
        (["named(1, \"found\")"], ["+row(1, 1, \"n\")", "+row(1, 2, \"n\")"]),
        (["turned(2, 1)"], ["+row(1, 2, \"n\")"]),
        (["hit(1)"], ["+row(1, 1, \"n\")"]),
        (["hit(2)"], ["+row(2, 2, \"n\")", "+row(5, 2, \"m\")"]),
        (["hit(3)", "hit(1)", "turned(4, 4)"], ["+row(1, 1, \"n\")", "+row(4, 4, \"m\")", "+row(5, 3, \"m\")"]),
    ],
)  # fmt: skip
def test_clauses_that_rearrange_one_fact(wide: Session, unwanted: list[str], undone: list[str]) -> None:
    assert texts(wide.suggest(unwanted=unwanted)) == undone


def test_they_need_no_index(wide: Session) -> None:
    before = {name: set(relation.indexed) for name, relation in wide._backend.held.relations.items()}
    assert texts(wide.suggest(unwanted=["turned(2, 1)"])) == ['+row(1, 2, "n")']
    assert before == {name: set(relation.indexed) for name, relation in wide._backend.held.relations.items()}


@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 0), (NEGATION, 1000), (Features(), 2000)])
def test_one_fact_after_the_other(features: Features, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in relations of which too many facts vary to look at all of them."""
    monkeypatch.setattr(SETTINGS, "few_debugged_facts", 0)
    for seed in range(first, first + 4):
        debug(*seeded_case(seed, features), Random(seed))


@pytest.mark.parametrize("few", [0, SETTINGS.few_debugged_facts])
def test_what_was_interrupted_is_collected_again(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "few_debugged_facts", few)
    with elastalog.open(EDGES, facts={"edge": [(1, 2)]}) as db:
        db.apply({"edge": [(2, 3), (3, 4), (2, 5), (5, 4)]})
        derivations = KernelBackend.derivations
        asked: list[str] = []

        def interrupt(self: KernelBackend, relation: str, *rest: Any) -> Any:
            asked.append(relation)
            if len(asked) == (2 if few == 0 else 1):
                raise KeyboardInterrupt
            return derivations(self, relation, *rest)

        monkeypatch.setattr(KernelBackend, "derivations", interrupt)
        with pytest.raises(KeyboardInterrupt):
            db.suggest(unwanted=["path(1, 4)"])
        assert texts(db.suggest(unwanted=["path(1, 4)", "path(1, 3)"])) == ["+edge(2, 3)", "+edge(5, 4)"]
        assert texts(db.localise(unwanted=["path(1, 4)", "path(1, 3)"])) == ["+edge(2, 3)", "+edge(3, 4)"]


@pytest.mark.parametrize(
    ("few", "most", "is_too_large"),
    # 4 derivations are asked about; those that the second rule makes of new paths, found at once, are 6.
    [(0, 4, False), (0, 3, True), (SETTINGS.few_debugged_facts, 6, False), (SETTINGS.few_debugged_facts, 5, True)],
)
def test_there_is_a_limit_of_derivations(
    few: int, most: int, is_too_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "few_debugged_facts", few)
    monkeypatch.setattr(SETTINGS, "graph_derivations", most)
    with elastalog.open(EDGES, facts={"edge": [(1, 2)]}) as db:
        db.apply({"edge": [(2, 3), (3, 4), (2, 5), (5, 4)]})
        assert len(db.suggest(unwanted=["path(1, 4)"]).elements) == 2
        assert bool(db._answerers.debugger._investigations[1, 2]._too_large) == is_too_large


@pytest.mark.parametrize("most", [1, 2])
def test_derivations_that_were_known_at_once_count_too(
    wide: Session, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "graph_derivations", most)
    assert texts(wide.suggest(unwanted=['named(1, "found")'])) == ['+row(1, 1, "n")', '+row(1, 2, "n")']
    assert bool(wide._answerers.debugger._investigations[1, 2]._too_large) == (most < 2)


# --- in how much of the program an answer is tried


def decisive(program: str, *relations: str) -> set[str] | None:
    with elastalog.open(program) as db:
        logical = db._backend.program
        strata = Parts(logical).decisive(relations)
        if strata is None:
            return None
        return {name for stratum in logical.strata if stratum.number in strata for name in stratum.relations}


ABOVE = EDGES + ".decl far(x: number)\nfar(x) :- path(x, y), y > x.\n"


def test_what_only_compares_need_not_be_tried() -> None:
    assert decisive(ABOVE, "path") == {"edge", "path"}
    assert decisive(ABOVE, "far") == {"edge", "path", "far"}


@pytest.mark.parametrize(
    ("rule", "tried"),
    [
        ("total(y + 1) :- edge(_, y).", {"total"}),
        ("total(x) :- edge(x, y), x - y < 3.", {"total"}),
        ("total(n) :- n = sum x : { edge(x, _) }.", {"@members.3.1", "@sum.3.1"}),
    ],
)
def test_what_may_have_no_result_must_be_tried(rule: str, tried: set[str]) -> None:
    assert decisive(EDGES + ".decl total(x: number)\n" + rule, "edge") == {"edge", *tried}


def test_a_limit_of_size_concerns_the_whole() -> None:
    assert decisive(EDGES + ".limitsize path(n = 1000)\n", "edge") is None


def test_a_trial_that_costs_too_much_in_part_is_made_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "trial_derivations", 0)
    with elastalog.open(ABOVE, facts={"edge": [(1, 2)]}) as db:
        db.apply({"edge": [(2, 3), (3, 4)]})
        found = db.suggest(unwanted=["path(1, 4)"])
        assert texts(found) == ["+edge(3, 4)"]
        assert found.seconds.number_of_trials == 2
