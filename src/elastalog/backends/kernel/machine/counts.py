"""What becomes of derivations in an update of the dense strategy: they move in the vectors of their heads, from the
level where they fired to the one where they fire (see `store.count_vectors`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, WORDS, np_int32, operator, types
from elastalog.backends.kernel.machine.arrays import counts_of, levels_of, rows_of, table_of, touched_of
from elastalog.backends.kernel.machine.layout import machine_at
from elastalog.backends.kernel.machine.queue import wait
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, FIXED, IS, LOST, PENDING, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import touch
from elastalog.backends.kernel.store.count_vectors import change, vectors_at
from elastalog.backends.kernel.store.set_table import add_row, find_row

MOST_STEPS = 2
"""A derivation moves from one count to another."""


@piece
def has_counts(head, rows, steps):  # type: ignore[no-untyped-def]
    """Whether the vectors of a head have room for so many rows, and for so many more steps."""
    vectors = vectors_at(head.vectors, 0)
    return (
        rows <= vectors.rows_room
        and vectors.nodes_used + steps <= vectors.nodes_room
        and vectors.logged + steps <= vectors.log_room
    )


@piece
def lose_counts(block, used, head):  # type: ignore[no-untyped-def]
    """Takes old derivations off the counts of their heads at the level where they fired; lists those whose first count
    reached 0."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    vectors = vectors_at(head.vectors, 0)
    for i in range(used):
        row = find_row(block, i, rows, table, head.shift)
        if row < 0:
            continue
        fires = block[i, width - 1] + np_int32(1)
        left = change(vectors, row, fires, np_int32(-1))
        value = level[row]
        if value < REFERENCE:
            if value != fires:
                continue
            touch(row, level, count[row], touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        if left != 0:
            continue
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        entry_of(touched, head.losses).losses = entry
        head.losses += 1


@piece
def gain_counts(block, used, relation, head, machine):  # type: ignore[no-untyped-def]
    """Moves derivations from the level where they fired before (if they did) to the one where they fire now; facts
    never seen get a row. Heads whose first level falls wait for it."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    vectors = vectors_at(head.vectors, 0)
    for i in range(used):
        fires = block[i, width - 2] + np_int32(1)
        before = block[i, width - 1]
        before = before + np_int32(1) if before < ABSENT else np_int32(ABSENT)
        if fires == before:
            continue
        row = find_row(block, i, rows, table, head.shift)
        if row < 0:
            add_row(block, i, -1 - row, rows, table, head.used)
            row = head.used
            level[row] = ABSENT
            count[row] = 0
            head.used += 1
        if before < ABSENT:
            change(vectors, row, before, np_int32(-1))
        change(vectors, row, fires, np_int32(1))
        value = level[row]
        if value < REFERENCE:
            if value < fires and value != before:
                continue
            touch(row, level, count[row], touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        if fact.marks & PENDING:
            best = fact.other
        else:
            best = fact.new if fact.marks & IS else np_int32(ABSENT)
        if fires < best:
            fact.marks |= PENDING
            fact.other = fires
            wait(machine, relation, entry, fires)


@operator(types.void, INT, INT, MATRIX, WORDS, WORDS)
def wait_for_levels(address, relation, touched, entries, levels):  # type: ignore[no-untyped-def]
    """Lost facts wait for the first level of what is left in their vectors (-1: nothing is)."""
    machine = machine_at(address, 0)
    for i in range(entries.shape[0]):
        if levels[i] >= 0:
            fact = entry_of(touched, entries[i])
            fact.other = levels[i]
            fact.marks |= PENDING
            wait(machine, relation, entries[i], levels[i])
