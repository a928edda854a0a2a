"""The calendar of a bootstrap with global levels: derivations that fire later than the level that is being found,
because a fact of a lower relation is that high. Each is kept until its level has come.

The derivations of a level are a list through nodes, as in the queue of an update; a node begins with the words of the
head. Nodes whose derivations have been taken are used again."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, WORDS, int64, operator
from elastalog.backends.kernel.execution.join_levels import LEVELS
from elastalog.backends.kernel.machine.layout import (
    COUNTS,
    DONE,
    FREE_NODE,
    FREE_NODES,
    FULL,
    HIGHEST,
    ITERATION,
    NO_LEVELS,
    NO_NODES,
    NODE_NEXT,
    NODE_RELATION,
    NODES,
    ROOM,
    ROWS,
    SHIFT,
    TABLE_AT,
    TABLE_SIZE,
    TO,
    USED,
    WIDTH,
)
from elastalog.backends.kernel.machine.queue import file_node, take_lowest
from elastalog.backends.kernel.store.bookkeeping import find_row
from elastalog.backends.kernel.store.set_table import FILLED, add_row


@piece
def put_off(block, start, stop, level, relation, words, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Files the rows of block[start:stop] that fire after `level`; the others move to the front of the range, whose end
    is then in FILLED. Says what is missing for that, having done nothing."""
    width = block.shape[1]
    highest = int64(0)
    later = 0
    for i in range(start, stop):
        fires = int64(block[i, width - LEVELS]) + 1
        if fires > level:
            later += 1
            highest = max(highest, fires)
    state[FILLED] = stop
    if later == 0:
        return DONE
    state[HIGHEST] = highest
    if highest >= waiting.shape[0]:
        return NO_LEVELS
    if state[NODES] + later > nodes.shape[0] + state[FREE_NODES]:
        return NO_NODES
    kept = start
    for i in range(start, stop):
        fires = int64(block[i, width - LEVELS]) + 1
        if fires > level:
            node = state[NODES]
            if state[FREE_NODES] > 0:
                node = state[FREE_NODE]
                state[FREE_NODE] = nodes[node, NODE_NEXT]
                state[FREE_NODES] -= 1
            else:
                state[NODES] = node + 1
            for c in range(words):
                nodes[node, c] = block[i, c]
            file_node(state, nodes, waiting, heap, relation, node, fires)
        else:
            if kept != i:
                for c in range(width):
                    block[kept, c] = block[i, c]
            kept += 1
    state[FILLED] = kept
    return DONE


@piece
def _free(state, nodes, node):  # type: ignore[no-untyped-def]
    """Gives back a node; returns the one that came after it."""
    following = int64(nodes[node, NODE_NEXT])
    nodes[node, NODE_NEXT] = state[FREE_NODE]
    state[FREE_NODE] = node
    state[FREE_NODES] += 1
    return following


@piece
def insert_due(state, relations, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Inserts the heads of the derivations that fire in the present iteration; False if one has no room."""
    level = state[ITERATION]
    if level >= waiting.shape[0] or waiting[level] < 0:
        return True
    node = int64(waiting[level])
    while node >= 0:
        state[FULL] = nodes[node, NODE_RELATION]
        relation = relations[state[FULL]]
        used = relation[USED]
        if used >= relation[ROOM]:
            waiting[level] = node
            return False
        rows = matrix_at(relation[ROWS], relation[ROOM], relation[WIDTH])
        table = keys_at(relation[TABLE_AT], relation[TABLE_SIZE])
        count = words_at(relation[COUNTS], relation[ROOM])
        row = find_row(nodes, node, rows, table, relation[SHIFT])
        if row < 0:
            add_row(nodes, node, -1 - row, rows, table, used)
            count[used] = 1
            relation[USED] = used + 1
        elif row >= relation[TO]:
            count[row] += 1
        node = _free(state, nodes, node)
    waiting[level] = -1
    take_lowest(state, heap)
    return True


@operator(INT, MATRIX, INT, INT, INT, INT, STATE, MATRIX, WORDS, WORDS)
def put_off_block(block, used, level, relation, words, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """`put_off` for all rows of a block."""
    return put_off(block, 0, used, level, relation, words, state, nodes, waiting, heap)


@operator(INT, INT, INT, MATRIX, STATE, MATRIX, WORDS, WORDS)
def take_due(level, words, block, state, nodes, waiting, heap):  # type: ignore[no-untyped-def]
    """Takes heads that fire at a level, all of one relation (FULL), until the block is full; returns how many. 0: there
    are no more."""
    filled = 0
    if level >= waiting.shape[0] or waiting[level] < 0:
        return filled
    node = int64(waiting[level])
    state[FULL] = nodes[node, NODE_RELATION]
    while node >= 0 and filled < block.shape[0] and nodes[node, NODE_RELATION] == state[FULL]:
        for c in range(words):
            block[filled, c] = nodes[node, c]
        filled += 1
        node = _free(state, nodes, node)
    waiting[level] = node
    if node < 0:
        take_lowest(state, heap)
    return filled
