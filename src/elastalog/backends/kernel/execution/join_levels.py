"""The join of incremental evaluation: atoms see a view of their relation, and bindings carry levels (see
`level_views`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    LOW,
    flattened,
    group_of_keys,
    group_of_numbers,
    hash_columns,
    inlined,
    int64,
    np_int32,
    piece,
    prefetch,
    uint64,
)
from elastalog.backends.kernel.execution.join import MEMBER, block_of, copy_columns, fetch_keys, leave_off
from elastalog.backends.kernel.execution.level_views import is_seen, level_before, level_now, state_of
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA
from elastalog.backends.kernel.store.postings import EVERY, LENGTH, PLACE, find_slot_of, find_slots
from elastalog.backends.kernel.store.set_table import fetch_row, find_key_from, row_in

MOST_SKIPPED = 1 << 16
"""Rows that may be looked at in vain in one call, those of the last group of the left not counted."""

_AHEAD = 8
"""How many rows of a posting before it is needed memory is asked for."""


@inlined
def _note(out, filled, i, row):
    """A row of the left meets a fact: until `_put_noted`, that is in the words of their levels."""
    out[filled, out.shape[1] - 2] = i
    out[filled, out.shape[1] - 1] = row


@inlined
def _put_noted(left, goal, is_loss, start, stop):
    """Writes the bindings of the rows of the left and the facts that were noted, with the higher of their levels, now
    and before. Column by column: a loop over one needs few registers."""
    out = goal.out
    i_place = out.shape[1] - 2
    row_place = out.shape[1] - 1
    for c in range(goal.kept.columns.shape[0]):
        column = goal.kept.columns[c]
        place = goal.kept.places[c]
        for at in range(start, stop):
            out[at, place] = left[out[at, i_place], column]
    for c in range(goal.taken.columns.shape[0]):
        column = goal.taken.columns[c]
        place = goal.taken.places[c]
        for at in range(start, stop):
            out[at, place] = goal.facts.rows[out[at, row_place], column] if column >= 0 else out[at, row_place]
    for at in range(start, stop):
        _put_levels(left, out[at, i_place], goal, out[at, row_place], is_loss, at)


@inlined
def _put_levels(left, i, goal, row, is_loss, at):
    """The higher of the levels of a row of the left and of a fact, now and before."""
    now = level_now(goal.facts, row, is_loss, goal.is_flat)
    before = level_before(goal.facts, row, is_loss, goal.is_flat)
    goal.out[at, goal.out.shape[1] - 2] = max(left[i, left.shape[1] - 2], now)
    goal.out[at, goal.out.shape[1] - 1] = max(left[i, left.shape[1] - 1], before)


@inlined
def _put(left, i, goal, row, is_loss, at):
    """The bindings of a row of the left and a fact, with the higher of their levels."""
    copy_columns(left, i, np_int32(0), goal.kept, at)
    copy_columns(goal.facts.rows, row, row, goal.taken, at)
    _put_levels(left, i, goal, row, is_loss, at)


@inlined
def _put_absence(left, i, goal, marks, is_loss, at):
    """The bindings of a row of the left where a fact is absent, which has no level: its row has these marks, or it has
    none."""
    copy_columns(left, i, np_int32(0), goal.kept, at)
    was_there = not is_loss and marks & DELTA != 0  # and was so until the present delta
    before = left[i, left.shape[1] - 1]
    goal.out[at, goal.out.shape[1] - 2] = left[i, left.shape[1] - 2]
    goal.out[at, goal.out.shape[1] - 1] = np_int32(ABSENT) if was_there else before


@inlined
def _marks_of(goal, row):
    """The marks of a fact that was looked for; of one that the present round has brought the level is not known yet."""
    return state_of(goal.facts, row) if row >= 0 and (row < goal.limit or goal.is_negated) else int64(0)


@inlined
def _is_kept(goal, row, marks, seen):
    """Whether a row of the left that leads to a fact, with these marks, or to none (-1), leads to bindings."""
    is_seen = (seen >> marks) & 1 != 0
    return is_seen or row < 0 if goal.is_negated else is_seen and row >= 0 and row < goal.limit


@inlined
def _join_members(frame, goal, seen, is_loss):
    """`join_levels` by the set table, in groups: asks for where to look, then for what is found there, then it is
    there."""
    left = block_of(frame)
    stop = frame.end
    facts = goal.facts
    room = goal.out.shape[0]
    filled = int64(0)
    homes = group_of_keys()
    tags = group_of_keys()
    mask = uint64(facts.table.shape[0] - 1)
    i = frame.begun
    while i < stop and filled < room:
        first = filled
        size = min(GROUP, stop - i, room - filled)
        fetch_keys(left, i, size, goal, homes, tags)
        for g in range(size):
            homes[g] = fetch_row(facts, homes[g], tags[g])
            prefetch(facts.level, row_in(uint64(facts.table[homes[g]]), mask))
        for g in range(size):
            row = find_key_from(left, i + g, goal.key, facts, homes[g], tags[g])
            marks = _marks_of(goal, row)
            if _is_kept(goal, row, marks, seen):
                if goal.is_negated:
                    _put_absence(left, i + g, goal, marks, is_loss, filled)
                else:
                    _note(goal.out, filled, i + g, row)
                filled += 1
        if not goal.is_negated:
            _put_noted(left, goal, is_loss, first, filled)
        i += size
    leave_off(frame, i, 0)
    return filled


@inlined
def _fetch_rows(size, pool, facts, places, lengths):
    """Asks for the first rows that a group of keys leads to, and for their levels: where there are several, first for
    where they are listed."""
    for g in range(size):
        if lengths[g] == 1:
            fetch_fact(facts, places[g])
        elif lengths[g] > 1:
            prefetch(pool, places[g])
    for g in range(size):
        if lengths[g] > 1:
            for j in range(places[g], places[g] + min(lengths[g], _AHEAD)):
                fetch_fact(facts, int64(pool[j]))


@inlined
def fetch_fact(facts, row):
    """Asks for a row, and for its level."""
    prefetch(flattened(facts.rows), row * facts.rows.shape[1])
    prefetch(facts.level, row)


@inlined
def _join_postings(machine, frame, goal, seen, is_loss):
    """`join_levels` by an index, in groups, or with all rows of the relation."""
    left = block_of(frame)
    stop = frame.end
    facts = goal.facts
    index = goal.index
    slots = index.slots
    pool = index.pool
    is_every = index.kind == EVERY
    filled = int64(0)
    within = frame.within
    skipped = int64(0)
    room = goal.out.shape[0]
    places = group_of_numbers()
    lengths = group_of_numbers()
    is_full = False
    i = frame.begun
    while i < stop and not is_full and skipped <= MOST_SKIPPED:  # then the caller looks at limits
        first = filled
        size = int64(1) if is_every else min(GROUP, stop - i)
        places[0], lengths[0] = 0, goal.limit
        if not is_every:
            find_slots(left, i, size, goal.key, index, facts.rows, places)
            for g in range(size):
                slot = places[g]
                lengths[g] = int64(slots[slot, LENGTH]) if slot >= 0 else int64(0)
                places[g] = int64(slots[slot, PLACE]) if slot >= 0 else int64(0)
            _fetch_rows(size, pool, facts, places, lengths)
        for g in range(size):
            place = places[g]
            length = lengths[g]
            for j in range(within, length):
                row = place
                if is_every:
                    row = int64(j)
                elif length > 1:
                    row = int64(pool[place + j])
                    if j + _AHEAD < length:
                        fetch_fact(facts, int64(pool[place + j + _AHEAD]))
                if row >= goal.limit:
                    break
                if not is_seen(seen, facts, row):
                    skipped += 1
                elif filled < room:
                    _note(goal.out, filled, i + g, row)
                    filled += 1
                else:
                    is_full = True
                    within = j
                    break
            if is_full:
                size = g
                break
            within = int64(0)
        _put_noted(left, goal, is_loss, first, filled)
        i += size
    leave_off(frame, i, within)
    machine.work += skipped
    return filled


@piece
def join_levels(machine, frame, goal, seen, is_loss):
    """Joins like `join.join`, over the rows below the limit that are `seen`. By the set table, a negated goal keeps
    rows whose fact is not found, or found in a state that is seen. Rows that are not seen are work in vain; after many
    it returns before the block is full. A single row is better joined by `join_one`."""
    if goal.index.kind == MEMBER:
        return _join_members(frame, goal, seen, is_loss)
    return _join_postings(machine, frame, goal, seen, is_loss)


@piece
def join_one(machine, frame, goal, seen, is_loss):
    """Joins the first row that is left, like `join_levels`."""
    left = block_of(frame)
    at = frame.begun
    facts = goal.facts
    index = goal.index
    filled = int64(0)
    if index.kind == MEMBER:
        value = hash_columns(left, at, goal.key)
        row = find_key_from(left, at, goal.key, facts, value >> uint64(facts.shift), value & LOW)
        marks = _marks_of(goal, row)
        if _is_kept(goal, row, marks, seen):
            if goal.is_negated:
                _put_absence(left, at, goal, marks, is_loss, filled)
            else:
                _put(left, at, goal, row, is_loss, filled)
            filled += 1
        leave_off(frame, at + 1, 0)
        return filled
    place = int64(0)
    length = int64(goal.limit)
    if index.kind != EVERY:
        slot = find_slot_of(left, at, goal.key, index, facts.rows)
        place = int64(index.slots[slot, PLACE]) if slot >= 0 else int64(0)
        length = int64(index.slots[slot, LENGTH]) if slot >= 0 else int64(0)
    for j in range(frame.within, length):
        row = place
        if index.kind == EVERY:
            row = int64(j)
        elif length > 1:
            row = int64(index.pool[place + j])
        if row >= goal.limit:
            break
        if not is_seen(seen, facts, row):
            machine.work += 1
        elif filled < goal.out.shape[0]:
            _put(left, at, goal, row, is_loss, filled)
            filled += 1
        else:
            leave_off(frame, at, j)
            return filled
    leave_off(frame, at + 1, 0)
    return filled
