"""The queue of an update: facts that wait for the level they will settle at, lowest level first.

The facts of a level are a list through `nodes`, whose first is `waiting[level]`; `heap` holds the levels that have a
list."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.machine.layout import (
    LEVELS_WAITING,
    NODE_ENTRY,
    NODE_NEXT,
    NODE_RELATION,
    NODES,
)


@piece
def wait(state, nodes, waiting, heap, relation, entry, level):  # type: ignore[no-untyped-def]
    """Files an entry under the level it waits for."""
    node = state[NODES]
    state[NODES] = node + 1
    nodes[node, NODE_ENTRY] = entry
    file_node(state, nodes, waiting, heap, relation, node, level)


@piece
def file_node(state, nodes, waiting, heap, relation, node, level):  # type: ignore[no-untyped-def]
    """Puts a node into the list of a level."""
    nodes[node, NODE_RELATION] = relation
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
def take_lowest(state, heap):  # type: ignore[no-untyped-def]
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
