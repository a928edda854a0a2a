"""The numbers that `autoinc()` gives: one for each derivation of a rule, kept for as long as there is the derivation.

A derivation without a number gets the next one, above all that are in use, in the order of the values that the rule's
variables have in it. So a fresh evaluation numbers from 0, the same in every process, and an update renumbers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import numpy as np

from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now
from elastalog.planning.logical import AggregateRule, LogicalProgram
from elastalog.relations.value_order import order_of
from elastalog.relations.words import Dictionary


def number_all(
    rule: AggregateRule,
    members: Matrix,
    relations: MutableMapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
) -> None:
    """Fills the relation of numbers. What it holds already are numbers that were given before."""
    before = relations[rule.relation]
    first = _next_number(relations, dictionary, program)
    groups = KernelRelation("", rule.groups, is_annotated=False)
    groups.load(members)
    known = before.rows[: before.used]
    known = known[groups.find(np.ascontiguousarray(known[:, : rule.groups])) >= 0]
    target = relations[rule.relation] = KernelRelation(before.name, before.width, before.is_annotated)
    target.load(known)
    target.load(_new_numbers(rule, members, known, first, dictionary, program))
    if target.is_annotated:
        target.level[: target.used] = 1


def numbered(
    rule: AggregateRule,
    members: Matrix,
    known: Matrix,
    relations: Mapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
) -> Matrix:
    """The facts that some derivations have: those `known` of them, and for the others new ones."""
    groups = KernelRelation("", rule.groups, is_annotated=False)
    groups.load(members)
    kept = known[groups.find(np.ascontiguousarray(known[:, : rule.groups])) >= 0]
    first = _next_number(relations, dictionary, program)
    return np.concatenate((kept, _new_numbers(rule, members, kept, first, dictionary, program)))


def _new_numbers(
    rule: AggregateRule,
    members: Matrix,
    known: Matrix,
    first: int,
    dictionary: Dictionary,
    program: LogicalProgram,
) -> Matrix:
    lookup = KernelRelation("", rule.groups, is_annotated=False)
    lookup.load(np.ascontiguousarray(known[:, : rule.groups]))
    new = members[lookup.find(members) < 0]
    bases = program.relations[rule.members].bases
    order = sorted(range(len(new)), key=lambda i: order_of(new[i].tolist(), bases, dictionary))
    found = np.empty((len(new), rule.groups + 1), np.int32)
    found[:, : rule.groups] = new[order]
    found[:, rule.groups] = dictionary.from_integers(np.arange(first, first + len(new), dtype=np.int64))
    return found


def _next_number(relations: Mapping[str, KernelRelation], dictionary: Dictionary, program: LogicalProgram) -> int:
    """One above the greatest number in use by any rule."""
    greatest = -1
    for stratum in program.strata:
        if (rule := stratum.numbering) is not None:
            relation = relations[rule.relation]
            words = relation.rows[_present(relation), -1]
            if len(words):
                greatest = max(greatest, int(dictionary.integers(words).max()))
    return greatest + 1


def _present(relation: KernelRelation) -> Vector | slice:
    if relation.is_settled:
        return slice(0, relation.used)
    return np.flatnonzero(levels_now(relation, slice(0, relation.used)) < ABSENT)
