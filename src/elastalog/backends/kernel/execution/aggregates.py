"""Aggregates in the kernel: folding all groups at bootstrap, and only the groups with changed members in an update.

The fact of a group has level 1, or with global levels 1 + the highest level of its members, and count 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.execution import join as join_operators
from elastalog.backends.kernel.execution.bound_variant import BLOCK
from elastalog.backends.kernel.expressions.folds import fold
from elastalog.backends.kernel.store import bookkeeping, transaction
from elastalog.backends.kernel.store.annotations import ABSENT, ROW
from elastalog.backends.kernel.store.memory import NO_KEYS, NO_MATRIX, NO_WORDS, Matrix, Vector, state_vector
from elastalog.backends.kernel.store.postings import EVERY
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now, note_levels
from elastalog.backends.kernel.store.set_table import FILLED, NEXT
from elastalog.planning.logical import AggregateRule, LogicalProgram
from elastalog.planning.steps import ROW as ROW_NUMBER
from elastalog.relations.words import Dictionary

_ONE_GROUP: Matrix = np.zeros((1, 1), np.int32)


def evaluate(
    rule: AggregateRule,
    relations: Mapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
    is_global: bool,
) -> None:
    """Fills the aggregate's relation, which is empty."""
    members = relations[rule.members]
    rows = present_now(members)
    results = fold(rule, members.rows[rows], dictionary, program.checked.source)
    target = relations[rule.relation]
    target.load(results)
    if target.is_annotated:
        target.level[: target.used] = _levels(rule, members, rows, results, is_global)
        note_levels(target)


def refold(
    rule: AggregateRule,
    changed: Vector,
    relations: Mapping[str, KernelRelation],
    dictionary: Dictionary,
    program: LogicalProgram,
    is_global: bool,
) -> Vector:
    """Folds the groups of changed members again. Returns the entries of the aggregate's relation that changed."""
    members, target = relations[rule.members], relations[rule.relation]
    columns = tuple(range(rule.groups))
    groups = members.rows[members.touched[changed, ROW]][:, : rule.groups]
    groups = np.ascontiguousarray(np.unique(groups, axis=0)) if rule.groups else _ONE_GROUP
    rows = rows_of_keys(members, columns, groups)
    results = fold(rule, members.rows[rows], dictionary, program.checked.source)
    levels = _levels(rule, members, rows, results, is_global)

    old_rows = rows_of_keys(target, columns, groups)
    new_rows = transaction.add_rows(target, results) if len(results) else NO_WORDS
    gone = transaction.touch(target, np.setdiff1d(old_rows, new_rows).astype(np.int32))
    transaction.set_annotation(target, gone, 0, is_present=False)
    before = levels_now(target, new_rows)
    is_other = before != levels
    came = transaction.touch(target, new_rows[is_other])
    transaction.set_annotation(target, came, levels[is_other], is_present=True)
    entries = np.empty(target.touched_used, np.int32)
    number = bookkeeping.finish(target.touched, target.touched_used, is_global, entries)
    return entries[:number]


def present_now(relation: KernelRelation) -> Vector:
    """The rows present in the state under way."""
    if relation.is_settled:
        return np.arange(relation.used, dtype=np.int32)
    return np.flatnonzero(levels_now(relation, slice(0, relation.used)) < ABSENT).astype(np.int32)


def rows_of_keys(relation: KernelRelation, columns: tuple[int, ...], wanted: Matrix) -> Vector:
    """The present rows that have one of some keys (distinct rows of a matrix) in some columns."""
    every, indexed = np.arange(len(columns)), np.array(columns, np.int64)
    take, place = np.array([ROW_NUMBER]), np.array([0])
    nothing = np.empty(0, np.int64)
    out = np.empty((BLOCK, 1), np.int32)
    state = state_vector()
    kind, keys, shift, slots, pool = EVERY, NO_KEYS, 0, NO_MATRIX, NO_WORDS
    if columns:
        index = relation.index(columns)
        kind, keys, shift, slots, pool = index.kind, index.keys, index.shift, index.slots, index.pool
    found: list[Vector] = []
    start = 0
    while start < len(wanted):
        state[FILLED] = 0
        join_operators.join(
            wanted, start, len(wanted), every, kind, keys, shift, slots, pool, relation.rows, indexed, relation.used,
            not relation.is_settled, relation.level, relation.touched, nothing, nothing, take, place, out,
            state,
        )  # fmt: skip
        start = int(state[NEXT])
        found.append(out[: int(state[FILLED]), 0].copy())
    return np.concatenate(found) if found else NO_WORDS


def _levels(rule: AggregateRule, members: KernelRelation, rows: Vector, results: Matrix, is_global: bool) -> Vector:
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
