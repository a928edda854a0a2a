"""The judge of debugging: states by the reference evaluator, solutions by trying every part of an update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

from elastalog.syntax.tree import Tree
from tests.engine.judging import comparable
from tests.generators.updates import Update
from tests.reference.evaluator import evaluate

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


def removes(
    tree: Tree, before: Explicit, elements: Sequence[Element], undone: Sequence[Element], faults: Faults
) -> bool:
    """Whether undoing some elements removes all faults."""
    kept = [element for element in elements if element not in undone]
    return not shows(tree, applied(before, kept), faults)[1]


def reproduces(tree: Tree, before: Explicit, part: Sequence[Element], faults: Faults) -> bool:
    """Whether some elements alone show all faults."""
    return shows(tree, applied(before, part), faults)[0]


def smaller_parts(elements: Sequence[Element], size: int) -> Iterable[tuple[Element, ...]]:
    """All parts with fewer elements."""
    for number in range(size):
        yield from combinations(elements, number)


def choose_faults(tree: Tree, before: Explicit, after: Explicit, choice: Random, most: int = 3) -> Faults | None:
    """Some facts that came and went, as unwanted and missing; None if nothing changed."""
    old, new = facts_of_state(tree, before), facts_of_state(tree, after)
    came, went = sorted(new - old, key=repr), sorted(old - new, key=repr)
    if not came and not went:
        return None
    unwanted = choice.sample(came, min(len(came), choice.randint(0, most)))
    missing = choice.sample(went, min(len(went), choice.randint(0, most)))
    if not unwanted and not missing:
        unwanted, missing = came[:1], [] if came else went[:1]
    return Faults(unwanted, missing)


def merged(updates: Sequence[Update]) -> Update:
    """Several updates as one, so that there is more to choose from."""
    deleted: dict[str, list[Any]] = {}
    inserted: dict[str, list[Any]] = {}
    for update in updates:
        for name, facts in update.deleted.items():
            deleted.setdefault(name, []).extend(facts)
        for name, facts in update.inserted.items():
            inserted.setdefault(name, []).extend(facts)
    return Update(deleted, inserted)
