"""Rules with several heads: what is written once is run once.

Such a rule is a clause for each head, which differ in nothing else. Where these heads are of one stratum, their
variants that start at the same goal enumerate the same rows: one variant gives the terms of all heads, and each head
takes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import BLOCK, BoundVariant
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.planning.logical import Clause
from elastalog.planning.order import Statistics
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_heads


class SharedBody:
    """Variants that differ in their heads only, and the one that is run for all of them."""

    __slots__ = ("_columns", "_facts", "members", "variant")

    def __init__(self, members: Sequence[BoundVariant], variant: BoundVariant) -> None:
        self.members = members
        self.variant = variant
        results = variant.planned.results
        self._columns = [[results.index(term) for term in member.clause.head_terms] for member in members]
        self._facts = [_block_for(member, BLOCK) for member in members]

    def heads(self, block: Matrix, used: int) -> Iterator[tuple[BoundVariant, Matrix]]:
        """The variants, and the facts that the rows of a block are to each; valid until the next call."""
        for i, member in enumerate(self.members):
            if used > len(self._facts[i]):  # what a `range` gives comes at once
                self._facts[i] = _block_for(member, used)
            facts = self._facts[i]
            for place, column in enumerate(self._columns[i]):
                facts[:used, place] = block[:used, column]
            yield member, facts


def with_shared_bodies(
    variants: Sequence[BoundVariant], statistics: Statistics, bind: Callable[[Variant], BoundVariant]
) -> list[BoundVariant | SharedBody]:
    """Variants that follow a delta, in order, but that those which share a body stand where the first of them did."""
    groups: dict[object, list[BoundVariant]] = {}
    for variant in variants:
        groups.setdefault(_body(variant), []).append(variant)
    bodies: list[BoundVariant | SharedBody] = []
    for members in groups.values():
        if len(members) == 1:
            bodies.append(members[0])
        else:
            goal = members[0].gather.goal
            assert goal is not None
            # Whose head is the start's relation says so: its rows may grow while they are read.
            clauses: list[Clause] = [member.clause for member in members]
            clauses.sort(key=lambda clause: clause.head != members[0].gather.relation)
            bodies.append(SharedBody(members, bind(plan_heads(clauses, goal, statistics))))
    return bodies


def _body(variant: BoundVariant) -> object:
    """Equal for variants that may be run as one."""
    clause = variant.clause
    if clause.rule is None or clause.rule.plan or not clause.head_terms:
        return id(variant)
    return clause.goals, clause.wraps, variant.gather.goal


def _block_for(variant: BoundVariant, rows: int) -> Matrix:
    return np.empty((rows, len(variant.clause.head_terms)), np.int32)
