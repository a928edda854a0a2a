"""The judge of debugging: states by the reference evaluator, solutions by trying every part of an update, of facts and
of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

import elastalog
from elastalog.debugging.answers import Answer
from elastalog.syntax.tree import Tree
from tests.engine.judging import comparable, facts_of, levels_of
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.refusals import refused
from tests.rules.playing import Case, Step, apply

Explicit = dict[str, set[tuple[Any, ...]]]
Element = tuple[str, tuple[str, tuple[Any, ...]]]
Fault = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Faults:
    unwanted: list[Fault]
    missing: list[Fault]


def elements_between(before: Explicit, after: Explicit) -> list[Element]:
    """The changes of explicit facts that lead from one state to another."""
    names = sorted({*before, *after})
    came = [("+", (n, fact)) for n in names for fact in sorted(after.get(n, set()) - before.get(n, set()))]
    return came + [("-", (n, fact)) for n in names for fact in sorted(before.get(n, set()) - after.get(n, set()))]


def applied(explicit: Explicit, elements: Iterable[Element]) -> Explicit:
    """The explicit facts after some elements."""
    result = {name: set(facts) for name, facts in explicit.items()}
    for sign, (name, fact) in elements:
        facts = result.setdefault(name, set())
        (facts.add if sign == "+" else facts.discard)(fact)
    return result


def facts_of_state(tree: Tree, explicit: Explicit) -> set[Fault]:
    """All facts that follow."""
    found = evaluate(tree, explicit, with_text_facts=False)
    return {(name, comparable(fact)) for name, facts in found.items() for fact in facts}


def shows(tree: Tree, explicit: Explicit, faults: Faults) -> tuple[bool, bool]:
    """Whether a state shows all faults, and whether it shows any."""
    facts = facts_of_state(tree, explicit)
    shown = [f in facts for f in faults.unwanted] + [f not in facts for f in faults.missing]
    return all(shown), any(shown)


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


def investigate(
    case: Case, steps: Sequence[Step], choice: Random, strategy: str = "elastic", most: int = 7
) -> set[str]:
    """Debugs what steps did to a case, if that is at most so many elements; says of which kinds the faults and the
    elements of the answers were, nothing if there was nothing to debug."""
    judge = Judge(case, steps)
    if not 0 < len(judge.elements) <= most:
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
        between = (1, 1 + len(steps))
        suggestion = db.suggest(unwanted, missing, epochs=between)
        localisation = db.localise(unwanted, missing, epochs=between)
        assert state == (facts_of(db), levels_of(db) if strategy == "elastic" else None)
        assert (db.epoch, db.verify().is_exact if strategy == "elastic" else True) == (1 + len(steps), True)
        undone, part = plain(suggestion), plain(localisation)
        assert set(undone) | set(part) <= set(judge.elements)
        kept = [element for element in judge.elements if element not in undone]
        assert judge.shows_none(kept, unwanted, missing)
        assert judge.shows_all(part, unwanted, missing)
        assert suggestion.verified
        assert localisation.verified
        assert suggestion.minimum
        assert localisation.minimum
        assert suggestion.bound == len(undone)
        for smaller in (p for size in range(len(undone)) for p in combinations(judge.elements, size)):
            assert not judge.shows_none(set(judge.elements) - set(smaller), unwanted, missing)
        for smaller in (p for size in range(len(part)) for p in combinations(judge.elements, size)):
            assert not judge.shows_all(smaller, unwanted, missing)
        reject(db, suggestion, judge, unwanted, missing, between)
        suggestion.apply()
        found = {(name, fact) for name, facts in facts_of(db).items() for fact in facts}
        assert found == judge.facts(kept)
        kinds = {"unwanted"} if unwanted else set()
        kinds |= {"missing"} if missing else set()
        return kinds | {"rule" if isinstance(what, str) else "fact" for _, what in (*undone, *part)}


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
