"""The queue of an update: facts that wait for the level they will settle at, lowest level first.

The facts of a level are a list through nodes, whose first is `waiting[level]`; `heap` holds the levels that have a
list."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece, words_at
from elastalog.backends.kernel.machine.layout import node_at
from elastalog.jit.operators import view


@view
def waiting_of(machine):  # type: ignore[no-untyped-def]
    """The first node of each level, -1 if it has none."""
    return words_at(machine.waiting, machine.levels_room)


@piece
def wait(machine, relation, entry, level):  # type: ignore[no-untyped-def]
    """Files an entry under the level it waits for."""
    number = machine.nodes_used
    machine.nodes_used = number + 1
    node_at(machine.nodes, number).entry = entry
    file_node(machine, relation, number, level)


@piece
def file_node(machine, relation, number, level):  # type: ignore[no-untyped-def]
    """Puts a node into the list of a level."""
    waiting = waiting_of(machine)
    node = node_at(machine.nodes, number)
    node.relation = relation
    node.next = waiting[level]
    if waiting[level] < 0:
        heap = words_at(machine.heap, machine.levels_room)
        at = machine.levels_waiting
        machine.levels_waiting = at + 1
        while at > 0:
            above = (at - 1) >> 1
            if heap[above] <= level:
                break
            heap[at] = heap[above]
            at = above
        heap[at] = level
    waiting[level] = number


@piece
def lowest_level(machine):  # type: ignore[no-untyped-def]
    """The lowest level that something waits for."""
    return words_at(machine.heap, machine.levels_room)[0]


@piece
def take_lowest(machine):  # type: ignore[no-untyped-def]
    """Takes the lowest level off the heap."""
    heap = words_at(machine.heap, machine.levels_room)
    lowest = heap[0]
    size = machine.levels_waiting - 1
    machine.levels_waiting = size
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
