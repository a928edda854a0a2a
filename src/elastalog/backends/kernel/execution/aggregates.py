"""Aggregates in the kernel: folding all groups at bootstrap, and only the groups with changed members in an update.

The fact of a group has level 1, or with global levels 1 + the highest level of its members (0 if it has none), and
count 1.

The numbers that `autoinc()` gives are kept like aggregates: one for each derivation of a rule, for as long as there is
the derivation. A derivation without a number gets the next one, above all that are in use, in the order of the values
that the rule's variables have in it. So a fresh evaluation numbers from 0, the same in every process, and an update
renumbers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from functools import cache
from typing import TypeAlias

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.kernel.expressions.folds import fold
from elastalog.backends.kernel.store import postings, transaction
from elastalog.backends.kernel.store.annotations import ABSENT, ROW
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now, note_levels
from elastalog.backends.rows import distinct_in_order
from elastalog.late import dataclass
from elastalog.planning.logical import AggregateRule, LogicalProgram
from elastalog.relations.words import Dictionary, order_of


@dataclass(frozen=True, slots=True)
class Folded:
    """One row `groups..., result` for every group that has members. `levels`: one more than the highest level of its
    members, for each of them; None if these have none."""

    rows: Matrix
    levels: Vector | None


FoldElsewhere: TypeAlias = Callable[[Matrix, Vector | None], Folded | None]
"""See `OtherPlace.fold`."""

_ONE_GROUP: Matrix = np.zeros((1, 1), np.int32)
_NO_GROUPS: Matrix = np.zeros((1, 0), np.int32)


def evaluate(
    rule: AggregateRule,
    relations: MutableMapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
    is_global: bool,
    elsewhere: FoldElsewhere | None = None,
) -> None:
    """Fills the aggregate's relation, which is empty, but for numbers that were given before. `elsewhere` may fold it
    in another place."""
    members, target = relations[rule.members], relations[rule.relation]
    rows = slice(0, members.used) if members.is_settled else present_now(members)
    if rule.is_numbering:
        number_all(rule, members.rows[rows], relations, dictionary, program)
        return
    results, levels = _folded(rule, members, rows, dictionary, program, is_global, elsewhere)
    empty = _NO_GROUPS
    if rule.domain is not None:
        domain = relations[rule.domain]
        empty = domain.rows[present_now(domain)]
    defaults = _defaults(rule, empty, results, dictionary)
    target.load(np.concatenate((results, defaults)))
    if target.is_annotated:
        target.level[: target.used] = _with_defaults(levels, len(defaults), is_global)
        note_levels(target)


def _folded(
    rule: AggregateRule,
    members: KernelRelation,
    rows: Vector | slice,
    dictionary: Dictionary,
    program: LogicalProgram,
    is_global: bool,
    elsewhere: FoldElsewhere | None,
) -> tuple[Matrix, Vector]:
    """The results of all groups that have members, and their levels; 1 where none are kept."""
    is_global = is_global and members.is_annotated
    words = members.rows[rows]
    found = None
    if elsewhere is not None:
        found = elsewhere(words, levels_now(members, rows) if is_global else None)
    if found is None:
        results = fold(rule, words, dictionary, program.checked.source)
        return results, _levels(rule, members, rows, results, is_global)
    return found.rows, np.ones(len(found.rows), np.int32) if found.levels is None else found.levels


def refold(
    rule: AggregateRule,
    changed: Mapping[str, Vector],
    relations: Mapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
    is_global: bool,
) -> Vector:
    """Folds the groups again of which members, or whether there is such a group, have changed: `changed` are entries by
    relation. Returns the entries of the aggregate's relation that changed."""
    members, target = relations[rule.members], relations[rule.relation]
    columns = tuple(range(rule.groups))
    groups = _ONE_GROUP
    if rule.groups:
        touched = [_touched(relations[name], entries)[:, : rule.groups] for name, entries in changed.items()]
        all_touched = np.concatenate(touched)
        groups = np.ascontiguousarray(all_touched[distinct_in_order(all_touched)[0]])
    rows = rows_of_keys(members, columns, groups)
    old_rows = rows_of_keys(target, columns, groups)
    if rule.is_numbering:
        results = numbered(rule, members.rows[rows], target.rows[old_rows], relations, dictionary, program)
        levels = np.ones(len(results), np.int32)
    else:
        results = fold(rule, members.rows[rows], dictionary, program.checked.source)
        levels = _levels(rule, members, rows, results, is_global)
    if rule.is_total:
        empty = _NO_GROUPS if rule.domain is None else groups[_are_present(relations[rule.domain], groups)]
        defaults = _defaults(rule, empty, results, dictionary)
        results = np.concatenate((results, defaults))
        levels = _with_defaults(levels, len(defaults), is_global)

    new_rows = transaction.add_rows(target, results) if len(results) else NO_WORDS
    gone = transaction.touch(target, np.setdiff1d(old_rows, new_rows).astype(np.int32))
    transaction.set_annotation(target, gone, 0, is_present=False)
    before = levels_now(target, new_rows)
    is_other = before != levels
    came = transaction.touch(target, new_rows[is_other])
    transaction.set_annotation(target, came, levels[is_other], is_present=True)
    return transaction.changed_entries(target, is_global)


def _defaults(rule: AggregateRule, groups: Matrix, results: Matrix, dictionary: Dictionary) -> Matrix:
    """The facts of those groups that have no result, if the aggregate has such facts."""
    if not rule.is_total:
        return results[:0]
    if rule.groups:
        lookup = KernelRelation("", rule.groups, is_annotated=False)
        lookup.load(np.ascontiguousarray(results[:, : rule.groups]))
        groups = groups[lookup.find(np.ascontiguousarray(groups)) < 0]
    elif len(results):
        groups = groups[:0]
    found = np.empty((len(groups), rule.groups + 1), np.int32)
    found[:, : rule.groups] = groups
    found[:, rule.groups] = dictionary.encode_value(rule.result_base, 0.0 if rule.result_base is Base.FLOAT else 0)
    return found


def _with_defaults(levels: Vector, number: int, is_global: bool) -> Vector:
    """The levels of results, followed by those of `number` facts of empty groups, which rest on nothing."""
    return np.concatenate((levels, np.full(number, 0 if is_global else 1, np.int32)))


def _touched(relation: KernelRelation, entries: Vector) -> Matrix:
    rows: Matrix = relation.rows[relation.touched[entries, ROW]]
    return rows


def _are_present(relation: KernelRelation, facts: Matrix) -> Vector:
    rows = relation.find(facts)
    found: Vector = rows >= 0
    found[found] = levels_now(relation, rows[found]) < ABSENT
    return found


def present_now(relation: KernelRelation) -> Vector:
    """The rows present in the state under way."""
    if relation.is_settled:
        return np.arange(relation.used, dtype=np.int32)
    return np.flatnonzero(levels_now(relation, slice(0, relation.used)) < ABSENT).astype(np.int32)


def rows_of_keys(relation: KernelRelation, columns: tuple[int, ...], wanted: Matrix) -> Vector:
    """The present rows that have one of some keys (distinct rows of a matrix) in some columns."""
    return rows_by_key(relation, columns, wanted)[1] if columns else present_now(relation)


def rows_by_key(relation: KernelRelation, columns: tuple[int, ...], wanted: Matrix) -> tuple[Vector, Vector]:
    """The present rows that have one of the wanted keys in some columns, each beside the place of its key among
    them."""
    index, home = relation.index(columns).home, relation.address
    relation.lay_out(with_table=False)
    slots: Vector = np.empty(len(wanted), np.int32)
    most = postings.find_keys(index, home, np.ascontiguousarray(wanted), _every(len(columns)), slots)
    found: Matrix = np.empty((2, most), np.int32)
    number = postings.rows_in_slots(index, home, slots, found)
    return found[0, :number], found[1, :number]


@cache
def _every(columns: int) -> Vector:
    return np.arange(columns)


def _levels(
    rule: AggregateRule, members: KernelRelation, rows: Vector | slice, results: Matrix, is_global: bool
) -> Vector:
    """The level of each result."""
    if not is_global:
        return np.ones(len(results), np.int32)
    levels = levels_now(members, rows) + 1
    if rule.groups == 0:
        return np.full(len(results), levels.max() if len(levels) else 1, np.int32)
    lookup = KernelRelation("", rule.groups, is_annotated=False)
    lookup.load(np.ascontiguousarray(results[:, : rule.groups]))
    highest = np.zeros(len(results), np.int32)
    np.maximum.at(highest, lookup.find(np.ascontiguousarray(members.rows[rows][:, : rule.groups])), levels)
    return highest


def number_all(
    rule: AggregateRule,
    members: Matrix,
    relations: MutableMapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
) -> None:
    """Fills the relation of numbers. What it holds already are numbers that were given before."""
    before = relations[rule.relation]
    facts = numbered(rule, members, before.rows[: before.used], relations, dictionary, program)
    target = relations[rule.relation] = KernelRelation(before.name, before.width, before.is_annotated)
    target.load(facts)
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
            words = relation.rows[present_now(relation), -1]
            if len(words):
                greatest = max(greatest, int(dictionary.integers(words).max()))
    return greatest + 1
