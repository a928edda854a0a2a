"""Bucket queues: of an update, facts that wait for the level they will settle at, lowest level first; of a bootstrap
with global levels, derivations that fire later than the level that is being found, because a fact of a lower relation
is that high. In the latter, the words of a node are those of the head, and nodes whose derivations have been taken are
used again.

The facts of a level are a list through nodes, whose first is `waiting[level]`; `heap` holds the levels that have a
list."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import int64, matrix_at, np_int32, piece, words_at
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.machine.layout import DONE, NO_LEVELS, NO_NODES, facts_of, home_of, node_at, relation_at
from elastalog.backends.kernel.store.set_table import add_row, find_row, keep_row
from elastalog.jit.operators import view


@view
def waiting_of(machine):
    """The first node of each level, -1 if it has none."""
    return words_at(machine.waiting, machine.levels_room)


@piece
def wait(machine, relation, entry, level):
    """Files an entry under the level it waits for."""
    number = machine.nodes_used
    machine.nodes_used = number + 1
    node_at(machine.nodes, number).entry = entry
    file_node(machine, relation, number, level)


@piece
def file_node(machine, relation, number, level):
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
def lowest_level(machine):
    """The lowest level that something waits for."""
    return words_at(machine.heap, machine.levels_room)[0]


@piece
def take_lowest(machine):
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


@piece
def is_earlier(block, i, level):
    """Whether a derivation of a block fires at a level or before."""
    return int64(block[i, block.shape[1] - LEVELS]) + 1 <= level


@piece
def put_off(machine, block, start, stop, level, relation, width):
    """Files the rows of block[start:stop] that fire after `level`; the others (`kept`) move to the front of the range.
    Says what is missing for that, having done nothing. `width`: words of the head."""
    highest = int64(0)
    later = 0
    for i in range(start, stop):
        if not is_earlier(block, i, level):
            later += 1
            highest = max(highest, int64(block[i, block.shape[1] - LEVELS]) + 1)
    machine.kept = stop - start
    if later == 0:
        return DONE
    machine.highest = highest
    if highest >= machine.levels_room:
        return NO_LEVELS
    if machine.nodes_used + later > machine.nodes_room + machine.free_nodes:
        return NO_NODES
    words = matrix_at(machine.words, machine.nodes_room, machine.words_width)
    kept = start
    for i in range(start, stop):
        if is_earlier(block, i, level):
            kept = keep_row(block, kept, i)
        else:
            number = int64(machine.free_node)
            if machine.free_nodes > 0:
                machine.free_node = node_at(machine.nodes, number).next
                machine.free_nodes -= 1
            else:
                number = machine.nodes_used
                machine.nodes_used += 1
            for c in range(width):
                words[number, c] = block[i, c]
            file_node(machine, relation, number, int64(block[i, block.shape[1] - LEVELS]) + 1)
    machine.kept = kept - start
    return DONE


@piece
def insert_due(machine, level):
    """Inserts the heads of the derivations that fire at a level; False if one has no room."""
    waiting = waiting_of(machine)
    if level >= machine.levels_room or waiting[level] < 0:
        return True
    words = matrix_at(machine.words, machine.nodes_room, machine.words_width)
    number = int64(waiting[level])
    while number >= 0:
        machine.full = node_at(machine.nodes, number).relation
        relation = relation_at(machine.relations, machine.full)
        home = home_of(relation)
        if home.used >= home.room:
            waiting[level] = number
            return False
        facts = facts_of(relation)
        row = find_row(words, number, facts)
        if row < 0:
            add_row(words, number, -1 - row, facts, home.used)
            facts.count[home.used] = 1
            facts.level[home.used] = np_int32(level)
            home.used += 1
        elif row >= relation.delta_end:
            facts.count[row] += 1
        node = node_at(machine.nodes, number)
        following = int64(node.next)
        node.next = machine.free_node  # from now on the node is free
        machine.free_node = number
        machine.free_nodes += 1
        number = following
    waiting[level] = -1
    take_lowest(machine)
    return True
