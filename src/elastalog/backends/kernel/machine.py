"""The machine: the delta-driven update of a stratum in compiled code, from its first delta to its last.

Facts of an update are few and its rounds may be many thousand, so what counts is the cost of a step, not of a row. The
machine therefore runs whole phases (losses, recovery, gains) without returning, on tables of addresses that
`machine_plan` lays out. It leaves off, and is called again to go on, when something must be done in Python: memory to
grow, an expression to evaluate, limits to look at. Every step is resumable, for the state of the run is in `state`,
`frames` (one row for each step of the version that runs) and the relations' rows of `relations`.
"""

from __future__ import annotations

import numpy as np
from numba import types

from elastalog.backends.kernel import delta_pipeline, postings
from elastalog.backends.kernel import join_levels as level_operators
from elastalog.backends.kernel.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compiled import (
    HALF,
    INT,
    LOW,
    MATRIX,
    STATE,
    WORDS,
    hash_row,
    int64,
    np_int32,
    operator,
    uint64,
)
from elastalog.backends.kernel.join import DIRECT
from elastalog.backends.kernel.maintain import find_row, offer, touch
from elastalog.backends.kernel.marks import (
    ABSENT,
    COUNT,
    DELTA,
    DELTAS,
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
    ROW,
    TOUCHED_WIDTH,
)
from elastalog.backends.kernel.postings import SLOT_WIDTH
from elastalog.backends.kernel.rows import FILLED, NEXT, WITHIN

TABLE = types.Array(types.int64, 2, "C")
BLOCK = 1 << 14

LOSING, RECOVERING, GAINING = range(3)
"""Phases."""

DONE, NO_ROOM, NO_NODES, NO_LEVELS, NO_INDEX, ACTIONS, CHECK = range(7)
"""Why the machine returns: the phase is over; the head of the version needs room for the rows of the block, the queue
needs room for them, or for higher levels; an index is full; actions are to run in Python; limits are to be checked."""

# Fields of the state vector, beyond those of the joins (NEXT, WITHIN, FILLED).
PHASE, STAGE, VERSION, DEPTH, AT, STEP, DERIVED, WORK, WORK_ALLOWED, NODES, LEVELS_WAITING, INDEX, ACTION, HIGHEST = (
    range(8, 22)
)
STATE_SIZE = 22

# Stages of a round: indexes are brought up to date, versions run, the delta is closed and the next one chosen.
_INDEXES, _VERSIONS, _CLOSING = range(3)

# Steps of a version: a start or a join to make, actions that have run in Python, a block to hand to the head.
_GO, _ACTED, _SINK = range(3)

# Columns of `relations`: what stays as long as nothing grows, then what an update changes.
(
    ROWS, WIDTH, TABLE_AT, TABLE_SIZE, SHIFT, LEVEL, COUNTS, TOUCHED, TOUCHED_ROOM, ROOM, IS_FLAT, IS_OWN, FIRST_INDEX,
    INDEXES_END, USED, TOUCHED_USED, MAY_LOSE, MAY_GAIN, LIST, FROM, TO, LISTED,
) = range(22)  # fmt: skip
RELATION_WIDTH = 22
"""[FIRST_INDEX, INDEXES_END): the indexes of a relation of the stratum, which grow with it. LIST: the column of the
touched table that lists the delta, in its rows [FROM, TO). LISTED: facts in the list of losses."""

# Columns of `indexes`.
(
    OWNER, COLUMNS, COLUMNS_NUMBER, KIND, KEYS, KEYS_SIZE, KEYS_SHIFT, SLOTS, SLOTS_SIZE, POOL, POOL_SIZE, STATE_AT,
    STATE_LENGTH, ADDED,
) = range(14)  # fmt: skip
INDEX_WIDTH = 14

# A version in the code: its start, followed by its probes.
(
    START, IS_BACKWARD, IS_NEGATED_START, HEAD, PROBES, START_TAKE, START_TAKEN, START_WIDTH, START_ACTIONS,
    START_ACTIONS_END, LISTS,
) = range(11)  # fmt: skip
VERSION_WIDTH = 11

(
    RELATION, INDEX_OF, HOW, IS_NEGATED, IS_BEFORE, KEY, KEY_WIDTH, KEEP, KEPT, TAKE, TAKEN, OUT_WIDTH, ACTIONS_AT,
    ACTIONS_END,
) = range(14)  # fmt: skip
PROBE_WIDTH = 14

INDEXED = -1
"""HOW a probe finds rows, besides MEMBER and EVERY: by its index, which knows its kind."""

# Actions: a code and two operands.
FILL, COPY, KEEP_EQUAL, KEEP_CONSTANT, IN_PYTHON = range(5)
ACTION_WIDTH = 3

# Columns of `frames`: the block a step made, where it lies if not in its usual place, and how much has been passed on.
USUAL, BLOCK_AT, BLOCK_ROWS, BEGUN, END, INSIDE = range(6)
FRAME_WIDTH = 6

# Columns of the queue's nodes.
NODE_RELATION, NODE_ENTRY, NODE_NEXT = range(3)
NODE_WIDTH = 3

_VIEWS = np.array(
    [
        [phase.sees, phase.sees_before, phase.lacks, phase.lacks_before]
        for phase in (delta_pipeline.LOSSES, delta_pipeline.GAINS, delta_pipeline.GAINS)
    ],
    np.int64,
)  # fmt: skip
"""What goals see, by phase: facts, facts when they stand before the start, absences, likewise."""

_join = piece(level_operators.join_levels)
_append = piece(postings.append)


# --- pieces of a version --------------------------------------------------------------------------------------------


@piece
def _gather(state, relations, version, code, frames, phase):  # type: ignore[no-untyped-def]
    """Fills the first block with the next facts of the delta that the start sees, or with the next lost heads."""
    relation = relations[code[version + START]]
    touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    level = words_at(relation[LEVEL], relation[ROOM])
    width = code[version + START_WIDTH]
    out = matrix_at(frames[0, USUAL], BLOCK, width)
    take = code[code[version + START_TAKE] :]
    taken = code[version + START_TAKEN]
    is_backward = code[version + IS_BACKWARD]
    is_negated = code[version + IS_NEGATED_START]
    is_loss = phase == LOSING
    is_flat = relation[IS_FLAT] != 0
    seen = _VIEWS[phase, 2 if is_negated else 0]
    at = state[AT]
    column = relation[LIST]
    filled = int64(0)
    while at < relation[TO] and filled < BLOCK:
        entry = touched[at, column]
        at += 1
        row = int64(touched[entry, ROW])
        if is_backward:
            for c in range(taken):
                source = take[c]
                out[filled, take[taken + c]] = rows[row, source] if source >= 0 else entry
            out[filled, width - 2] = 0
            out[filled, width - 1] = 0
        else:
            if not (seen >> int64(touched[entry, MARKS])) & 1:
                continue
            for c in range(taken):
                source = take[c]
                out[filled, take[taken + c]] = rows[row, source] if source >= 0 else row
            if is_negated:
                out[filled, width - 2] = 0
                out[filled, width - 1] = 0 if is_loss else ABSENT
            else:
                out[filled, width - 2] = level_operators.level_now(level, touched, row, is_loss, is_flat)
                out[filled, width - 1] = level_operators.level_before(level, touched, row, is_loss, is_flat)
        filled += 1
    state[AT] = at
    return filled


@piece
def _probe(state, relations, indexes, probe, code, frames, depth, width, phase):  # type: ignore[no-untyped-def]
    """Joins what is left of a step's block with the relation of the next step, until the next block is full."""
    relation = relations[code[probe + RELATION]]
    frame = frames[depth]
    left = matrix_at(frame[BLOCK_AT], frame[BLOCK_ROWS], width)
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    level = words_at(relation[LEVEL], relation[ROOM])
    touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
    out = matrix_at(frames[depth + 1, USUAL], BLOCK, code[probe + OUT_WIDTH])
    kind = code[probe + HOW]
    keys = keys_at(relation[TABLE_AT], relation[TABLE_SIZE])
    shift = relation[SHIFT]
    slots = matrix_at(relation[ROWS], 0, SLOT_WIDTH)
    pool = words_at(relation[ROWS], 0)
    columns = numbers_at(frame[USUAL], 0)
    if kind == INDEXED:
        index = indexes[code[probe + INDEX_OF]]
        kind = index[KIND]
        keys = keys_at(index[KEYS], index[KEYS_SIZE])
        shift = index[KEYS_SHIFT]
        slots = matrix_at(index[SLOTS], index[SLOTS_SIZE], SLOT_WIDTH)
        pool = words_at(index[POOL], index[POOL_SIZE])
        columns = numbers_at(index[COLUMNS], index[COLUMNS_NUMBER])
    is_negated = code[probe + IS_NEGATED] != 0
    seen = _VIEWS[phase, (2 if is_negated else 0) + code[probe + IS_BEFORE]]
    key_at = code[probe + KEY]
    keep_at = code[probe + KEEP]
    take_at = code[probe + TAKE]
    kept = code[probe + KEPT]
    taken = code[probe + TAKEN]
    key = code[key_at : key_at + code[probe + KEY_WIDTH]]
    state[FILLED] = 0
    state[WITHIN] = frame[INSIDE]
    _join(
        left, frame[BEGUN], frame[END], key, kind, keys, shift, slots, pool, rows, columns, relation[USED], level,
        touched, seen, phase == LOSING, relation[IS_FLAT] != 0, is_negated, code[keep_at : keep_at + kept],
        code[keep_at + kept : keep_at + 2 * kept], code[take_at : take_at + taken],
        code[take_at + taken : take_at + 2 * taken], out, state,
    )  # fmt: skip
    frame[BEGUN] = state[NEXT]
    frame[INSIDE] = state[WITHIN]
    return state[FILLED]


@piece
def _act(block, used, code, start, end):  # type: ignore[no-untyped-def]
    """Runs simple actions on the first rows of a block; returns how many rows are left."""
    width = block.shape[1]
    for at in range(start, end, ACTION_WIDTH):
        action = code[at]
        first = code[at + 1]
        second = code[at + 2]
        if action == FILL:
            for i in range(used):
                block[i, first] = np_int32(second)
        elif action == COPY:
            for i in range(used):
                block[i, second] = block[i, first]
        else:
            kept = 0
            for i in range(used):
                other = block[i, second] if action == KEEP_EQUAL else np_int32(second)
                if block[i, first] == other:
                    if kept != i:
                        for c in range(width):
                            block[kept, c] = block[i, c]
                    kept += 1
            used = kept
    return used


# --- heads ----------------------------------------------------------------------------------------------------------


@piece
def _lose(block, used, head):  # type: ignore[no-untyped-def]
    """Takes old derivations off the counts of their heads; lists those whose count reached 0."""
    width = block.shape[1]
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    touched_used = head[TOUCHED_USED]
    listed = head[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, head[SHIFT])
        if row < 0:
            continue
        value = level[row]
        fires = block[i, width - 1] + 1
        if value < REFERENCE:
            if value != fires:
                continue
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        entry = level[row] - REFERENCE
        if touched[entry, MARKS] & (LOST | DELTA | FIXED) or touched[entry, OLD] != fires:
            continue
        touched[entry, COUNT] -= 1
        if touched[entry, COUNT] == 0:
            touched[listed, LOSSES] = entry
            listed += 1
    head[TOUCHED_USED] = touched_used
    head[LISTED] = listed


@piece
def _wait(state, nodes, waiting, heap, relation, entry, level):  # type: ignore[no-untyped-def]
    """Files an entry under the level it waits for."""
    node = state[NODES]
    state[NODES] = node + 1
    nodes[node, NODE_RELATION] = relation
    nodes[node, NODE_ENTRY] = entry
    nodes[node, NODE_NEXT] = waiting[level]
    if waiting[level] < 0:
        at = state[LEVELS_WAITING]
        state[LEVELS_WAITING] = at + 1
        while at > 0:
            above = (at - 1) >> 1
            if heap[above] <= level:
                break
            heap[at] = heap[above]
            at = above
        heap[at] = level
    waiting[level] = node


@piece
def _gain(block, used, relation, head, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Offers new derivations to their heads; facts never seen get a row."""
    block_width = block.shape[1]
    width = head[WIDTH]
    rows = matrix_at(head[ROWS], head[ROOM], width)
    table = keys_at(head[TABLE_AT], head[TABLE_SIZE])
    level = words_at(head[LEVEL], head[ROOM])
    count = words_at(head[COUNTS], head[ROOM])
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    rows_used = head[USED]
    touched_used = head[TOUCHED_USED]
    for i in range(used):
        fires = block[i, block_width - 2] + 1
        before = block[i, block_width - 1]
        before = before + 1 if before < ABSENT else np_int32(ABSENT)
        row = find_row(block, i, rows, table, head[SHIFT])
        if row < 0:
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
            if value < fires or (value == fires and fires == before):
                continue
            touch(row, level, count, touched, touched_used)
            touched_used += 1
        entry = level[row] - REFERENCE
        if offer(entry, fires, before, touched):
            _wait(state, nodes, waiting, heap, relation, entry, fires)
    head[USED] = rows_used
    head[TOUCHED_USED] = touched_used


@piece
def _recover(block, used, relation, head, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Offers derivations found backwards to the lost heads they were asked for (word 0 is the touched entry), as they
    stood before the delta of gains: what the delta adds or lowers is offered when it is propagated."""
    width = block.shape[1]
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    for i in range(used):
        before = block[i, width - 1]
        if before < ABSENT:
            entry = int64(block[i, 0])
            if offer(entry, before + 1, np_int32(ABSENT), touched):
                _wait(state, nodes, waiting, heap, relation, entry, before + 1)


@piece
def _highest(block, used):  # type: ignore[no-untyped-def]
    """The highest level at which a derivation of the block fires."""
    width = block.shape[1]
    highest = np_int32(0)
    for i in range(used):
        for c in range(width - 2, width):
            if block[i, c] < ABSENT:
                highest = max(highest, block[i, c])
    return int64(highest) + 1


@piece
def _sink(state, relations, version, code, frames, width, phase, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Hands the last block to the head, or says what is missing for that."""
    depth = state[DEPTH]
    used = frames[depth, END]
    block = matrix_at(frames[depth, BLOCK_AT], frames[depth, BLOCK_ROWS], width)
    relation = code[version + HEAD]
    head = relations[relation]
    if head[TOUCHED_USED] + used > head[TOUCHED_ROOM]:
        return NO_ROOM
    if phase == LOSING:
        _lose(block, used, head)
    else:
        if phase == GAINING and head[USED] + used > head[ROOM]:
            return NO_ROOM
        if state[NODES] + used > nodes.shape[0]:
            return NO_NODES
        state[HIGHEST] = _highest(block, used)
        if state[HIGHEST] >= waiting.shape[0]:
            return NO_LEVELS
        if phase == GAINING:
            _gain(block, used, relation, head, state, nodes, waiting, heap)
        else:
            _recover(block, used, relation, head, state, nodes, waiting, heap)
    state[DERIVED] += used
    return DONE


# --- versions and rounds --------------------------------------------------------------------------------------------


@piece
def _run(state, relations, indexes, version, code, frames, phase, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Runs one version from where it is to its end, depth first, one block a step."""
    probes = code[version + PROBES]
    first_probe = version + VERSION_WIDTH
    while True:
        depth = state[DEPTH]
        probe = first_probe + (depth - 1) * PROBE_WIDTH
        width = code[version + START_WIDTH] if depth == 0 else code[probe + OUT_WIDTH]
        if state[STEP] == _SINK:
            reason = _sink(state, relations, version, code, frames, width, phase, nodes, waiting, heap)
            if reason != DONE:
                return reason
            state[STEP] = _GO
            frames[depth, BEGUN] = frames[depth, END]
            if state[WORK] > state[WORK_ALLOWED]:
                return CHECK
        elif state[STEP] == _ACTED:
            # A block is ready: it goes to the head, or to the next step.
            state[STEP] = _SINK if depth == probes and frames[depth, END] > 0 else _GO
        elif frames[depth, BEGUN] < frames[depth, END]:
            filled = _probe(state, relations, indexes, probe + PROBE_WIDTH, code, frames, depth, width, phase)
            state[WORK] += filled + 1
            if filled > 0:
                depth += 1
                probe += PROBE_WIDTH
                state[DEPTH] = depth
                reason = _finish_block(
                    state,
                    frames,
                    code,
                    depth,
                    code[probe + OUT_WIDTH],
                    filled,
                    code[probe + ACTIONS_AT],
                    code[probe + ACTIONS_END],
                )
                if reason != DONE:
                    return reason
        elif depth > 0:
            state[DEPTH] = depth - 1
        else:
            filled = _gather(state, relations, version, code, frames, phase)
            if filled == 0:
                return DONE
            state[WORK] += filled
            reason = _finish_block(
                state, frames, code, 0, width, filled, code[version + START_ACTIONS], code[version + START_ACTIONS_END]
            )
            if reason != DONE:
                return reason


@piece
def _finish_block(state, frames, code, depth, width, filled, actions, actions_end):  # type: ignore[no-untyped-def]
    """Runs the actions of the step that has filled its block."""
    frame = frames[depth]
    frame[BLOCK_AT] = frame[USUAL]
    frame[BLOCK_ROWS] = BLOCK
    frame[BEGUN] = 0
    frame[END] = filled
    frame[INSIDE] = 0
    state[STEP] = _ACTED
    if actions < actions_end:
        if code[actions] == IN_PYTHON:
            state[ACTION] = code[actions + 1]
            return ACTIONS
        frame[END] = _act(matrix_at(frame[USUAL], BLOCK, width), filled, code, actions, actions_end)
    return DONE


@piece
def _starts(relation, version, code, phase):  # type: ignore[no-untyped-def]
    """Whether a version has something to start from."""
    if relation[FROM] >= relation[TO]:
        return False
    if phase == RECOVERING:
        return code[version + LISTS] & (1 << relation[LIST]) != 0
    if code[version + IS_BACKWARD]:
        return False
    if (phase == LOSING) != (code[version + IS_NEGATED_START] != 0):
        return relation[MAY_LOSE] != 0
    return relation[MAY_GAIN] != 0


@piece
def _extend(state, relations, indexes):  # type: ignore[no-untyped-def]
    """Adds the latest rows to the indexes of the stratum's relations; False if one is full."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        for i in range(relation[FIRST_INDEX], relation[INDEXES_END]):
            index = indexes[i]
            if index[ADDED] < relation[USED]:
                index[ADDED] = _append(
                    matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH]), index[ADDED], relation[USED],
                    numbers_at(index[COLUMNS], index[COLUMNS_NUMBER]), index[KIND] == DIRECT,
                    keys_at(index[KEYS], index[KEYS_SIZE]), index[KEYS_SHIFT],
                    matrix_at(index[SLOTS], index[SLOTS_SIZE], SLOT_WIDTH), words_at(index[POOL], index[POOL_SIZE]),
                    numbers_at(index[STATE_AT], index[STATE_LENGTH]),
                )  # fmt: skip
                if index[ADDED] < relation[USED]:
                    state[INDEX] = i
                    return False
    return True


@piece
def _close_losses(relations):  # type: ignore[no-untyped-def]
    """The delta has been propagated: its facts are lost. Heads that lost their last derivation are the next delta."""
    is_more = False
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            entry = touched[at, relation[LIST]]
            marks = touched[entry, MARKS] & ~DELTA
            if relation[IS_OWN]:
                touched[entry, MARKS] = (marks & ~IS) | LOST
                touched[entry, NEW] = ABSENT
                touched[entry, OTHER] = ABSENT
                touched[entry, COUNT] = 0
            else:
                touched[entry, MARKS] = marks | LOST
        if relation[IS_OWN]:
            relation[FROM] = relation[TO] if relation[LIST] == LOSSES else 0
            relation[LIST] = LOSSES
            relation[TO] = relation[LISTED]
            for at in range(relation[FROM], relation[TO]):
                touched[touched[at, LOSSES], MARKS] |= DELTA
                is_more = True
        else:
            relation[FROM] = relation[TO]
    return is_more


@piece
def _close_gains(state, relations, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """The delta has been propagated. The facts that wait for the lowest level settle at it and are the next delta."""
    for r in range(relations.shape[0]):
        relation = relations[r]
        touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
        for at in range(relation[FROM], relation[TO]):
            touched[touched[at, relation[LIST]], MARKS] &= ~DELTA
        relation[LIST] = DELTAS
        relation[FROM] = 0
        relation[TO] = 0
    while state[LEVELS_WAITING] > 0:
        level = _lowest(state, heap)
        node = waiting[level]
        waiting[level] = -1
        is_more = False
        while node >= 0:
            relation = relations[nodes[node, NODE_RELATION]]
            entry = nodes[node, NODE_ENTRY]
            node = int64(nodes[node, NODE_NEXT])
            touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
            marks = touched[entry, MARKS]
            if marks & PENDING and touched[entry, OTHER] == level:
                touched[entry, OTHER] = touched[entry, NEW] if marks & IS else np_int32(ABSENT)
                touched[entry, NEW] = level
                touched[entry, MARKS] = (marks & ~PENDING) | IS | DELTA
                touched[relation[TO], DELTAS] = entry
                relation[TO] += 1
                is_more = True
        if state[LEVELS_WAITING] == 0:
            state[NODES] = 0
        if is_more:
            return True
    return False


@piece
def _lowest(state, heap):  # type: ignore[no-untyped-def]
    """Takes the lowest level off the heap."""
    lowest = heap[0]
    size = state[LEVELS_WAITING] - 1
    state[LEVELS_WAITING] = size
    moved = heap[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if moved <= heap[below]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moved
    return lowest


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, MATRIX, WORDS, WORDS)
def advance(state, relations, indexes, versions, code, frames, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Runs a phase on, round after round; returns why it stops (see DONE). `versions` are places in the code."""
    phase = state[PHASE]
    while True:
        if state[STAGE] == _INDEXES:
            if phase == GAINING and not _extend(state, relations, indexes):
                return NO_INDEX
            state[STAGE] = _VERSIONS
            state[VERSION] = 0
            state[AT] = -1
        if state[STAGE] == _VERSIONS:
            while state[VERSION] < versions.shape[0]:
                version = versions[state[VERSION]]
                if state[AT] < 0:
                    relation = relations[code[version + START]]
                    if not _starts(relation, version, code, phase):
                        state[VERSION] += 1
                        continue
                    state[AT] = relation[FROM]
                    state[DEPTH] = 0
                    state[STEP] = _GO
                    frames[0, BEGUN] = 0
                    frames[0, END] = 0
                reason = _run(state, relations, indexes, version, code, frames, phase, nodes, waiting, heap)
                if reason != DONE:
                    return reason
                state[VERSION] += 1
                state[AT] = -1
            state[STAGE] = _CLOSING
        if phase == RECOVERING:
            return DONE
        state[STAGE] = _INDEXES
        state[WORK] += 1
        is_more = _close_losses(relations) if phase == LOSING else _close_gains(state, relations, nodes, waiting, heap)
        if not is_more:
            return DONE
        if state[WORK] > state[WORK_ALLOWED]:
            return CHECK
