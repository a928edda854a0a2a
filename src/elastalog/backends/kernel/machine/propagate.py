"""Rounds of the strategies that maintain sets, in compiled code: what follows from a delta is found, some of it is the
next delta, and so on to the end.

Deletions along a chain are thousands of rounds of a handful of facts. The machine runs them without returning, except
where that of updates does. The deltas are one list a relation, DELTAS of the touched table, of which rows [FROM, TO)
are the present one; the heads of a round are nodes.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import GROUP, INT, MATRIX, STATE, WORDS, int64, operator
from elastalog.backends.kernel.machine.layout import (
    AT,
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    CHECK,
    CLOSING,
    COUNTS,
    DEPTH,
    DERIVED,
    DONE,
    END,
    FROM,
    FULL,
    HEAD,
    INDEXES,
    LEVEL,
    NO_INDEX,
    NO_NODES,
    NO_ROOM,
    NODE_ENTRY,
    NODE_RELATION,
    NODES,
    PHASE,
    RELATION,
    ROOM,
    ROWS,
    SHIFT,
    STAGE,
    START,
    START_TAKE,
    START_TAKEN,
    START_WIDTH,
    TABLE,
    TABLE_AT,
    TABLE_SIZE,
    TO,
    TOUCHED,
    TOUCHED_ROOM,
    TOUCHED_USED,
    USED,
    USUAL,
    VARIANT,
    VARIANTS,
    WIDTH,
    WORK,
    WORK_ALLOWED,
)
from elastalog.backends.kernel.machine.level_probe import probe_levels
from elastalog.backends.kernel.machine.steps import extend_indexes
from elastalog.backends.kernel.machine.variants import begin_variant, runner
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    DELTAS,
    MARKS,
    OTHER,
    REFERENCE,
    ROW,
    TOUCHED_WIDTH,
)
from elastalog.backends.kernel.store.bookkeeping import fetch, find_row, touch_counters
from elastalog.backends.kernel.store.set_table import add_row

# What is done with heads: fields of the vector `how`.
(
    COLUMN, STEP_BY, IS_NEW, STAMP,  # as in `set_operators.apply_heads`
    LOOKED_AT, WANTED, IS_UNSUPPORTED,  # the next delta: heads with these marks, only without C_nr
    ADDED_MARKS, REMOVED_MARKS,  # when a fact enters the delta, and when it leaves it
) = range(9)  # fmt: skip
HOW_SIZE = 9


@piece
def gather_delta(state, relations, variant, code, frames):  # type: ignore[no-untyped-def]
    """Fills the first block with the next facts of the delta; column -1 is the entry."""
    relation = relations[code[variant + START]]
    touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    width = code[variant + START_WIDTH]
    out = matrix_at(frames[0, USUAL], BLOCK, width)
    take = code[code[variant + START_TAKE] :]
    taken = code[variant + START_TAKEN]
    first = state[AT]
    filled = min(relation[TO] - first, BLOCK)
    for i in range(filled):
        entry = touched[first + i, DELTAS]
        row = int64(touched[entry, ROW])
        for c in range(taken):
            source = take[c]
            out[i, take[taken + c]] = rows[row, source] if source >= 0 else entry
        out[i, width - 2] = 0
        out[i, width - 1] = 0
    state[AT] = first + filled
    return filled


@piece
def probe_seen(state, relations, indexes, probe, code, frames, depth, width):  # type: ignore[no-untyped-def]
    """Joins what is left of a step's block with the relation of the next step, until the next block is full."""
    limit = relations[code[probe + RELATION], USED]
    return probe_levels(state, relations, indexes, probe, code, frames, depth, width, state[PHASE], limit)


@piece
def _sink(state, relations, variant, code, frames, width, nodes, waiting, how):  # type: ignore[no-untyped-def]
    """Applies the last block to its heads and lists each head once a round, or says what is missing for that."""
    depth = state[DEPTH]
    used = frames[depth, END]
    number = code[variant + HEAD]
    head = relations[number]
    state[FULL] = number
    if head[TOUCHED_USED] + used > head[TOUCHED_ROOM] or (how[IS_NEW] and head[USED] + used > head[ROOM]):
        return NO_ROOM
    if state[NODES] + used > nodes.shape[0]:
        return NO_NODES
    block = matrix_at(frames[depth, BLOCK_AT], frames[depth, BLOCK_ROWS], width)
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    column = how[COLUMN]
    listed = state[NODES]
    for start in range(0, used, GROUP):
        stop = min(start + GROUP, used)
        fetch(block, start, stop, rows, table, head[SHIFT], level)
        for i in range(start, stop):
            row = find_row(block, i, rows, table, head[SHIFT])
            if row < 0:
                if not how[IS_NEW]:
                    continue
                add_row(block, i, -1 - row, rows, table, head[USED])
                row = head[USED]
                level[row] = ABSENT
                count[row] = 0
                head[USED] += 1
            value = level[row]
            if value < REFERENCE:
                if how[IS_NEW] and column < 0 and value < ABSENT:
                    continue
                touch_counters(row, level, count, touched, head[TOUCHED_USED])
                head[TOUCHED_USED] += 1
            entry = level[row] - REFERENCE
            if column >= 0:
                touched[entry, column] += how[STEP_BY]
            if touched[entry, OTHER] != how[STAMP]:
                touched[entry, OTHER] = how[STAMP]
                nodes[listed, NODE_RELATION] = number
                nodes[listed, NODE_ENTRY] = entry
                listed += 1
    state[NODES] = listed
    state[DERIVED] += used
    frames[depth, BEGUN] = used
    return DONE


_run = runner(gather_delta, probe_seen, _sink)


@piece
def _close(state, relations, nodes, how):  # type: ignore[no-untyped-def]
    """The delta is over; the heads found that are wanted are the next one. Whether there are any."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            touched[touched[at, DELTAS], MARKS] &= ~(DELTA | how[REMOVED_MARKS])
        relation[FROM] = relation[TO]
    is_more = False
    for node in range(state[NODES]):
        relation = relations[nodes[node, NODE_RELATION]]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entry = nodes[node, NODE_ENTRY]
        marks = touched[entry, MARKS]
        if marks & how[LOOKED_AT] == how[WANTED] and not (how[IS_UNSUPPORTED] and touched[entry, COUNT] != 0):
            touched[entry, MARKS] = marks | DELTA | how[ADDED_MARKS]
            touched[relation[TO], DELTAS] = entry
            relation[TO] += 1
            is_more = True
    state[NODES] = 0
    how[STAMP] += 1
    return is_more


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, MATRIX, WORDS, WORDS)
def propagate(state, relations, indexes, variants, code, frames, nodes, waiting, how):  # type: ignore[no-untyped-def]
    """Runs round after round; returns why it stops. `waiting` is not used: the machines' steps are called alike."""
    while True:
        if state[STAGE] == INDEXES:
            if how[IS_NEW] and not extend_indexes(state, relations, indexes):
                return NO_INDEX
            state[STAGE] = VARIANTS
            state[VARIANT] = 0
            state[AT] = -1
        if state[STAGE] == VARIANTS:
            while state[VARIANT] < variants.shape[0]:
                variant = variants[state[VARIANT]]
                if state[AT] < 0:
                    relation = relations[code[variant + START]]
                    if relation[FROM] >= relation[TO]:
                        state[VARIANT] += 1
                        continue
                    begin_variant(state, relations, variant, code, frames)
                reason = _run(state, relations, indexes, variant, code, frames, nodes, waiting, how)
                if reason != DONE:
                    return reason
                state[VARIANT] += 1
                state[AT] = -1
            state[STAGE] = CLOSING
        state[STAGE] = INDEXES
        state[WORK] += 1
        if not _close(state, relations, nodes, how):
            return DONE
        if state[WORK] > state[WORK_ALLOWED]:
            return CHECK
