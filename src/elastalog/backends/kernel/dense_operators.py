"""Operators of the dense strategy: derivations move counts from level to level (see `vectors`)."""

from __future__ import annotations

from elastalog.backends.kernel.compiled import (
    INT,
    KEYS,
    MATRIX,
    STATE,
    WORDS,
    np_int32,
    operator,
    types,
)
from elastalog.backends.kernel.maintain import LISTED, TOUCHED, USED, find_row, touch
from elastalog.backends.kernel.marks import ABSENT, DELTA, FIXED, IS, LOST, MARKS, NEW, OLD, OTHER, PENDING, REFERENCE
from elastalog.backends.kernel.new_rows import add_row
from elastalog.backends.kernel.vectors import change


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, WORDS, MATRIX, WORDS, MATRIX, MATRIX, STATE, WORDS, STATE)
def apply_losses(  # type: ignore[no-untyped-def]
    block, used, rows, table, shift, level, count, touched, first, nodes, log, vectors, emptied, state
):
    """Takes old derivations off the counts of their heads at the level where they fired; lists the entries whose
    first count reached 0."""
    width = block.shape[1]
    touched_used = state[TOUCHED]
    listed = state[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, shift)
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
        emptied[listed] = entry
        listed += 1
    state[TOUCHED] = touched_used
    state[LISTED] = listed


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, WORDS, MATRIX, WORDS, MATRIX, MATRIX, STATE, WORDS, STATE)
def apply_gains(  # type: ignore[no-untyped-def]
    block, used, rows, table, shift, level, count, touched, first, nodes, log, vectors, pending, state
):
    """Moves derivations from the level where they fired before (if they did) to the one where they fire now; facts
    never seen get a row. Lists entries whose first level falls."""
    block_width = block.shape[1]
    rows_used = state[USED]
    touched_used = state[TOUCHED]
    listed = state[LISTED]
    for i in range(used):
        fires = block[i, block_width - 2] + np_int32(1)
        before = block[i, block_width - 1]
        before = before + np_int32(1) if before < ABSENT else np_int32(ABSENT)
        if fires == before:
            continue
        row = find_row(block, i, rows, table, shift)
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
            pending[listed] = entry
            listed += 1
    state[USED] = rows_used
    state[TOUCHED] = touched_used
    state[LISTED] = listed


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, WORDS, STATE)
def count_heads(block, used, rows, table, shift, hits, listed_rows, state):  # type: ignore[no-untyped-def]
    """Inserts heads and counts, for every row, how often it was met; lists each row that was met once."""
    rows_used = state[USED]
    listed = state[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, shift)
        if row < 0:
            add_row(block, i, -1 - row, rows, table, rows_used)
            row = rows_used
            hits[row] = 0
            rows_used += 1
        if hits[row] == 0:
            listed_rows[listed] = row
            listed += 1
        hits[row] += 1
    state[USED] = rows_used
    state[LISTED] = listed
