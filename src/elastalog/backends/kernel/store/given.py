"""Facts by their words: which of them there are, and what explicit ones mean where a relation has no rules."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.addresses import matrix_at, piece, table_at, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, operator, types
from elastalog.backends.kernel.store.annotations import ABSENT, REFERENCE, TOUCHED_WIDTH, entry_of
from elastalog.backends.kernel.store.bookkeeping import set_explicit, touch
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import find_row
from elastalog.backends.kernel.store.whereabouts import whereabouts_at


@operator(types.void, INT, MATRIX, INT, types.Array(types.boolean, 1))
def _find_below(address, facts, above, found):  # type: ignore[no-untyped-def]
    """Which facts are there at a level below one; without annotations, which are there."""
    home = whereabouts_at(address, 0)
    rows = matrix_at(home.rows, home.room, home.width)
    table = table_at(home.table, home.table_size)
    level = words_at(home.level, home.room)
    for i in range(facts.shape[0]):
        row = find_row(facts, i, rows, table, home.shift)
        found[i] = row >= 0 and (home.is_annotated == 0 or level[row] < above)


@piece
def change_facts(home, facts, is_present):  # type: ignore[no-untyped-def]
    """Explicit facts of a relation without rules come, or go, and need nothing more. Returns how many have no row, or
    no room for an entry: then nothing was done."""
    rows = matrix_at(home.rows, home.room, home.width)
    table = table_at(home.table, home.table_size)
    level = words_at(home.level, home.room)
    count = words_at(home.count, home.room)
    touched = matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH)
    lacking = max(home.touched_used + facts.shape[0] - home.touched_room, 0)
    for i in range(facts.shape[0]):
        if find_row(facts, i, rows, table, home.shift) < 0:
            lacking += 1
    if lacking > 0:
        return lacking
    for i in range(facts.shape[0]):
        row = find_row(facts, i, rows, table, home.shift)
        if level[row] < REFERENCE:
            touch(row, level, count[row], touched, home.touched_used, ABSENT, ABSENT)
            home.touched_used += 1
        set_explicit(entry_of(touched, level[row] - REFERENCE), is_present)
    return lacking


def are_below(relation: KernelRelation, facts: Matrix, level: int = ABSENT) -> Vector:
    """Which facts are there at a level below one, outside an update; explicit ones are below 1 where levels are
    kept."""
    found: Vector = np.empty(len(facts), np.bool_)
    if relation.stamp != relation.laid_out:
        relation.lay_out()
    _find_below(relation.address, np.ascontiguousarray(facts, np.int32), level, found)
    return found
