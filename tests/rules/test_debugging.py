"""Rules as elements of updates, against brute force over all parts of an update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.debugging.answers import Answer
from tests.debugging.brute_force import applied, elements_between, facts_of_state
from tests.engine.judging import facts_of, levels_of
from tests.generators.construction import Features
from tests.reference.cases import parse_accepted
from tests.refusals import refused
from tests.rules.playing import Case, Step, apply, case_of, step_of
from tests.rules.test_random import is_stratified

MOST_ELEMENTS = 7
NEGATION = Features(aggregates=False, arithmetic=False)


class Judge:
    """All states of one case, by the reference evaluator. An element is a signed fact or a signed rule."""

    def __init__(self, case: Case, steps: Sequence[Step]) -> None:
        self.header = case.header
        self.rules = list(case.current)
        self.explicit = case.explicit
        after, rules = case.explicit, list(case.current)
        for step in steps:
            after = step.update.apply_to(after)
            rules = [rule for rule in rules if rule not in step.removed] + step.added
        self.elements: list[Any] = list(elements_between(case.explicit, after))
        self.elements += [("+", rule) for rule in rules if rule not in self.rules]
        self.elements += [("-", rule) for rule in self.rules if rule not in rules]
        self._known: dict[frozenset[Any], set[Any]] = {}

    def facts(self, elements: Iterable[Any]) -> set[Any]:
        """All facts after some elements."""
        key = frozenset(elements)
        if key not in self._known:
            of_rules = [element for element in key if isinstance(element[1], str)]
            rules = [rule for rule in self.rules if ("-", rule) not in of_rules]
            rules += [rule for sign, rule in of_rules if sign == "+"]
            tree = parse_accepted(self.header + "".join(f"{rule}\n" for rule in rules))
            self._known[key] = facts_of_state(tree, applied(self.explicit, key.difference(of_rules)))
        return self._known[key]

    def shows_all(self, elements: Iterable[Any], unwanted: Any, missing: Any) -> bool:
        facts = self.facts(elements)
        return all(fact in facts for fact in unwanted) and not any(fact in facts for fact in missing)

    def shows_none(self, elements: Iterable[Any], unwanted: Any, missing: Any) -> bool:
        facts = self.facts(elements)
        return not any(fact in facts for fact in unwanted) and all(fact in facts for fact in missing)


def plain(answer: Answer) -> list[Any]:
    return [(sign, what if isinstance(what, str) else (what.relation, what.values)) for sign, what in answer.elements]


def debug(seed: int, strategy: str = "elastic", features: Features = NEGATION, epochs: int = 1) -> set[str]:
    """Debugs one case; says which kinds of elements its answers had."""
    case, choice = case_of(seed, features), Random(seed)
    if not is_stratified(case.header + "".join(f"{rule}\n" for rule in case.pool)):
        return set()
    steps = []
    rest = Case(case.header, case.pool, list(case.current), case.explicit, case.facts)
    for number in range(epochs):
        steps.append(step_of(rest, case.updates[number % len(case.updates)], choice))
        rest.current = [rule for rule in rest.current if rule not in steps[-1].removed] + steps[-1].added
    judge = Judge(case, steps)
    if not 0 < len(judge.elements) <= MOST_ELEMENTS:
        return set()
    before, after = judge.facts(()), judge.facts(judge.elements)
    came, went = sorted(after - before, key=repr), sorted(before - after, key=repr)
    unwanted = choice.sample(came, min(len(came), choice.randint(0, 3)))
    missing = choice.sample(went, min(len(went), choice.randint(0 if unwanted else 1, 3)))
    if not unwanted and not missing:
        return set()
    kept_always = elastalog.Store(heartbeats=True)  # an update that changes nothing is an epoch, too
    with elastalog.open(case.text, facts=case.facts, strategy=strategy, store=kept_always) as db:
        for step in steps:
            apply(db, step, choice)
        state = facts_of(db), levels_of(db) if strategy == "elastic" else None
        between = (1, 1 + epochs)
        suggestion = db.suggest(unwanted, missing, epochs=between)
        localisation = db.localise(unwanted, missing, epochs=between)
        assert state == (facts_of(db), levels_of(db) if strategy == "elastic" else None)
        assert (db.epoch, db.verify().is_exact if strategy == "elastic" else True) == (1 + epochs, True)
        undone, part = plain(suggestion), plain(localisation)
        assert set(undone) | set(part) <= set(judge.elements)
        kept = [element for element in judge.elements if element not in undone]
        assert judge.shows_none(kept, unwanted, missing)
        assert judge.shows_all(part, unwanted, missing)
        assert suggestion.minimum
        assert localisation.minimum
        for smaller in (p for size in range(len(undone)) for p in combinations(judge.elements, size)):
            assert not judge.shows_none(set(judge.elements) - set(smaller), unwanted, missing)
        for smaller in (p for size in range(len(part)) for p in combinations(judge.elements, size)):
            assert not judge.shows_all(smaller, unwanted, missing)
        reject(db, suggestion, judge, unwanted, missing, between)
        suggestion.apply()
        found = {(name, fact) for name, facts in facts_of(db).items() for fact in facts}
        assert found == judge.facts(kept)
        return {"rule" if isinstance(what, str) else "fact" for _, what in (*undone, *part)}


def reject(db: Any, suggestion: Any, judge: Judge, unwanted: Any, missing: Any, between: tuple[int, int]) -> None:
    """Rejecting an element gives another suggestion, or says truly that there is none."""
    rejected = suggestion.elements[0]
    first = plain(suggestion)[0]
    others = [element for element in judge.elements if element != first]
    solutions = [
        part
        for size in range(len(others) + 1)
        for part in combinations(others, size)
        if judge.shows_none(set(judge.elements) - set(part), unwanted, missing)
    ]
    if not solutions:
        with refused("E1006"):
            db.suggest(unwanted, missing, [str(rejected)], epochs=between)
        return
    again = db.suggest(unwanted, missing, [str(rejected)], epochs=between)
    assert first not in plain(again)
    assert len(again.elements) == len(solutions[0])


def test_seeded() -> None:
    kinds = set().union(*(debug(seed) for seed in range(40)))
    assert kinds == {"rule", "fact"}


def test_seeded_with_aggregates() -> None:
    for seed in range(1000, 1020):
        debug(seed, features=Features(arithmetic=False))


def test_seeded_over_several_epochs() -> None:
    kinds = set().union(*(debug(seed, epochs=3) for seed in range(2000, 2025)))
    assert kinds == {"rule", "fact"}


@pytest.mark.parametrize("strategy", ["recompute", "dense", "dred", "bfc"])
def test_seeded_under_other_strategies(strategy: str) -> None:
    for seed in range(3000, 3012):
        debug(seed, strategy)


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.long)])
def test_many_seeded(epochs: int, number: int) -> None:
    for seed in range(10_000, 10_000 + number):
        debug(seed, epochs=epochs, features=Features(arithmetic=False))
