"""Pieces that the machines share: simple actions, the end of a step, growth of indexes."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import int64, np_int32
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.arrays import rows_of
from elastalog.backends.kernel.machine.layout import BLOCK, action_at, index_at, relation_at
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.postings import DIRECT, SLOT_WIDTH
from elastalog.relations.limits import LEAST_NARROW, WIDE

_append = piece(postings.append)


@piece
def _second(block, i, action):  # type: ignore[no-untyped-def]
    """The second operand of an action."""
    return np_int32(action.second) if action.is_constant else block[i, action.second]


@piece
def _act(machine, block, used, first, end):  # type: ignore[no-untyped-def]
    """Runs simple actions on the first rows of a block; returns how many rows are left."""
    width = block.shape[1]
    for number in range(first, end):
        action = action_at(machine.actions, number)
        kind = action.kind
        if kind == layout.COPY:
            for i in range(used):
                block[i, action.result] = _second(block, i, action)
        elif kind == layout.ADD:
            for i in range(used):
                block[i, action.result] = np_int32(block[i, action.first] + _second(block, i, action))
        elif kind == layout.SUBTRACT:
            for i in range(used):
                block[i, action.result] = np_int32(block[i, action.first] - _second(block, i, action))
        else:
            kept = 0
            for i in range(used):
                word = block[i, action.first]
                other = _second(block, i, action)
                if kind == layout.KEEP_EQUAL:
                    holds = word == other
                elif kind == layout.KEEP_UNEQUAL:
                    holds = word != other
                elif kind == layout.KEEP_LESS:
                    holds = word < other
                elif kind == layout.KEEP_AT_MOST:
                    holds = word <= other
                elif kind == layout.KEEP_MORE:
                    holds = word > other
                else:
                    holds = word >= other
                if holds:
                    if kept != i:
                        for c in range(width):
                            block[kept, c] = block[i, c]
                    kept += 1
            used = kept
    return used


@piece
def _is_narrow(machine, block, used, first, end):  # type: ignore[no-untyped-def]
    """Whether actions on numbers find, and make, none that are not their own words. Nothing is written."""
    for number in range(first, end):
        action = action_at(machine.actions, number)
        if action.kind >= layout.ADD:
            for i in range(used):
                left = int64(block[i, action.first])
                right = int64(_second(block, i, action))
                made = int64(0)
                if action.kind == layout.ADD:
                    made = left + right
                elif action.kind == layout.SUBTRACT:
                    made = left - right
                if left >= WIDE or right >= WIDE or made >= WIDE or made < LEAST_NARROW:
                    return False
    return True


@piece
def finish_block(machine, step, frame, filled):  # type: ignore[no-untyped-def]
    """A step, the start of a variant or a probe, has filled its block: runs its actions."""
    frame.block = frame.usual
    frame.rows = BLOCK
    frame.width = step.width
    frame.begun = 0
    frame.end = filled
    frame.within = 0
    machine.step = layout.ACTED
    if step.first_action < step.actions_end:
        action = action_at(machine.actions, step.first_action)
        first = step.first_action
        block = matrix_at(frame.usual, BLOCK, step.width)
        is_in_python = action.kind == layout.IN_PYTHON
        if action.kind == layout.IF_NARROW:
            first += 1
            is_in_python = not _is_narrow(machine, block, filled, first, step.actions_end)
        if is_in_python:
            machine.action = action.first
            return layout.ACTIONS
        frame.end = _act(machine, block, filled, first, step.actions_end)
    return layout.DONE


@piece
def extend_indexes(machine):  # type: ignore[no-untyped-def]
    """Adds the latest rows to the indexes of the stratum's relations; False if one is full."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        for i in range(relation.first_index, relation.indexes_end):
            index = index_at(machine.indexes, i)
            if index.added < relation.used:
                index.added = _append(
                    rows_of(relation), index.added, relation.used, numbers_at(index.columns, index.columns_number),
                    index.kind == DIRECT, keys_at(index.keys, index.keys_size), index.shift,
                    matrix_at(index.slots, index.slots_size, SLOT_WIDTH), words_at(index.pool, index.pool_size),
                    numbers_at(index.state, index.state_size),
                )  # fmt: skip
                if index.added < relation.used:
                    machine.full_index = i
                    return False
    return True
