"""Small iterations of a bootstrap in compiled code.

Semi-naive evaluation of a long chain is thousands of iterations that find a handful of facts each. The machine runs
them without returning: the delta of a relation are its rows [FROM, TO), and what an iteration finds is appended. It
leaves off as the machine of updates does, and when an iteration has found so much that it is better run outside.
"""

from __future__ import annotations

from elastalog.backends.kernel import join as join_operators
from elastalog.backends.kernel import rows as row_operators
from elastalog.backends.kernel.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compiled import INT, STATE, int64, np_int32, operator
from elastalog.backends.kernel.join_levels import MEMBER
from elastalog.backends.kernel.machine.layout import (
    ACTED,
    ACTIONS_AT,
    ACTIONS_END,
    AT,
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    CHECK,
    COLUMNS,
    COLUMNS_NUMBER,
    COUNTS,
    DEPTH,
    DERIVED,
    DERIVED_ALLOWED,
    DONE,
    END,
    FROM,
    GO,
    HEAD,
    HOW,
    INDEX_OF,
    INDEXED,
    INDEXES,
    INSIDE,
    IS_ANNOTATED,
    IS_BEFORE,
    IS_CHECKED,
    IS_NEGATED,
    IS_OWN,
    ITERATION,
    KEEP,
    KEPT,
    KEY,
    KEY_WIDTH,
    KEYS,
    KEYS_SHIFT,
    KEYS_SIZE,
    KIND,
    LARGE,
    LEVEL,
    MOST_FOUND,
    NO_INDEX,
    NO_ROOM,
    OUT_WIDTH,
    POOL,
    POOL_SIZE,
    PROBE_WIDTH,
    PROBES,
    RELATION,
    ROOM,
    ROWS,
    SHIFT,
    SINK,
    SLOTS,
    SLOTS_SIZE,
    STAGE,
    START,
    START_ACTIONS,
    START_ACTIONS_END,
    START_TAKE,
    START_TAKEN,
    START_WIDTH,
    STEP,
    TABLE,
    TABLE_AT,
    TABLE_SIZE,
    TAKE,
    TAKEN,
    TO,
    TOUCHED,
    TOUCHED_ROOM,
    USED,
    USUAL,
    VERSION,
    VERSION_WIDTH,
    VERSIONS,
    WIDTH,
    WORK,
    WORK_ALLOWED,
)
from elastalog.backends.kernel.machine.steps import extend_indexes, finish_block
from elastalog.backends.kernel.marks import TOUCHED_WIDTH
from elastalog.backends.kernel.postings import SLOT_WIDTH
from elastalog.backends.kernel.rows import FILLED, NEXT, WITHIN

_join = piece(join_operators.join)
_member = piece(row_operators.member)
_insert = piece(row_operators.insert)


@piece
def _gather(state, relations, version, code, frames):  # type: ignore[no-untyped-def]
    """Fills the first block with the next rows of the delta."""
    relation = relations[code[version + START]]
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    out = matrix_at(frames[0, USUAL], BLOCK, code[version + START_WIDTH])
    take = code[code[version + START_TAKE] :]
    taken = code[version + START_TAKEN]
    first = state[AT]
    filled = min(relation[TO] - first, BLOCK)
    for i in range(filled):
        for c in range(taken):
            source = take[c]
            out[i, take[taken + c]] = rows[first + i, source] if source >= 0 else np_int32(first + i)
    state[AT] = first + filled
    return filled


@piece
def _probe(state, relations, indexes, probe, code, frames, depth, width):  # type: ignore[no-untyped-def]
    """Joins what is left of a step's block with the relation of the next step, until the next block is full."""
    relation = relations[code[probe + RELATION]]
    frame = frames[depth]
    is_negated = code[probe + IS_NEGATED] != 0
    limit = relation[USED]
    if relation[IS_OWN]:
        limit = relation[FROM] if code[probe + IS_BEFORE] else relation[TO]
    if limit == 0 and not is_negated:
        frame[BEGUN] = frame[END]
        return int64(0)
    left = matrix_at(frame[BLOCK_AT], frame[BLOCK_ROWS], width)
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    is_checked = relation[IS_CHECKED] != 0
    level = words_at(relation[LEVEL], relation[ROOM])
    touched = matrix_at(relation[TOUCHED], relation[TOUCHED_ROOM], TOUCHED_WIDTH)
    out = matrix_at(frames[depth + 1, USUAL], BLOCK, code[probe + OUT_WIDTH])
    key = code[code[probe + KEY] : code[probe + KEY] + code[probe + KEY_WIDTH]]
    keep_at = code[probe + KEEP]
    kept = code[probe + KEPT]
    keep = code[keep_at : keep_at + kept]
    keep_place = code[keep_at + kept : keep_at + 2 * kept]
    take_at = code[probe + TAKE]
    taken = code[probe + TAKEN]
    table = keys_at(relation[TABLE_AT], relation[TABLE_SIZE])
    kind = code[probe + HOW]
    state[FILLED] = 0
    state[WITHIN] = frame[INSIDE]
    if kind == MEMBER:
        row_place = code[take_at + taken] if taken > 0 else int64(-1)
        _member(
            left, frame[BEGUN], frame[END], key, table, relation[SHIFT], rows, limit, is_checked, level, touched,
            is_negated, keep, keep_place, row_place, out, state,
        )  # fmt: skip
        state[WITHIN] = 0
    else:
        keys = table
        shift = relation[SHIFT]
        slots = matrix_at(relation[ROWS], 0, SLOT_WIDTH)
        pool = words_at(relation[ROWS], 0)
        columns = key
        if kind == INDEXED:
            index = indexes[code[probe + INDEX_OF]]
            kind = index[KIND]
            keys = keys_at(index[KEYS], index[KEYS_SIZE])
            shift = index[KEYS_SHIFT]
            slots = matrix_at(index[SLOTS], index[SLOTS_SIZE], SLOT_WIDTH)
            pool = words_at(index[POOL], index[POOL_SIZE])
            columns = numbers_at(index[COLUMNS], index[COLUMNS_NUMBER])
        _join(
            left, frame[BEGUN], frame[END], key, kind, keys, shift, slots, pool, rows, columns, limit, is_checked,
            level, touched, keep, keep_place, code[take_at : take_at + taken],
            code[take_at + taken : take_at + 2 * taken], out, state,
        )  # fmt: skip
    frame[BEGUN] = state[NEXT]
    frame[INSIDE] = state[WITHIN]
    return state[FILLED]


@piece
def _sink(state, relations, version, code, frames, width, made):  # type: ignore[no-untyped-def]
    """Inserts what is left of the last block into the head; False if there is no room."""
    frame = frames[state[DEPTH]]
    head = relations[code[version + HEAD]]
    block = matrix_at(frame[BLOCK_AT], frame[BLOCK_ROWS], width)
    state[row_operators.USED] = head[USED]
    _insert(
        block, frame[BEGUN], frame[END], matrix_at(head[ROWS], head[ROOM], head[WIDTH]),
        keys_at(head[TABLE_AT], head[TABLE_SIZE]), head[SHIFT],
        words_at(head[COUNTS], head[ROOM] if head[IS_ANNOTATED] else 0), head[TO], state,
    )  # fmt: skip
    inserted = state[NEXT] - frame[BEGUN]
    state[DERIVED] += inserted
    made[state[VERSION]] += inserted
    head[USED] = state[row_operators.USED]
    frame[BEGUN] = state[NEXT]
    return frame[BEGUN] >= frame[END]


@piece
def _run(state, relations, indexes, version, code, frames, made):  # type: ignore[no-untyped-def]
    """Runs one version from where it is to its end, depth first, one block a step; work is counted as in updates."""
    probes = code[version + PROBES]
    first_probe = version + VERSION_WIDTH
    while True:
        if state[WORK] > state[WORK_ALLOWED] or state[DERIVED] > state[DERIVED_ALLOWED]:
            return CHECK
        depth = state[DEPTH]
        probe = first_probe + (depth - 1) * PROBE_WIDTH
        width = code[version + START_WIDTH] if depth == 0 else code[probe + OUT_WIDTH]
        if state[STEP] == SINK:
            if not _sink(state, relations, version, code, frames, width, made):
                return NO_ROOM
            state[STEP] = GO
        elif state[STEP] == ACTED:
            state[STEP] = SINK if depth == probes and frames[depth, END] > 0 else GO
        elif frames[depth, BEGUN] < frames[depth, END]:
            probe += PROBE_WIDTH
            begun = frames[depth, BEGUN]
            filled = _probe(state, relations, indexes, probe, code, frames, depth, width)
            state[WORK] += filled + frames[depth, BEGUN] - begun
            if filled > 0:
                state[DEPTH] = depth + 1
                reason = finish_block(
                    state, frames, code, depth + 1, code[probe + OUT_WIDTH], filled, code[probe + ACTIONS_AT],
                    code[probe + ACTIONS_END],
                )  # fmt: skip
                if reason != DONE:
                    return reason
        elif depth > 0:
            state[DEPTH] = depth - 1
        else:
            filled = _gather(state, relations, version, code, frames)
            if filled == 0:
                return DONE
            state[WORK] += filled
            reason = finish_block(
                state, frames, code, 0, width, filled, code[version + START_ACTIONS], code[version + START_ACTIONS_END]
            )
            if reason != DONE:
                return reason


@piece
def _close(relations, iteration):  # type: ignore[no-untyped-def]
    """What the iteration has appended gets its level and is the next delta; returns how many facts that is."""
    found = 0
    for r in range(relations.shape[0]):
        relation = relations[r]
        if relation[IS_OWN]:
            relation[FROM] = relation[TO]
            relation[TO] = relation[USED]
            found += relation[TO] - relation[FROM]
            if relation[IS_ANNOTATED]:
                level = words_at(relation[LEVEL], relation[ROOM])
                for row in range(relation[FROM], relation[TO]):
                    level[row] = np_int32(iteration)
    return found


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, STATE)
def grow(state, relations, indexes, versions, code, frames, made):  # type: ignore[no-untyped-def]
    """Runs iteration after iteration; returns why it stops. `made` counts the derivations of each version."""
    while True:
        if state[STAGE] == INDEXES:
            if not extend_indexes(state, relations, indexes):
                return NO_INDEX
            state[STAGE] = VERSIONS
            state[VERSION] = 0
            state[AT] = -1
        while state[VERSION] < versions.shape[0]:
            version = versions[state[VERSION]]
            if state[AT] < 0:
                relation = relations[code[version + START]]
                if relation[FROM] >= relation[TO]:
                    state[VERSION] += 1
                    continue
                state[AT] = relation[FROM]
                state[DEPTH] = 0
                state[STEP] = GO
                frames[0, BEGUN] = 0
                frames[0, END] = 0
            reason = _run(state, relations, indexes, version, code, frames, made)
            if reason != DONE:
                return reason
            state[VERSION] += 1
            state[AT] = -1
        state[STAGE] = INDEXES
        found = _close(relations, state[ITERATION])
        if found == 0:
            return DONE
        state[ITERATION] += 1
        state[MOST_FOUND] -= found
        if found > BLOCK // 8 or state[MOST_FOUND] < 0:
            return LARGE
