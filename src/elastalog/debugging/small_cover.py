"""Easy 0/1 programs, solved by thought alone. Most are: what a few clauses force is mostly all there is to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_OPEN = 200
"""Clauses that are compared with each other."""

Clause = Mapping[int, bool]
"""At least one variable must have the value given here."""


class Contradiction(Exception):
    """No values fulfil all clauses."""


@dataclass(frozen=True, slots=True)
class Cover:
    """The variables to be 1 at the least weight."""

    ones: frozenset[int]
    weight: float


def easy_cover(clauses: Sequence[Clause], weights: Sequence[float]) -> Cover | None:
    """A best choice, if it is easy to find; otherwise None. Raises Contradiction if there is none.

    What is forced belongs to every choice. Clauses left over fall into groups without a variable in common; a group
    costs no less than the dearest of its clauses does at the least, and that is enough if one variable fulfils all."""
    forced = _forced(clauses)
    # A variable that nothing asks to be 1 is 0.
    unmet = [clause for clause in clauses if not any(forced.get(v, False) == value for v, value in clause.items())]
    open_sets = [frozenset(v for v, value in clause.items() if value and v not in forced) for clause in unmet]
    ones = {variable for variable, value in forced.items() if value}
    if len(open_sets) > MOST_OPEN:
        return None
    for group in _groups(open_sets):
        least = max(min(weights[variable] for variable in each) for each in group)
        common = frozenset.intersection(*group)
        chosen = min(common, key=lambda variable: (weights[variable], variable), default=None)
        if chosen is None or weights[chosen] > least:
            return None
        ones.add(chosen)
    if not all(any((variable in ones) == value for variable, value in clause.items()) for clause in clauses):
        return None
    return Cover(frozenset(ones), float(sum(weights[variable] for variable in sorted(ones))))


def _forced(clauses: Sequence[Clause]) -> dict[int, bool]:
    """The variables that have the same value in all choices because a clause leaves no other."""
    forced: dict[int, bool] = {}
    is_growing = True
    while is_growing:
        is_growing = False
        for clause in clauses:
            if any(forced.get(variable) == value for variable, value in clause.items()):
                continue
            left = [variable for variable in clause if variable not in forced]
            if not left:
                raise Contradiction
            if len(left) == 1:
                forced[left[0]] = clause[left[0]]
                is_growing = True
    return forced


def _groups(sets: Sequence[frozenset[int]]) -> list[list[frozenset[int]]]:
    """Sets, without those that contain another, by what is connected through common members."""
    smallest: list[frozenset[int]] = []
    for each in sorted(set(sets), key=lambda one: (len(one), sorted(one))):
        if not any(other <= each for other in smallest):
            smallest.append(each)
    groups: list[tuple[set[int], list[frozenset[int]]]] = []
    for each in smallest:
        touching = [group for group in groups if not group[0].isdisjoint(each)]
        members = set(each).union(*(group[0] for group in touching))
        groups = [group for group in groups if group not in touching]
        groups.append((members, [one for group in touching for one in group[1]] + [each]))
    return [group for _, group in groups]
