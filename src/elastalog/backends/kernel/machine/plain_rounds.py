"""Rounds of backward/forward checking in which nothing can be proved, in compiled code.

Facts are deleted along a chain, one or a few a round: each lost its last derivation with the one before. A round is
*plain* if no fact that is questioned has support or is delayed, and all facts of the stratum that its derivations need
have been checked: then all of them go. The machine runs plain rounds without returning, and leaves off before one that
is not (LARGE). A round has two halves: the heads of the delta are found, of which those that may go are the candidates;
then derivations of the candidates are looked for. Deltas and candidates lie in DELTAS of the touched table.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, WORDS, np_int32, operator
from elastalog.backends.kernel.machine.layout import (
    AT,
    BEGUN,
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
    LARGE,
    LEVEL,
    NO_NODES,
    NO_ROOM,
    NODE_ENTRY,
    NODE_RELATION,
    NODES,
    ROOM,
    ROWS,
    SHIFT,
    STAGE,
    START,
    TABLE,
    TABLE_AT,
    TABLE_SIZE,
    TO,
    TOUCHED,
    TOUCHED_ROOM,
    TOUCHED_USED,
    VARIANT,
    VARIANTS,
    WIDTH,
    WORK,
    WORK_ALLOWED,
)
from elastalog.backends.kernel.machine.propagate import gather_delta, probe_seen
from elastalog.backends.kernel.machine.variants import begin_variant, runner
from elastalog.backends.kernel.store.annotations import COUNT, DELTA, DELTAS, IS, MARKS, OTHER, REFERENCE, TOUCHED_WIDTH
from elastalog.backends.kernel.store.bookkeeping import find_row, touch_counters

CHECKED, PROVED, DELAYED = 8, 16, 32
"""Marks, as in `backends.sets`."""

# Fields of the vector `how`.
STAMP, IS_BACKWARD_HALF, IS_OPEN, FORWARD, SCANS, DELETIONS = range(6)
HOW_SIZE = 6
"""IS_OPEN: the round is not plain. FORWARD: how many variants find heads; the others look for derivations.
SCANS: how many numbers of relations `scans` has for each of these, -1 for those below the stratum. DELETIONS: heads
that had not been checked before."""


@piece
def _list_heads(state, relations, variant, code, block, used, nodes, how):  # type: ignore[no-untyped-def]
    """Lists each head of a block once a round, or says what is missing for that."""
    number = code[variant + HEAD]
    head = relations[number]
    state[FULL] = number
    if head[TOUCHED_USED] + used > head[TOUCHED_ROOM]:
        return NO_ROOM
    if state[NODES] + used > nodes.shape[0]:
        return NO_NODES
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    for i in range(used):
        row = find_row(block, i, rows, table, head[SHIFT])
        if row < 0:
            continue
        if level[row] < REFERENCE:
            touch_counters(row, level, count, touched, head[TOUCHED_USED])
            head[TOUCHED_USED] += 1
        entry = level[row] - REFERENCE
        if touched[entry, OTHER] != how[STAMP]:
            touched[entry, OTHER] = how[STAMP]
            nodes[state[NODES], NODE_RELATION] = number
            nodes[state[NODES], NODE_ENTRY] = entry
            state[NODES] += 1
    return DONE


@piece
def _look_at_bodies(state, relations, block, used, scans, how):  # type: ignore[no-untyped-def]
    """The round is not plain if a derivation of a candidate needs a fact that has neither been checked nor is a
    candidate."""
    first = (state[VARIANT] - how[FORWARD]) * how[SCANS]
    for scan in range(how[SCANS]):
        number = scans[first + scan]
        if number < 0:
            continue
        relation = relations[number]
        level = words_at(relation[LEVEL], relation[ROOM])
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for i in range(used):
            value = level[block[i, scan + 1]]
            if value < REFERENCE or not touched[value - REFERENCE, MARKS] & (CHECKED | DELTA):
                how[IS_OPEN] = 1
                return


@piece
def _sink(state, relations, variant, code, frames, width, nodes, scans, how):  # type: ignore[no-untyped-def]
    """What is done with the last block, by half of the round."""
    depth = state[DEPTH]
    used = frames[depth, END]
    block = matrix_at(frames[depth, BLOCK_AT], frames[depth, BLOCK_ROWS], width)
    if how[IS_BACKWARD_HALF]:
        _look_at_bodies(state, relations, block, used, scans, how)
    else:
        reason = _list_heads(state, relations, variant, code, block, used, nodes, how)
        if reason != DONE:
            return reason
    state[DERIVED] += used
    frames[depth, BEGUN] = used
    return DONE


_run = runner(gather_delta, probe_seen, _sink)


@piece
def _mark_candidates(relations, added, removed):  # type: ignore[no-untyped-def]
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            entry = touched[at, DELTAS]
            touched[entry, MARKS] = (touched[entry, MARKS] & ~removed) | added


@piece
def _choose(state, relations, nodes, how):  # type: ignore[no-untyped-def]
    """The delta is gone; heads that may go with it are the candidates. Whether there are any."""
    _mark_candidates(relations, 0, DELTA | IS)
    for r in range(relations.shape[0]):
        relations[r, FROM] = relations[r, TO]
    is_more = False
    for node in range(state[NODES]):
        relation = relations[nodes[node, NODE_RELATION]]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        entry = nodes[node, NODE_ENTRY]
        marks = touched[entry, MARKS]
        if not marks & IS or marks & PROVED:
            continue
        if not marks & CHECKED:
            how[DELETIONS] += 1
            if marks & DELAYED or touched[entry, COUNT] > 0:
                how[IS_OPEN] = 1
        touched[entry, MARKS] = marks | DELTA
        touched[relation[TO], DELTAS] = entry
        relation[TO] += 1
        is_more = True
    state[NODES] = 0
    how[STAMP] += 1
    return is_more


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, MATRIX, WORDS, WORDS)
def delete_plainly(state, relations, indexes, variants, code, frames, nodes, scans, how):  # type: ignore[no-untyped-def]
    """Runs plain rounds, beginning with the search for derivations of candidates; returns why it stops. With LARGE,
    the facts in [FROM, TO) are still to be checked."""
    while True:
        if state[STAGE] == INDEXES:
            state[STAGE] = VARIANTS
            state[VARIANT] = how[FORWARD] if how[IS_BACKWARD_HALF] else 0
            state[AT] = -1
        if state[STAGE] == VARIANTS:
            end = variants.shape[0] if how[IS_BACKWARD_HALF] else how[FORWARD]
            while state[VARIANT] < end and not how[IS_OPEN]:
                variant = variants[state[VARIANT]]
                if state[AT] < 0:
                    relation = relations[code[variant + START]]
                    if relation[FROM] >= relation[TO]:
                        state[VARIANT] += 1
                        continue
                    begin_variant(state, relations, variant, code, frames)
                reason = _run(state, relations, indexes, variant, code, frames, nodes, scans, how)
                if reason == CHECK and how[IS_BACKWARD_HALF]:
                    # So long a search is better made by those who know when to give up.
                    how[IS_OPEN] = 1
                elif reason != DONE:
                    return reason
                state[VARIANT] += 1
                state[AT] = -1
            state[STAGE] = CLOSING
        state[STAGE] = INDEXES
        state[WORK] += 1
        if how[IS_BACKWARD_HALF]:
            if not how[IS_OPEN]:
                _mark_candidates(relations, np_int32(CHECKED), 0)
                how[IS_BACKWARD_HALF] = 0
        else:
            if not _choose(state, relations, nodes, how):
                return DONE
            how[IS_BACKWARD_HALF] = 1
        if how[IS_OPEN]:
            _mark_candidates(relations, 0, DELTA)
            return LARGE
        if state[WORK] > state[WORK_ALLOWED] // 2:
            # So that a search has the other half at least.
            return CHECK
