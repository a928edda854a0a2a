"""The derivation graph decides every state as an evaluator of a few lines does, and its reasons are reasons."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.sandbox import Seconds
from elastalog.debugging.zero_one import Clause, Contradiction, easy_cover
from elastalog.session import Session
from tests.debugging.propositional import Propositional, random_propositional


def parts(names: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def opened(case: Propositional) -> Session:
    db = elastalog.open(case.text, facts={name: [()] for name in case.before})
    db.apply({name: [()] for name in case.after - case.before}, {name: [()] for name in case.before - case.after})
    return db


def investigated(db: Session) -> Investigation:
    return db._answerers.debugger._investigation(db.epoch - 1, db.epoch)


def compare(case: Propositional, choice: Random) -> tuple[int, int]:
    """How many facts were covered by an exact graph, and how many were not."""
    elements = sorted(case.before ^ case.after)
    changing = sorted(case.facts(case.before) ^ case.facts(case.after))
    if not 0 < len(elements) <= 7 or not changing:
        return 0, 0
    covered = 0
    with opened(case) as db:
        known = investigated(db)
        assert [name for name, _ in known.elements] == elements
        for name in changing:
            graph = known.graph([(name, (0,))], Seconds())
            if graph is None:
                continue
            covered += 1
            node = graph.node_of((name, (0,)))
            for part in parts(elements):
                explicit = case.before.symmetric_difference(part)
                state = graph.evaluate(np.array([element in explicit for element in elements]))
                assert state.holds(node) == (name in case.facts(explicit))
                # Whatever agrees on the reason agrees on the fact.
                reason = {elements[i] for i in state.reason(node)}
                rest = [element for element in elements if element not in reason]
                other = explicit.symmetric_difference(choice.sample(rest, choice.randint(0, len(rest))))
                assert (name in case.facts(other)) == state.holds(node)
        assert {name for name in db if len(db[name])} == case.facts(case.after)
    return covered, len(changing) - covered


@pytest.mark.parametrize(("negation", "first"), [(False, 0), (True, 500)])
def test_every_state_is_decided(negation: bool, first: int) -> None:
    seeds = range(first, first + 25)
    found = [compare(random_propositional(seed, negation=negation), Random(seed)) for seed in seeds]
    covered, others = (sum(numbers) for numbers in zip(*found, strict=True))
    assert covered > 30
    assert (others > 0) == negation, "without negation everything is covered"


@pytest.mark.long
def test_every_state_of_many_is_decided() -> None:
    for seed in range(3000, 3120):
        compare(random_propositional(seed, negation=True), Random(seed))


NEGATION = """
.decl a, b, hidden, seen, both(x: number)
hidden(x) :- b(x), x != 7.
seen(x) :- a(x), !hidden(x).
both(x) :- seen(x), seen(y), y = x + 1.
"""


def test_negated_facts_that_vary_are_leaves() -> None:
    """`hidden` varies and is negated: without pretending, neither end of the update shows all that can be seen."""
    with elastalog.open(NEGATION, facts={"a": [(1,)], "b": [(1,), (2,)]}) as db:
        db.apply({"a": [(2,)], "b": [(3,)]}, {"b": [(1,), (2,)]})
        assert sorted(db["both"]) == [(1,)]
        graph = investigated(db).graph([("both", (1,))], Seconds())
        assert not graph.is_positive
        suggestion: Any = db.suggest(unwanted=["both(1)"])
        assert suggestion.minimum
        assert len(suggestion.elements) == 1
        assert {str(element) for element in db.localise(unwanted=["both(1)"]).elements} == {
            "+a(2)", "-b(1)", "-b(2)",
        }  # fmt: skip


def test_a_fact_that_is_explicit_and_always_derived_is_no_leaf() -> None:
    """`p(1)` follows in every state, so that undoing its insertion is never of use."""
    program = """
    .decl e, p, q(x: number)
    p(x) :- e(x).
    q(x) :- p(x).
    q(x + 1) :- p(x).
    """
    with elastalog.open(program, facts={"e": [(1,)]}) as db:
        db.apply({"e": [(5,)], "p": [(1,), (6,)]})
        found = db.suggest(unwanted=["q(6)"])
        assert [str(element) for element in found.elements] == ["+e(5)", "+p(6)"]
        assert found.minimum


# --- easy 0/1 programs against all assignments ------------------------------------------------------------------------


def least_weight(clauses: list[Clause], weights: list[float]) -> float | None:
    found = [
        sum(weight for weight, value in zip(weights, values, strict=True) if value)
        for values in product((False, True), repeat=len(weights))
        if all(any(values[variable] == value for variable, value in clause.items()) for clause in clauses)
    ]
    return min(found, default=None)


def random_clauses(choice: Random, variables: int) -> list[Clause]:
    return [
        {v: choice.random() < 0.8 for v in choice.sample(range(variables), choice.randint(1, 3))}
        for _ in range(choice.randint(1, 7))
    ]


def test_what_is_found_is_best() -> None:
    kinds = {"easy": 0, "hard": 0, "none": 0}
    for seed in range(600):
        choice = Random(seed)
        weights = [choice.choice((1.0, 1.0, 2.0, 2.5)) for _ in range(6)]
        clauses = random_clauses(choice, 6)
        least = least_weight(clauses, weights)
        try:
            found = easy_cover(clauses, weights)
        except Contradiction:
            assert least is None
            kinds["none"] += 1
            continue
        if found is None:
            kinds["hard"] += 1
            continue
        kinds["easy"] += 1
        assert found.bound == least
        for clause in clauses:
            assert any((variable in found.flipped) == value for variable, value in clause.items())
    assert all(number > 10 for number in kinds.values())


def test_one_variable_for_several_clauses_is_seen() -> None:
    found = easy_cover([{0: True, 1: True}, {1: True, 2: True}], [1.0, 1.0, 1.0])
    assert found.flipped == {1}


def test_what_a_choice_would_break_is_not_easy() -> None:
    assert easy_cover([{0: True, 1: True}, {0: False, 2: True}, {1: False, 2: True}], [1.0, 1.0, 1.0]) is None


def test_forced_both_ways_is_a_contradiction() -> None:
    with pytest.raises(Contradiction):
        easy_cover([{0: True}, {0: False, 1: True}, {1: False}], [1.0, 1.0])
