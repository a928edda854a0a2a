"""The step of the machines that joins bindings that carry levels."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.execution import delta_variant
from elastalog.backends.kernel.execution import join_levels as level_operators
from elastalog.backends.kernel.machine.layout import (
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    COLUMNS,
    COLUMNS_NUMBER,
    END,
    HOW,
    INDEX_OF,
    INDEXED,
    INSIDE,
    IS_BEFORE,
    IS_FLAT,
    IS_NEGATED,
    KEEP,
    KEPT,
    KEY,
    KEY_WIDTH,
    KEYS,
    KEYS_SHIFT,
    KEYS_SIZE,
    KIND,
    LEVEL,
    LOSING,
    OUT_WIDTH,
    POOL,
    POOL_SIZE,
    RELATION,
    ROOM,
    ROWS,
    SHIFT,
    SLOTS,
    SLOTS_SIZE,
    TABLE_AT,
    TABLE_SIZE,
    TAKE,
    TAKEN,
    TOUCHED,
    TOUCHED_ROOM,
    USUAL,
    WIDTH,
)
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH
from elastalog.backends.kernel.store.postings import SLOT_WIDTH
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN

VIEWS = np.array(
    [
        [phase.sees, phase.sees_before, phase.lacks, phase.lacks_before]
        for phase in (delta_variant.LOSSES, delta_variant.GAINS, delta_variant.GAINS, delta_variant.SURVIVING)
    ],
    np.int64,
)  # fmt: skip
"""What goals see, by phase: facts, facts when they stand before the start, absences, likewise."""

_join = piece(level_operators.join_levels)


@piece
def probe_levels(state, relations, indexes, probe, code, frames, depth, width, phase, limit):  # type: ignore[no-untyped-def]
    """Joins what is left of a step's block with the rows below `limit` of the relation of the next step, until the next
    block is full."""
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
    seen = VIEWS[phase, (2 if is_negated else 0) + code[probe + IS_BEFORE]]
    key_at = code[probe + KEY]
    keep_at = code[probe + KEEP]
    take_at = code[probe + TAKE]
    kept = code[probe + KEPT]
    taken = code[probe + TAKEN]
    key = code[key_at : key_at + code[probe + KEY_WIDTH]]
    state[FILLED] = 0
    state[WITHIN] = frame[INSIDE]
    _join(
        left, frame[BEGUN], frame[END], key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, seen,
        phase == LOSING, relation[IS_FLAT] != 0, is_negated, code[keep_at : keep_at + kept],
        code[keep_at + kept : keep_at + 2 * kept], code[take_at : take_at + taken],
        code[take_at + taken : take_at + 2 * taken], out, state,
    )  # fmt: skip
    frame[BEGUN] = state[NEXT]
    frame[INSIDE] = state[WITHIN]
    return state[FILLED]
