"""The compiled half of `ranks`: nodes settle in the order of their ranks, and lose them.

    r(d)    = (v(d), 1 + the most steps of the nodes in d's body whose value is v(d), 0 without any)
    rank(x) = the least r(d) of the derivations of x,   count(x) = how many there are with that r

v is the value, in the direction of improvement. A value that is less is below anyway, so every derivation that counts
goes from lower ranks to a higher one, and a count that reaches 0 is a loss.

A node is a vertex in a context; in a *plain* graph there is one context, and the number of a node is that of its
vertex. A link leads from a vertex, or two of them, to its target; one from nowhere gives its weight to a node. `heap`
has (value, steps and node).
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    FINISH,
    INT,
    MATRIX,
    NUMBERS,
    STATE,
    WORDS,
    inlined,
    int64,
    mix,
    np_int32,
    operator,
    pack,
    uint64,
)
from elastalog.backends.kernel.store.annotations import IS, MARKS, ROW, WAS
from elastalog.backends.protocol import GONE
from elastalog.jit.types import record

_NODE = ("vertex", "context", "steps", "count", "present", "next", "given", "noted", "offered", "offered_steps")
NODE = np.dtype([(name, "i4") for name in (*_NODE, "settled", "lost")] + [("value", "i8"), ("offer", "i8")])
"""`next`: the next node of its vertex. `given`: the first link that gives it a value. `noted`, `offered`, `settled`,
`lost`: the last update in which it was. It fills a line of the processor's memory."""
VERTEX = np.dtype([(name, "i4") for name in ("out", "into", "node", "degree")])
"""Its first links either way, its first node, and how many links lead from it."""
_LINK = ("source", "other", "target", "next_out", "next_other", "next_into", "seen")
_REST = [("alive", "i2"), ("is_sum", "i2"), ("weight", "i8"), ("floor", "i8")]
LINK = np.dtype([(name, "i4") for name in _LINK] + _REST)
"""`other`: the second vertex that it leads from, if it does. `seen`: the last update in which it was taken off."""
NOTE = np.dtype([(name, "i4") for name in ("node", "present", "steps", "count")] + [("value", "i8")])
"""What a node was before the update, or what becomes of a fact."""

USED_NODES, USED_HEAP, USED_NOTES, USED_LOST, USED_GONE, USED_COME, AT, LOOKED, UPDATE, MOST_LINKS = range(10)
"""Fields of the state. MOST_LINKS: the most that lead from a vertex. AT: where an operator goes on."""
IS_PLAIN, IS_FLOAT, HAS_SUMS, FAULT, VALUE, STEPS, BEST, BEST_STEPS = range(10, 18)
"""HAS_SUMS: of two values. VALUE, STEPS: of the derivation last looked at; BEST: of the
best one, or of what was taken off the heap."""
STATE_SIZE = 18

TOO_LARGE, BETTER = 1, 2
"""Faults: a value that does not fit, or is NaN; one that is better than what it is made of."""

NOTHING = -1
_FREE = np_int32(0)
LARGEST = int64(0x7FFFFFFFFFFFFFFF)
LOW = int64(0xFFFFFFFF)

_NODES, _VERTICES, _LINKS, _NOTES = record(NODE), record(VERTEX), record(LINK), record(NOTE)


# --- nodes and what derives them -------------------------------------------------------------------------------------


@inlined
def _slot_of(table, nodes, context, vertex):
    """The place of a node in the table, or where it would be."""
    mask = uint64(table.shape[0] - 1)
    at = (mix(pack(context, vertex)) * FINISH >> uint64(20)) & mask
    while table[at] != _FREE:
        node = table[at] - 1
        if nodes[node].vertex == vertex and nodes[node].context == context:
            break
        at = (at + uint64(1)) & mask
    return at


@inlined
def node_of(table, nodes, state, context, vertex):
    """The node of a vertex in a context, NOTHING if there is none."""
    if state[IS_PLAIN]:
        return int64(vertex)
    return int64(table[_slot_of(table, nodes, context, vertex)]) - 1


@inlined
def made_node(table, nodes, vertices, state, context, vertex):
    """The node of a vertex in a context, made if there is none. There must be room."""
    if state[IS_PLAIN]:
        return int64(vertex)
    at = _slot_of(table, nodes, context, vertex)
    if table[at] == _FREE:
        number = state[USED_NODES]
        state[USED_NODES] = number + 1
        table[at] = number + 1
        node = nodes[number]
        node.vertex, node.context = vertex, context
        node.present = node.noted = node.offered = node.settled = node.lost = 0
        node.given = NOTHING
        node.next = vertices[vertex].node
        vertices[vertex].node = number
    return int64(table[at]) - 1


@inlined
def sum_of(one, other, state):
    """The sum of two values. Of floats these are the numbers in whose order they are: see `graph.Order`."""
    if state[IS_FLOAT]:
        first = int64(one if one >= 0 else one ^ LARGEST).view(np.float64)
        second = int64(other if other >= 0 else other ^ LARGEST).view(np.float64)
        total = np.float64(first + second + 0.0).view(np.int64)
        if first + second != first + second:
            state[FAULT] = TOO_LARGE
        return total if total >= 0 else total ^ LARGEST
    if other > 0 and one > LARGEST - other:
        state[FAULT] = TOO_LARGE
        return LARGEST
    return one + other


@inlined
def derive(nodes, links, state, number, source):
    """Whether a link that leads from a node derives something; then VALUE and STEPS say what."""
    link = links[number]
    state[LOOKED] += 1
    state[STEPS] = 1
    if link.source == NOTHING:
        state[VALUE] = link.weight
        return True
    if state[IS_PLAIN]:
        source = int64(link.source)  # the node may be that of the other vertex
    if source == NOTHING or not nodes[source].present:
        return False
    held = nodes[source].value
    value = held
    if link.other != NOTHING:
        second = nodes[link.other]
        if not second.present:
            return False
        if link.is_sum:
            value = sum_of(held, second.value, state)
        elif second.value > held:
            value = second.value
    if link.floor > value:
        value = link.floor
    if link.weight != 0:
        value = sum_of(value, link.weight, state)
    state[VALUE] = value
    if value == held:
        state[STEPS] = nodes[source].steps + 1
    if link.other != NOTHING and nodes[link.other].value == value and nodes[link.other].steps >= state[STEPS]:
        state[STEPS] = nodes[link.other].steps + 1
    return True


@inlined
def find_best(nodes, vertices, links, table, state, node):
    """How many derivations of a node have the least rank, BEST and BEST_STEPS."""
    best, best_steps, count = LARGEST, int64(0), int64(0)
    for is_given in range(2):
        number = int64(nodes[node].given) if is_given else int64(vertices[nodes[node].vertex].into)
        while number != NOTHING:
            link = links[number]
            if link.alive:
                source = node_of(table, nodes, state, nodes[node].context, link.source)
                if derive(nodes, links, state, number, source):
                    value, steps = state[VALUE], state[STEPS]
                    if count == 0 or value < best or (value == best and steps < best_steps):
                        best, best_steps, count = value, steps, int64(1)
                    elif value == best and steps == best_steps:
                        count += 1
            number = int64(link.next_into)
    state[BEST], state[BEST_STEPS] = best, best_steps
    return count


@inlined
def next_from(links, number, vertex):
    """The next link that leads from a vertex."""
    return int64(links[number].next_out if links[number].source == vertex else links[number].next_other)


# --- what waits ------------------------------------------------------------------------------------------------------


@inlined
def _is_less(heap, at, value, low):
    return heap[at, 0] < value or (heap[at, 0] == value and heap[at, 1] < low)


@inlined
def _push(heap, state, value, low):
    at = state[USED_HEAP]
    state[USED_HEAP] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if not (value < heap[above, 0] or (value == heap[above, 0] and low < heap[above, 1])):
            break
        heap[at, 0] = heap[above, 0]
        heap[at, 1] = heap[above, 1]
        at = above
    heap[at, 0] = value
    heap[at, 1] = low


@inlined
def pop_least(heap, state):
    """Takes the least off the heap: its value is BEST, the rest is returned."""
    state[BEST], least = heap[0, 0], heap[0, 1]
    size = state[USED_HEAP] - 1
    state[USED_HEAP] = size
    value, low = heap[size, 0], heap[size, 1]
    at = int64(0)
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _is_less(heap, below + 1, heap[below, 0], heap[below, 1]):
            below += 1
        if not _is_less(heap, below, value, low):
            break
        heap[at, 0] = heap[below, 0]
        heap[at, 1] = heap[below, 1]
        at = below
    heap[at, 0] = value
    heap[at, 1] = low
    return least


@inlined
def offer_rank(nodes, heap, state, number, value, steps):
    """A derivation offers a node a rank: it waits, if that is not above the one that it has, nor offered already."""
    node = nodes[number]
    if node.present and (value > node.value or (value == node.value and steps > node.steps)):
        return
    is_above = value > node.offer or (value == node.offer and steps >= node.offered_steps)
    if node.offered == state[UPDATE] and is_above:
        return
    node.offered, node.offered_steps, node.offer = state[UPDATE], steps, value
    _push(heap, state, value, (steps << 32) | number)


@inlined
def offer(heap, nodes, vertices, links, table, state, number, source):
    """Offers what a link from a node derives. There must be room for its target."""
    if derive(nodes, links, state, number, source):
        target = int64(links[number].target)
        if links[number].source != NOTHING:
            target = made_node(table, nodes, vertices, state, nodes[source].context, target)
        offer_rank(nodes, heap, state, target, state[VALUE], state[STEPS])


@inlined
def has_room(more, heap, nodes, table, state):
    """Whether there is room for `more` entries of the heap, each a new node."""
    if state[USED_HEAP] + more > heap.shape[0]:
        return False
    used = state[USED_NODES] + more
    return bool(state[IS_PLAIN]) or (used <= nodes.shape[0] and 2 * used <= table.shape[0])


# --- losses ----------------------------------------------------------------------------------------------------------


@inlined
def note_node(nodes, notes, state, number):
    """Notes what a node was before the update, once."""
    node = nodes[number]
    if node.noted != state[UPDATE]:
        node.noted = state[UPDATE]
        note = notes[state[USED_NOTES]]
        state[USED_NOTES] += 1
        note.node, note.present, note.steps, note.count = number, node.present, node.steps, node.count
        note.value = node.value


@inlined
def take_off(notes, lost, nodes, links, table, state, number, source):
    """A derivation goes. If it counted, it is taken off its target; a node without any is lost."""
    if not derive(nodes, links, state, number, source):
        return
    target = int64(links[number].target)
    if links[number].source != NOTHING:
        target = node_of(table, nodes, state, nodes[source].context, target)
    if target == NOTHING:
        return
    node = nodes[target]
    if node.lost == state[UPDATE] or not node.present or state[VALUE] != node.value or state[STEPS] != node.steps:
        return
    note_node(nodes, notes, state, target)
    node.count -= 1
    if node.count == 0:
        node.lost = state[UPDATE]
        lost[state[USED_LOST]] = target
        state[USED_LOST] += 1


@operator(INT, _NOTES, WORDS, WORDS, _NODES, _VERTICES, _LINKS, WORDS, STATE)
def lose(notes, lost, gone, nodes, vertices, links, table, state):
    """Takes off what is derived by links that go, over the ranks as they were, to its end. Then these are dead, and
    lost nodes absent. Returns how many are lost. `notes` and `lost` have room for all nodes."""
    update = state[UPDATE]
    for i in range(state[USED_GONE]):
        number = int64(gone[i])
        links[number].seen = update
        if links[number].source == NOTHING:
            take_off(notes, lost, nodes, links, table, state, number, int64(NOTHING))
        else:
            node = int64(vertices[links[number].source].node)
            while node != NOTHING:
                take_off(notes, lost, nodes, links, table, state, number, node)
                node = int64(nodes[node].next)
    at = int64(0)
    while at < state[USED_LOST]:
        node = int64(lost[at])
        at += 1
        vertex = nodes[node].vertex
        number = int64(vertices[vertex].out)
        while number != NOTHING:
            if links[number].alive and links[number].seen != update:
                if links[number].other != NOTHING:
                    links[number].seen = update  # the second that is lost takes nothing off again
                take_off(notes, lost, nodes, links, table, state, number, node)
            number = next_from(links, number, vertex)
    for i in range(state[USED_GONE]):
        links[gone[i]].alive = 0
    for i in range(state[USED_LOST]):
        nodes[lost[i]].present = 0
    return state[USED_LOST]


# --- recovery and gains ----------------------------------------------------------------------------------------------


@operator(INT, NUMBERS, WORDS, WORDS, _NODES, _VERTICES, _LINKS, WORDS, STATE)
def bring(heap, lost, come, nodes, vertices, links, table, state):
    """Offers lost nodes the best rank that what is left gives them, and what links that came derive, which are alive
    from now on. Goes on from AT. Returns 1 when all is done, 0 when there may be no room for the next one."""
    while state[AT] < state[USED_LOST] + state[USED_COME]:
        at = state[AT] - state[USED_LOST]
        more = int64(1) if at < 0 or state[IS_PLAIN] else state[USED_NODES] + 1
        if not has_room(more, heap, nodes, table, state):
            return 0
        state[AT] += 1
        if at < 0:
            node = int64(lost[state[AT] - 1])
            if find_best(nodes, vertices, links, table, state, node):
                offer_rank(nodes, heap, state, node, state[BEST], state[BEST_STEPS])
            continue
        number = int64(come[at])
        links[number].alive = 1
        if links[number].source == NOTHING:
            offer(heap, nodes, vertices, links, table, state, number, int64(NOTHING))
        else:
            node = int64(vertices[links[number].source].node)
            while node != NOTHING:
                offer(heap, nodes, vertices, links, table, state, number, node)
                node = int64(nodes[node].next)
    return 1


@operator(INT, INT, NUMBERS, _NOTES, _NODES, _VERTICES, _LINKS, WORDS, STATE)
def settle(most, heap, notes, nodes, vertices, links, table, state):
    """Settles what is offered, the least rank first, and offers what follows from it. Returns 1 when there is nothing
    left or at a fault, 0 when there is no room, 2 when more than `most` derivations have been looked at."""
    while state[USED_HEAP] > 0 and not state[FAULT]:
        if state[LOOKED] > most:
            return 2
        room = has_room(state[MOST_LINKS] + 1, heap, nodes, table, state)
        if not room or state[USED_NOTES] >= notes.shape[0]:
            return 0
        low = pop_least(heap, state)
        value, number, steps = state[BEST], low & LOW, low >> 32
        node = nodes[number]
        is_other = not node.present or node.value != value or node.steps != steps
        if node.settled == state[UPDATE]:
            continue
        if node.present and (value > node.value or (value == node.value and steps > node.steps)):
            continue
        count = find_best(nodes, vertices, links, table, state, number)
        if count == 0 or state[BEST] != value or state[BEST_STEPS] != steps:
            continue  # what offered it has got better since, and offered again
        if state[HAS_SUMS] and value < 0:
            state[FAULT] = BETTER
        note_node(nodes, notes, state, number)
        node.settled = state[UPDATE]
        node.present = 1
        node.steps, node.count, node.value = steps, count, value
        if is_other:
            link = int64(vertices[node.vertex].out)
            while link != NOTHING:
                if links[link].alive:
                    offer(heap, nodes, vertices, links, table, state, link, number)
                link = next_from(links, link, node.vertex)
    return 1


# --- an update, from beginning to end --------------------------------------------------------------------------------


@operator(INT, WORDS, MATRIX, WORDS, WORDS, WORDS, _LINKS, STATE)
def collect(entries, touched, known, gone, come, links, state):
    """The links that went and that came, of the changed entries of a relation. Returns 0, with nothing done, if one is
    not known yet."""
    for i in range(entries.shape[0]):
        if known[touched[entries[i], ROW]] == NOTHING:
            return 0
    for i in range(entries.shape[0]):
        marks, link = touched[entries[i], MARKS], known[touched[entries[i], ROW]]
        if marks & WAS and not marks & IS:
            gone[state[USED_GONE]] = link
            state[USED_GONE] += 1
        elif marks & IS and not marks & WAS:
            come[state[USED_COME]] = link
            state[USED_COME] += 1
            if links[link].source != NOTHING and links[link].weight < 0:
                state[FAULT] = BETTER
    return 1


@operator(INT, INT, _NOTES, _NOTES, _NODES, MATRIX, STATE)
def tell(relation, told, notes, nodes, keys, state):
    """The facts of a relation that went (steps GONE), came, or have another rank. Returns how many there are."""
    used = 0
    for i in range(state[USED_NOTES]):
        note = notes[i]
        node = nodes[note.node]
        if keys[node.vertex, 0] == relation:
            is_same = note.present and node.present and note.value == node.value
            if note.present and not is_same:
                fact = told[used]
                fact.node, fact.steps, fact.count, fact.value = note.node, GONE, 0, note.value
                used += 1
            if node.present and not (is_same and note.steps == node.steps and note.count == node.count):
                fact = told[used]
                fact.node, fact.steps, fact.count, fact.value = note.node, node.steps, node.count, node.value
                used += 1
    return used


# --- tables ----------------------------------------------------------------------------------------------------------


@operator(INT, INT, WORDS, WORDS, WORDS, STATE, STATE, _NODES, _VERTICES, _LINKS, STATE)
def put_in(first, sources, others, targets, weights, floors, nodes, vertices, links, state):
    """Makes links, not alive yet, and puts them into the lists of what they lead from and to. Those without sources
    lead to nodes."""
    for i in range(targets.shape[0]):
        number = first + i
        link, target = links[number], targets[i]
        link.target, link.weight, link.floor = target, weights[i], floors[i]
        link.seen = link.alive = link.is_sum = 0
        link.source = link.other = NOTHING
        if sources.shape[0] == 0:
            link.next_into = nodes[target].given
            nodes[target].given = number
            continue
        link.next_into = vertices[target].into
        vertices[target].into = number
        source = sources[i]
        link.source, link.next_out = source, vertices[source].out
        vertices[source].out = number
        vertices[source].degree += 1
        state[MOST_LINKS] = max(state[MOST_LINKS], int64(vertices[source].degree))
        if others.shape[0] > 0:
            other = others[i]
            link.other = other
            if other != source:
                link.next_other = vertices[other].out
                vertices[other].out = number
                vertices[other].degree += 1
                state[MOST_LINKS] = max(state[MOST_LINKS], int64(vertices[other].degree))
    return 0


@operator(INT, INT, WORDS, _LINKS, STATE)
def begin(used, come, links, state):
    """From what an evaluation begins: the links from nowhere. A FAULT if another one makes values better."""
    for number in range(used):
        if links[number].alive and links[number].source == NOTHING:
            come[state[USED_COME]] = number
            state[USED_COME] += 1
        elif links[number].alive and links[number].weight < 0:
            state[FAULT] = BETTER
    return 0


@operator(INT, _NODES, WORDS, STATE)
def fill_table(nodes, table, state):
    """Puts nodes into an empty table."""
    for node in range(state[USED_NODES]):
        table[_slot_of(table, nodes, nodes[node].context, nodes[node].vertex)] = node + 1
    return 0


@operator(INT, WORDS, WORDS, WORDS, INT, _NODES, _VERTICES, WORDS, STATE)
def find_nodes(found, contexts, of_vertices, first, nodes, vertices, table, state):
    """The nodes of vertices in contexts, made where there are none. Goes on from `first`; returns how many are done:
    all, or those for which there is room."""
    for i in range(first, of_vertices.shape[0]):
        if 2 * (state[USED_NODES] + 1) > table.shape[0] or state[USED_NODES] >= nodes.shape[0]:
            return i
        found[i] = made_node(table, nodes, vertices, state, contexts[i], of_vertices[i])
    return of_vertices.shape[0]
