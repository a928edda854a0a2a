"""Operators of the strategies that maintain sets. The annotations of a row mean something else there than in `marks`:

- `count` is C_nr, where it is kept, otherwise 1;
- `level` is 2 · C_r (0 where C_r is not kept), + 1 unless the fact is explicit.

OTHER of a touched entry is the number of the last evaluation that listed it, so that every head is listed once an
evaluation. The caller makes room first: one more row, touched entry and list entry for each row of a block suffice.
"""

from __future__ import annotations

from elastalog.backends.kernel.compiled import (
    FLAG,
    HALF,
    INT,
    KEYS,
    LOW,
    MATRIX,
    STATE,
    WORDS,
    hash_row,
    inlined,
    int64,
    np_int32,
    operator,
    types,
    uint64,
)
from elastalog.backends.kernel.maintain import LISTED, TOUCHED, USED, find_row
from elastalog.backends.kernel.marks import ABSENT, COUNT, IS, MARKS, NEW, OLD, OTHER, REFERENCE, ROW, UNTOUCHED, WAS

DERIVED = 1
"""The lowest bit of `level`: the fact is not explicit."""

RECURSIVE = 2
"""What one derivation by a recursive rule adds to `level`."""


@inlined
def touch(row, level, count, touched, used):  # type: ignore[no-untyped-def]
    """Makes a touched entry for a row that has none; the counters of an absent fact are 0."""
    value = level[row]
    is_present = value < ABSENT
    touched[used, ROW] = row
    touched[used, OLD] = value
    touched[used, NEW] = value if is_present else np_int32(DERIVED)
    touched[used, OTHER] = 0
    touched[used, COUNT] = count[row] if is_present else np_int32(0)
    touched[used, MARKS] = UNTOUCHED if is_present else 0
    level[row] = REFERENCE + used


@operator(types.void, WORDS, WORDS, WORDS, MATRIX, WORDS, STATE)
def touch_rows(wanted, level, count, touched, entries, state):  # type: ignore[no-untyped-def]
    """The touched entry of each of some rows, made where there is none."""
    used = state[TOUCHED]
    for i in range(wanted.shape[0]):
        row = wanted[i]
        if level[row] < REFERENCE:
            touch(row, level, count, touched, used)
            used += 1
        entries[i] = level[row] - REFERENCE
    state[TOUCHED] = used


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, WORDS, MATRIX, INT, INT, FLAG, INT, WORDS, STATE)
def apply_heads(  # type: ignore[no-untyped-def]
    block, used, rows, table, shift, level, count, touched, column, step, is_new, stamp, listed_entries, state
):
    """Adds `step` to a column of each head's entry (none if the column is negative) and lists each head once. With
    `is_new`, facts never seen get a row, and present heads that nothing touched are passed over unless counted."""
    width = rows.shape[1]
    rows_used = state[USED]
    touched_used = state[TOUCHED]
    listed = state[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, shift)
        if row < 0:
            if not is_new:
                continue
            slot = -1 - row
            row = rows_used
            tag = hash_row(block, i, width) & LOW
            table[slot] = (tag << HALF) | uint64(row + 1)
            for c in range(width):
                rows[row, c] = block[i, c]
            level[row] = ABSENT
            count[row] = 0
            rows_used += 1
        value = level[row]
        if value < REFERENCE:
            if is_new and column < 0 and value < ABSENT:
                continue
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        entry = level[row] - REFERENCE
        if column >= 0:
            touched[entry, column] += np_int32(step)
        if touched[entry, OTHER] != stamp:
            touched[entry, OTHER] = np_int32(stamp)
            listed_entries[listed] = entry
            listed += 1
    state[USED] = rows_used
    state[TOUCHED] = touched_used
    state[LISTED] = listed


@operator(types.void, MATRIX, INT, MATRIX, INT, WORDS, STATE)
def list_entries(block, used, touched, stamp, listed_entries, state):  # type: ignore[no-untyped-def]
    """Lists the entries in word 0 of a block, each once."""
    listed = state[LISTED]
    for i in range(used):
        entry = int64(block[i, 0])
        if touched[entry, OTHER] != stamp:
            touched[entry, OTHER] = np_int32(stamp)
            listed_entries[listed] = entry
            listed += 1
    state[LISTED] = listed


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, MATRIX, INT, INT, WORDS, STATE)
def list_wanted(  # type: ignore[no-untyped-def]
    block, used, rows, table, shift, level, touched, wanted, stamp, listed_entries, state
):
    """Lists, each once, the heads that the evaluation number `wanted` listed last."""
    listed = state[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, shift)
        if row < 0 or level[row] < REFERENCE:
            continue
        entry = level[row] - REFERENCE
        if touched[entry, OTHER] == wanted:
            touched[entry, OTHER] = np_int32(stamp)
            listed_entries[listed] = entry
            listed += 1
    state[LISTED] = listed


@operator(types.void, MATRIX, INT, INT, WORDS, WORDS, MATRIX, INT, WORDS, STATE)
def list_rows(block, used, word, level, count, touched, stamp, listed_entries, state):  # type: ignore[no-untyped-def]
    """Touches the rows in one word of a block and lists their entries, each once."""
    touched_used = state[TOUCHED]
    listed = state[LISTED]
    for i in range(used):
        row = int64(block[i, word])
        if level[row] < REFERENCE:
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        entry = level[row] - REFERENCE
        if touched[entry, OTHER] != stamp:
            touched[entry, OTHER] = np_int32(stamp)
            listed_entries[listed] = entry
            listed += 1
    state[TOUCHED] = touched_used
    state[LISTED] = listed


@operator(INT, MATRIX, INT, FLAG, FLAG, WORDS, STATE)
def finish(touched, used, has_nonrecursive, has_recursive, changed, state):  # type: ignore[no-untyped-def]
    """Ends the update of a relation's stratum: keeps only WAS and IS, lists the entries whose membership changed.
    Returns how many facts have counters that cannot be: negative, or positive though absent, or none though present."""
    faults = 0
    listed = 0
    for entry in range(used):
        marks = touched[entry, MARKS] & (WAS | IS)
        touched[entry, MARKS] = marks
        is_present = marks & IS != 0
        of_nonrecursive = touched[entry, COUNT]
        of_recursive = touched[entry, NEW] >> 1
        if (has_nonrecursive and (of_nonrecursive < 0 or (not is_present and of_nonrecursive > 0))) or (
            has_recursive
            and (
                of_recursive < 0
                or touched[entry, NEW] >= ABSENT
                or (not is_present and of_recursive > 0)
                or (is_present and of_recursive + of_nonrecursive == 0)
            )
        ):
            faults += 1
        if not is_present:
            touched[entry, NEW] = ABSENT
            touched[entry, COUNT] = 0
        touched[entry, OTHER] = ABSENT
        if (marks & WAS != 0) != is_present:
            changed[listed] = entry
            listed += 1
    state[LISTED] = listed
    return faults
