"""Small iterations of a bootstrap in compiled code.

Semi-naive evaluation of a long chain is thousands of iterations that find a handful of facts each. The machine runs
them without returning: the delta of a relation are its rows [FROM, TO), and what an iteration finds is appended. It
leaves off as the machine of updates does, and when an iteration has found so much that it is better run outside.

With global levels bindings carry levels, and iterations are levels: what fires later waits in the calendar.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, WORDS, int64, np_int32, operator
from elastalog.backends.kernel.execution import join as join_operators
from elastalog.backends.kernel.execution.join_levels import MEMBER
from elastalog.backends.kernel.machine.calendar import insert_due, put_off
from elastalog.backends.kernel.machine.layout import (
    AT,
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    CALENDAR,
    CARRIED,
    COLUMNS,
    COLUMNS_NUMBER,
    COUNTS,
    DEPTH,
    DERIVED,
    DONE,
    END,
    FROM,
    FULL,
    GAINING,
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
    LEVELS_WAITING,
    MADE,
    MOST_FOUND,
    NO_INDEX,
    NO_ROOM,
    OUT_WIDTH,
    POOL,
    POOL_SIZE,
    RELATION,
    ROOM,
    ROWS,
    SHIFT,
    SLOTS,
    SLOTS_SIZE,
    STAGE,
    START,
    START_TAKE,
    START_TAKEN,
    START_WIDTH,
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
    VARIANT,
    VARIANTS,
    WIDTH,
)
from elastalog.backends.kernel.machine.level_probe import probe_levels
from elastalog.backends.kernel.machine.steps import extend_indexes
from elastalog.backends.kernel.machine.variants import begin_variant, runner
from elastalog.backends.kernel.store import set_table as row_operators
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH
from elastalog.backends.kernel.store.postings import SLOT_WIDTH
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN

_join = piece(join_operators.join)
_member = piece(row_operators.member)
_insert = piece(row_operators.insert)


@piece
def _gather(state, relations, variant, code, frames):  # type: ignore[no-untyped-def]
    """Fills the first block with the next rows of the delta."""
    relation = relations[code[variant + START]]
    rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
    width = code[variant + START_WIDTH]
    out = matrix_at(frames[0, USUAL], BLOCK, width)
    take = code[code[variant + START_TAKE] :]
    taken = code[variant + START_TAKEN]
    first = state[AT]
    filled = min(relation[TO] - first, BLOCK)
    for i in range(filled):
        for c in range(taken):
            source = take[c]
            out[i, take[taken + c]] = rows[first + i, source] if source >= 0 else np_int32(first + i)
        for c in range(width - state[CARRIED], width):
            out[i, c] = np_int32(state[ITERATION] - 1)
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
    if state[CARRIED] > 0:
        return probe_levels(state, relations, indexes, probe, code, frames, depth, width, GAINING, limit)
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
def _sink(state, relations, variant, code, frames, width, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Inserts what is left of the last block into the head, or says what is missing for that."""
    frame = frames[state[DEPTH]]
    relation = code[variant + HEAD]
    head = relations[relation]
    block = matrix_at(frame[BLOCK_AT], frame[BLOCK_ROWS], width)
    begun = frame[BEGUN]
    if state[CARRIED] > 0:
        before = frame[END]
        reason = put_off(block, begun, before, state[ITERATION], relation, head[WIDTH], state, nodes, waiting, heap)
        if reason != DONE:
            return reason
        frame[END] = state[FILLED]
        begun -= before - frame[END]
    state[row_operators.USED] = head[USED]
    _insert(
        block, frame[BEGUN], frame[END], matrix_at(head[ROWS], head[ROOM], head[WIDTH]),
        keys_at(head[TABLE_AT], head[TABLE_SIZE]), head[SHIFT],
        words_at(head[COUNTS], head[ROOM] if head[IS_ANNOTATED] else 0), head[TO], state,
    )  # fmt: skip
    state[DERIVED] += state[NEXT] - begun
    code[variant + MADE] += state[NEXT] - begun
    head[USED] = state[row_operators.USED]
    frame[BEGUN] = state[NEXT]
    state[FULL] = relation
    return DONE if frame[BEGUN] >= frame[END] else NO_ROOM


_run = runner(_gather, _probe, _sink)


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


@operator(INT, STATE, TABLE, TABLE, STATE, STATE, TABLE, MATRIX, WORDS, WORDS)
def grow(state, relations, indexes, variants, code, frames, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Runs iteration after iteration; returns why it stops. `nodes`, `waiting` and `heap` are the calendar."""
    while True:
        if state[STAGE] == INDEXES:
            if not extend_indexes(state, relations, indexes):
                return NO_INDEX
            state[STAGE] = CALENDAR
        if state[STAGE] == CALENDAR:
            if not insert_due(state, relations, nodes, waiting, heap):
                return NO_ROOM
            state[STAGE] = VARIANTS
            state[VARIANT] = 0
            state[AT] = -1
        while state[VARIANT] < variants.shape[0]:
            variant = variants[state[VARIANT]]
            if state[AT] < 0:
                relation = relations[code[variant + START]]
                if relation[FROM] >= relation[TO]:
                    state[VARIANT] += 1
                    continue
                begin_variant(state, relations, variant, code, frames)
            reason = _run(state, relations, indexes, variant, code, frames, nodes, waiting, heap)
            if reason != DONE:
                return reason
            state[VARIANT] += 1
            state[AT] = -1
        state[STAGE] = INDEXES
        found = _close(relations, state[ITERATION])
        state[ITERATION] += 1
        if found == 0:
            if state[LEVELS_WAITING] == 0:
                return DONE
            state[ITERATION] = heap[0]
        state[MOST_FOUND] -= found
        if found > BLOCK // 8 or state[MOST_FOUND] < 0:
            return LARGE
