"""What becomes of derivations in an update of the dense strategy: they move in the vectors of their heads, from the
level where they fired to the one where they fire (see `vectors`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, WORDS, np_int32, operator, types
from elastalog.backends.kernel.machine.layout import (
    COUNTS,
    LEVEL,
    LISTED,
    ROOM,
    ROWS,
    SHIFT,
    TABLE_AT,
    TABLE_SIZE,
    TOUCHED,
    TOUCHED_ROOM,
    TOUCHED_USED,
    USED,
    VECTORS,
    WIDTH,
)
from elastalog.backends.kernel.machine.queue import wait
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    DELTA,
    FIXED,
    IS,
    LOSSES,
    LOST,
    MARKS,
    NEW,
    OLD,
    OTHER,
    PENDING,
    REFERENCE,
    TOUCHED_WIDTH,
)
from elastalog.backends.kernel.store.bookkeeping import find_row, touch
from elastalog.backends.kernel.store.count_vectors import (
    FIRST_AT,
    FIRST_SIZE,
    LOG_AT,
    LOG_ROOM,
    LOGGED,
    NODE_WIDTH,
    NODES,
    NODES_AT,
    NODES_ROOM,
    STATE_SIZE,
    STEP_WIDTH,
    change,
)
from elastalog.backends.kernel.store.set_table import add_row

MOST_STEPS = 2
"""A derivation moves from one count to another."""


@piece
def has_counts(head, rows, steps):  # type: ignore[no-untyped-def]
    """Whether the vectors of a head have room for so many rows, and for so many more steps."""
    vectors = numbers_at(head[VECTORS], STATE_SIZE)
    return (
        rows <= vectors[FIRST_SIZE]
        and vectors[NODES] + steps <= vectors[NODES_ROOM]
        and vectors[LOGGED] + steps <= vectors[LOG_ROOM]
    )


@piece
def lose_counts(block, used, head):  # type: ignore[no-untyped-def]
    """Takes old derivations off the counts of their heads at the level where they fired; lists those whose first count
    reached 0."""
    width = block.shape[1]
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    vectors = numbers_at(head[VECTORS], STATE_SIZE)
    first = words_at(vectors[FIRST_AT], vectors[FIRST_SIZE])
    nodes = matrix_at(vectors[NODES_AT], vectors[NODES_ROOM], NODE_WIDTH)
    log = matrix_at(vectors[LOG_AT], vectors[LOG_ROOM], STEP_WIDTH)
    touched_used = head[TOUCHED_USED]
    listed = head[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, head[SHIFT])
        if row < 0:
            continue
        fires = block[i, width - 1] + np_int32(1)
        left = change(row, fires, np_int32(-1), first, nodes, log, vectors)
        value = level[row]
        if value < REFERENCE:
            if value != fires:
                continue
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        if left != 0:
            continue
        entry = level[row] - REFERENCE
        if touched[entry, MARKS] & (LOST | DELTA | FIXED) or touched[entry, OLD] != fires:
            continue
        touched[listed, LOSSES] = entry
        listed += 1
    head[TOUCHED_USED] = touched_used
    head[LISTED] = listed


@piece
def gain_counts(block, used, relation, head, state, queue, waiting, heap):  # type: ignore[no-untyped-def]
    """Moves derivations from the level where they fired before (if they did) to the one where they fire now; facts
    never seen get a row. Heads whose first level falls wait for it."""
    block_width = block.shape[1]
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    vectors = numbers_at(head[VECTORS], STATE_SIZE)
    first = words_at(vectors[FIRST_AT], vectors[FIRST_SIZE])
    nodes = matrix_at(vectors[NODES_AT], vectors[NODES_ROOM], NODE_WIDTH)
    log = matrix_at(vectors[LOG_AT], vectors[LOG_ROOM], STEP_WIDTH)
    rows_used = head[USED]
    touched_used = head[TOUCHED_USED]
    for i in range(used):
        fires = block[i, block_width - 2] + np_int32(1)
        before = block[i, block_width - 1]
        before = before + np_int32(1) if before < ABSENT else np_int32(ABSENT)
        if fires == before:
            continue
        row = find_row(block, i, rows, table, head[SHIFT])
        if row < 0:
            add_row(block, i, -1 - row, rows, table, rows_used)
            row = rows_used
            level[row] = ABSENT
            count[row] = 0
            rows_used += 1
        if before < ABSENT:
            change(row, before, np_int32(-1), first, nodes, log, vectors)
        change(row, fires, np_int32(1), first, nodes, log, vectors)
        value = level[row]
        if value < REFERENCE:
            if value < fires and value != before:
                continue
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        entry = level[row] - REFERENCE
        marks = touched[entry, MARKS]
        if marks & PENDING:
            best = touched[entry, OTHER]
        else:
            best = touched[entry, NEW] if marks & IS else np_int32(ABSENT)
        if fires < best:
            touched[entry, MARKS] = marks | PENDING
            touched[entry, OTHER] = fires
            wait(state, queue, waiting, heap, relation, entry, fires)
    head[USED] = rows_used
    head[TOUCHED_USED] = touched_used


@operator(types.void, WORDS, WORDS, INT, MATRIX, STATE, MATRIX, WORDS, WORDS)
def wait_for_levels(entries, levels, relation, touched, state, queue, waiting, heap):  # type: ignore[no-untyped-def]
    """Lost facts wait for the first level of what is left in their vectors (-1: nothing is)."""
    for i in range(entries.shape[0]):
        if levels[i] >= 0:
            touched[entries[i], OTHER] = levels[i]
            touched[entries[i], MARKS] |= PENDING
            wait(state, queue, waiting, heap, relation, entries[i], levels[i])
