"""Pieces that the machines share: simple actions, the end of a step, growth of indexes."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import inlined, int64, np_int32
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.arrays import rows_of
from elastalog.backends.kernel.machine.layout import BLOCK, action_at, index_at, relation_at
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.postings import DIRECT, SLOT_WIDTH
from elastalog.backends.kernel.store.whereabouts import index_whereabouts_at
from elastalog.relations.limits import LEAST_NARROW, WIDE

_append = piece(postings.append)


@inlined
def _second(block, i, second, is_constant):  # type: ignore[no-untyped-def]
    """The second operand of an action."""
    return np_int32(second) if is_constant else block[i, second]


@inlined
def _made(kind, left, right):  # type: ignore[no-untyped-def]
    """What an action makes of two numbers. Division is towards zero."""
    if kind == layout.ADD:
        return left + right
    if kind == layout.SUBTRACT:
        return left - right
    if kind == layout.MULTIPLY:
        return left * right
    if kind == layout.DIVIDE or kind == layout.REMAINDER:
        quotient = -(-left // right) if left < 0 else left // right
        return quotient if kind == layout.DIVIDE else left - quotient * right
    return int64(0)


@inlined
def _are_narrow(left, right):  # type: ignore[no-untyped-def]
    """Whether two words of numbers are the numbers themselves."""
    return left < WIDE and right < WIDE


@piece
def _compute(kind, first, second, is_constant, result, block, used):  # type: ignore[no-untyped-def]
    """Writes what an action makes of two numbers, row by row; False if one is not its own word, or would not be."""
    for i in range(used):
        left = int64(block[i, first])
        right = int64(_second(block, i, second, is_constant))
        made = _made(kind, left, right)
        if not _are_narrow(left, right) or made >= WIDE or made < LEAST_NARROW:
            return False
        block[i, result] = np_int32(made)
    return True


@piece
def _can_compare(first, second, is_constant, block, used):  # type: ignore[no-untyped-def]
    """Whether an action finds no numbers that are not their own words."""
    is_narrow = True
    for i in range(used):
        is_narrow &= _are_narrow(block[i, first], _second(block, i, second, is_constant))
    return is_narrow


@piece
def _act(machine, block, used, begin, end):  # type: ignore[no-untyped-def]
    """Runs simple actions on the first rows of a block; returns how many rows are left. -1 and less if a number is not
    its own word: then -1 - the rows that are left, on which all actions are to be run in Python, though some have
    been."""
    width = block.shape[1]
    for number in range(begin, end):
        action = action_at(machine.actions, number)
        kind = action.kind
        first, second, is_constant, result = action.first, action.second, action.is_constant != 0, action.result
        if kind == layout.COPY:
            for i in range(used):
                block[i, result] = _second(block, i, second, is_constant)
        elif kind >= layout.ADD and kind <= layout.REMAINDER:
            if not _compute(kind, first, second, is_constant, result, block, used):
                return -1 - used
        elif kind > layout.REMAINDER and not _can_compare(first, second, is_constant, block, used):
            return -1 - used
        else:
            kept = 0
            for i in range(used):
                word = block[i, first]
                other = _second(block, i, second, is_constant)
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


@inlined
def finish_block(machine, step, frame, filled):  # type: ignore[no-untyped-def]
    """A step, the start of a variant or a probe, has filled its block: runs its actions."""
    frame.block = frame.usual
    frame.rows = BLOCK
    frame.width = step.width
    frame.begun = 0
    frame.end = filled
    frame.within = 0
    return layout.DONE if step.first_action == step.actions_end else _run_actions(machine, step, frame)


@piece
def _run_actions(machine, step, frame):  # type: ignore[no-untyped-def]
    """The actions of a step, or ACTIONS if they are to be run in Python."""
    action = action_at(machine.actions, step.first_action)
    machine.action = action.first
    if action.kind == layout.IN_PYTHON:
        return layout.ACTIONS
    first = step.first_action + (1 if action.kind == layout.IF_NARROW else 0)
    left = _act(machine, matrix_at(frame.usual, BLOCK, step.width), frame.end, first, step.actions_end)
    frame.end = left if left >= 0 else -1 - left
    return layout.DONE if left >= 0 else layout.ACTIONS


@piece
def extend_indexes(machine):  # type: ignore[no-untyped-def]
    """Adds the latest rows to the indexes of the stratum's relations; False if one is full."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        for i in range(relation.first_index, relation.indexes_end):
            index = index_at(machine.indexes, i)
            if index.added < relation.used and not extend_index(index, relation):
                machine.full_index = i
                return False
    return True


@piece
def extend_index(index, relation):  # type: ignore[no-untyped-def]
    """Adds the latest rows of a relation to an index; False if it is full."""
    index.added = extend_part(index, relation, index.added, 0, 1)
    return index.added >= relation.used


@piece
def extend_part(index, relation, start, part, parts):  # type: ignore[no-untyped-def]
    """Adds the rows of some keys to an index, from a row on; returns where it is full, or the relation ends."""
    return _append(
        rows_of(relation), start, relation.used, numbers_at(index.columns, index.columns_number),
        index.kind == DIRECT, keys_at(index.keys, index.keys_size), index.shift,
        matrix_at(index.slots, index.slots_size, SLOT_WIDTH), words_at(index.pool, index.pool_size),
        numbers_at(index.state, index.state_size), part, parts,
    )  # fmt: skip


@piece
def catch_up(machine, number):  # type: ignore[no-untyped-def]
    """Brings an index up to date that lacks rows which a drive has added to its relation; False if that is to be done
    in Python, since it is full, or is not there."""
    index = index_at(machine.indexes, number)
    machine.full_index = number
    if index.home == 0:
        return False
    home = index_whereabouts_at(index.home, 0)
    index.added = home.added
    is_done = extend_index(index, relation_at(machine.relations, index.relation))
    home.added = index.added
    if is_done:
        index.is_missing = 0
    else:
        index.added = layout.NEVER
    return is_done
