"""Pieces that the machines share: simple actions, the end of a step, growth of indexes."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import np_int32
from elastalog.backends.kernel.machine.layout import (
    ACTED,
    ACTION,
    ACTION_WIDTH,
    ACTIONS,
    ADDED,
    BEGUN,
    BLOCK,
    BLOCK_AT,
    BLOCK_ROWS,
    COLUMNS,
    COLUMNS_NUMBER,
    COPY,
    DONE,
    END,
    FILL,
    FIRST_INDEX,
    IN_PYTHON,
    INDEX,
    INDEXES_END,
    INSIDE,
    KEEP_EQUAL,
    KEYS,
    KEYS_SHIFT,
    KEYS_SIZE,
    KIND,
    POOL,
    POOL_SIZE,
    ROOM,
    ROWS,
    SLOTS,
    SLOTS_SIZE,
    STATE_AT,
    STATE_LENGTH,
    STEP,
    USED,
    USUAL,
    WIDTH,
)
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.postings import DIRECT, SLOT_WIDTH

_append = piece(postings.append)


@piece
def act(block, used, code, start, end):  # type: ignore[no-untyped-def]
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


@piece
def finish_block(state, frames, code, depth, width, filled, actions, actions_end):  # type: ignore[no-untyped-def]
    """Runs the actions of the step that has filled its block."""
    frame = frames[depth]
    frame[BLOCK_AT] = frame[USUAL]
    frame[BLOCK_ROWS] = BLOCK
    frame[BEGUN] = 0
    frame[END] = filled
    frame[INSIDE] = 0
    state[STEP] = ACTED
    if actions < actions_end:
        if code[actions] == IN_PYTHON:
            state[ACTION] = code[actions + 1]
            return ACTIONS
        frame[END] = act(matrix_at(frame[USUAL], BLOCK, width), filled, code, actions, actions_end)
    return DONE


@piece
def extend_indexes(state, relations, indexes):  # type: ignore[no-untyped-def]
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
