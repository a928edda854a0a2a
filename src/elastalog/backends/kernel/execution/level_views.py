"""What a view sees of facts: their marks and levels, now and before, and facts as rows of bindings that carry them.

The last two words of every row of bindings are the highest level of the body so far, now and before. "Before" is the
previous epoch while losses are propagated; while gains are, it is the moment before the present delta settled. A fact
that was not there has level ABSENT.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FLAG,
    INT,
    MATRIX,
    STATE,
    WORDS,
    inlined,
    int64,
    np_int32,
    operator,
    types,
)
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, REFERENCE, UNTOUCHED, entry_of
from elastalog.backends.kernel.store.set_table import FILLED, NEXT

LEVELS = 2
"""Words that every row of bindings carries behind its slots."""


@inlined
def state_of(level, touched, row):
    """The marks of a row."""
    value = level[row]
    if value >= REFERENCE:
        return int64(entry_of(touched, value - REFERENCE).marks)
    return int64(UNTOUCHED) if value < ABSENT else int64(0)


@inlined
def is_seen(view, level, touched, row):
    """Whether a view sees a row."""
    return (view >> state_of(level, touched, row)) & 1 != 0


@inlined
def level_now(level, touched, row, is_loss, is_flat):
    if is_flat:
        return np_int32(0)
    value = level[row]
    if value >= REFERENCE:
        return entry_now(entry_of(touched, value - REFERENCE), is_loss, is_flat)
    return value


@inlined
def level_before(level, touched, row, is_loss, is_flat):
    value = level[row]
    if value >= REFERENCE:
        return entry_before(entry_of(touched, value - REFERENCE), is_loss, is_flat)
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def entry_now(fact, is_loss, is_flat):
    if is_flat:
        return np_int32(0)
    return fact.old if is_loss else fact.new


@inlined
def entry_before(fact, is_loss, is_flat):
    if is_loss:
        value = fact.old
    elif fact.marks & DELTA:
        value = fact.other
    else:
        value = fact.new
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def copy_columns(rows, row, number, take, place, out, i):
    """Copies columns of a row, of a relation or of bindings, to a row of bindings; column -1 is a number."""
    for c in range(take.shape[0]):
        out[i, place[c]] = rows[row, take[c]] if take[c] >= 0 else number


@inlined
def copy_fact(rows, row, level, touched, is_loss, is_flat, take, place, out, i):
    """Copies words of a fact, and its levels; column -1 is the row."""
    copy_columns(rows, row, row, take, place, out, i)
    width = out.shape[1]
    out[i, width - 2] = level_now(level, touched, row, is_loss, is_flat)
    out[i, width - 1] = level_before(level, touched, row, is_loss, is_flat)


@inlined
def copy_entry(rows, fact, is_loss, is_flat, take, place, out, i):
    """Copies words and levels of a touched fact, whose entry is at hand."""
    copy_columns(rows, int64(fact.row), int64(fact.row), take, place, out, i)
    width = out.shape[1]
    out[i, width - 2] = entry_now(fact, is_loss, is_flat)
    out[i, width - 1] = entry_before(fact, is_loss, is_flat)


@operator(types.void, WORDS, INT, INT, MATRIX, MATRIX, INT, FLAG, FLAG, FLAG, COLUMNS, COLUMNS, MATRIX, STATE)
def gather_entries(entries, start, stop, rows, touched, view, is_loss, is_flat, is_negated, take, place, out, state):
    """Copies columns of the rows of touched entries that are in the view, with their levels."""
    filled = state[FILLED]
    width = out.shape[1]
    for i in range(start, stop):
        fact = entry_of(touched, entries[i])
        if not (view >> int64(fact.marks)) & 1:
            continue
        copy_entry(rows, fact, is_loss, is_flat, take, place, out, filled)
        if is_negated:
            out[filled, width - 2] = 0
            out[filled, width - 1] = 0 if is_loss else ABSENT
        filled += 1
    state[FILLED] = filled


@operator(types.void, WORDS, INT, INT, MATRIX, MATRIX, COLUMNS, COLUMNS, MATRIX)
def gather_heads(entries, start, stop, rows, touched, take, place, out):
    """Copies columns of the rows of touched entries as heads of backward evaluation: column -1 is the entry, levels are
    0."""
    width = out.shape[1]
    for i in range(start, stop):
        entry = entries[i]
        row = int64(entry_of(touched, entry).row)
        copy_columns(rows, row, entry, take, place, out, i - start)
        out[i - start, width - 2] = 0
        out[i - start, width - 1] = 0


@operator(types.void, MATRIX, INT, INT, WORDS, MATRIX, FLAG, COLUMNS, COLUMNS, MATRIX, STATE)
def gather_levels(rows, start, stop, level, touched, is_flat, take, place, out, state):
    """Copies columns of the present rows in [start, stop), with their levels."""
    filled = int64(0)
    room = out.shape[0]
    width = out.shape[1]
    i = start
    while i < stop and filled < room:
        now = level_now(level, touched, i, False, False)
        if now < ABSENT:
            copy_columns(rows, i, i, take, place, out, filled)
            if is_flat:
                now = np_int32(0)
            out[filled, width - 2] = now
            out[filled, width - 1] = now
            filled += 1
        i += 1
    state[NEXT] = i
    state[FILLED] = filled
