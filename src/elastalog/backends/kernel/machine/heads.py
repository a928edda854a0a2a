"""What becomes of derivations in an update: they are taken off their heads, offered to them, or to lost ones."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import int64, np_int32
from elastalog.backends.kernel.machine.layout import (
    COUNTS,
    LEVEL,
    LISTED,
    ROOM,
    ROWS,
    SHIFT,
    TABLE_AT,
    TABLE_SIZE,
    TOUCHED,
    TOUCHED_ROOM,
    TOUCHED_USED,
    USED,
    WIDTH,
)
from elastalog.backends.kernel.machine.queue import wait
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    FIXED,
    LOSSES,
    LOST,
    MARKS,
    OLD,
    REFERENCE,
    TOUCHED_WIDTH,
)
from elastalog.backends.kernel.store.bookkeeping import find_row, offer, touch
from elastalog.backends.kernel.store.set_table import add_row


@piece
def lose(block, used, head):  # type: ignore[no-untyped-def]
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
def gain(block, used, relation, head, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Offers new derivations to their heads; facts never seen get a row."""
    block_width = block.shape[1]
    rows = matrix_at(head[ROWS], head[ROOM], head[WIDTH])
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
            add_row(block, i, -1 - row, rows, table, rows_used)
            row = rows_used
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
            wait(state, nodes, waiting, heap, relation, entry, fires)
    head[USED] = rows_used
    head[TOUCHED_USED] = touched_used


@piece
def recover(block, used, relation, head, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Offers derivations found backwards to the lost heads they were asked for (word 0 is the touched entry), as they
    stood before the delta of gains: what the delta adds or lowers is offered when it is propagated."""
    width = block.shape[1]
    touched = matrix_at(head[TOUCHED], head[TOUCHED_ROOM], TOUCHED_WIDTH)
    for i in range(used):
        before = block[i, width - 1]
        if before < ABSENT:
            entry = int64(block[i, 0])
            if offer(entry, before + 1, np_int32(ABSENT), touched):
                wait(state, nodes, waiting, heap, relation, entry, before + 1)


@piece
def highest(block, used):  # type: ignore[no-untyped-def]
    """The highest level at which a derivation of the block fires."""
    width = block.shape[1]
    highest = np_int32(0)
    for i in range(used):
        for c in range(width - 2, width):
            if block[i, c] < ABSENT:
                highest = max(highest, block[i, c])
    return int64(highest) + 1
