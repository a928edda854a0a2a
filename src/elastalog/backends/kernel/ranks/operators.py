"""The compiled half of `ranks`: nodes settle in the order of their ranks, and lose them.

    r(d)    = (v(d), 1 + l(f)) of a derivation d from f if v(f) = v(d), otherwise (v(d), 1)
    rank(x) = the least r(d) of the derivations of x,   count(x) = how many there are with that r

v is the value, in the direction of improvement; l is the number of steps. A value that is less is below anyway, so
every derivation that counts goes from a lower rank to a higher one, and a count that reaches 0 is a loss.

Tables are matrices: `nodes`, `values` (two numbers a node: its value, and the one that was offered), `vertices`,
`edges` with `weights` (weight, floor), `bases` with `given` values. A node is a vertex in a context; in a *plain*
graph there is one context, and the number of a node is that of its vertex. `heap` has (value, steps and node).
"""

from __future__ import annotations

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

VERTEX, CONTEXT, STEPS, COUNT, PRESENT, NEXT, BASE, NOTED, OFFERED, OFFERED_STEPS, DONE, WAS_LOST = range(12)
"""Of a node. NEXT: the next node of its vertex. BASE: its first base. NOTED, OFFERED, DONE and WAS_LOST: the last
update in which it was noted, offered a rank, settled, lost."""
NODE_WIDTH = 12
FIRST_OUT, FIRST_IN, FIRST_NODE = range(3)
"""Of a vertex."""
SOURCE, TARGET, NEXT_OUT, NEXT_IN, ALIVE, SEEN = range(6)
"""Of an edge. SEEN: the last update in which it was taken off."""
EDGE_WIDTH = 6
BASE_NODE, BASE_NEXT, BASE_ALIVE = range(3)
HELD, OFFER = range(2)
"""Of values."""
NOTE_WIDTH = 5
"""A note: node, whether it was present, value, steps, count, all before the update."""

USED_NODES, USED_HEAP, USED_NOTES, USED_LOST, LOOKED, UPDATE, IS_PLAIN, MOST_EDGES, FAULT, AT, TOP_VALUE, TOP_LOW = (
    range(12)
)
"""Of the state. MOST_EDGES: of all vertices. AT: where an operator goes on. FAULT: a value was out of range."""
STATE_SIZE = 12

NOTHING = -1
_FREE = np_int32(0)
LARGEST = int64(0x7FFFFFFFFFFFFFFF)
LOW = int64(0xFFFFFFFF)


@inlined
def _slot_of(table, nodes, context, vertex):  # type: ignore[no-untyped-def]
    """The place of a node in the table, or where it would be."""
    mask = uint64(table.shape[0] - 1)
    at = (mix(pack(context, vertex)) * FINISH >> uint64(20)) & mask
    while table[at] != _FREE:
        node = table[at] - 1
        if nodes[node, VERTEX] == vertex and nodes[node, CONTEXT] == context:
            break
        at = (at + uint64(1)) & mask
    return at


@inlined
def node_of(table, nodes, state, context, vertex):  # type: ignore[no-untyped-def]
    """The node of a vertex in a context, NOTHING if there is none."""
    if state[IS_PLAIN]:
        return int64(vertex)
    return int64(table[_slot_of(table, nodes, context, vertex)]) - 1


@inlined
def made_node(table, nodes, vertices, state, context, vertex):  # type: ignore[no-untyped-def]
    """The same, made if there is none. There must be room."""
    if state[IS_PLAIN]:
        return int64(vertex)
    at = _slot_of(table, nodes, context, vertex)
    if table[at] == _FREE:
        node = state[USED_NODES]
        state[USED_NODES] = node + 1
        table[at] = node + 1
        for column in range(NODE_WIDTH):
            nodes[node, column] = 0
        nodes[node, VERTEX] = vertex
        nodes[node, CONTEXT] = context
        nodes[node, BASE] = NOTHING
        nodes[node, NEXT] = vertices[vertex, FIRST_NODE]
        vertices[vertex, FIRST_NODE] = node
    return int64(table[at]) - 1


@inlined
def value_through(weights, edge, value, state):  # type: ignore[no-untyped-def]
    """What an edge makes of a value."""
    found = value if value > weights[edge, 1] else weights[edge, 1]
    if weights[edge, 0] > LARGEST - found and found > 0:
        state[FAULT] = 1
        return LARGEST
    return found + weights[edge, 0]


@inlined
def _is_less(heap, at, value, low):  # type: ignore[no-untyped-def]
    return heap[at, 0] < value or (heap[at, 0] == value and heap[at, 1] < low)


@inlined
def _push(heap, state, value, low):  # type: ignore[no-untyped-def]
    at = state[USED_HEAP]
    state[USED_HEAP] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if heap[above, 0] < value or (heap[above, 0] == value and heap[above, 1] <= low):
            break
        heap[at, 0] = heap[above, 0]
        heap[at, 1] = heap[above, 1]
        at = above
    heap[at, 0] = value
    heap[at, 1] = low


@inlined
def pop_least(heap, state):  # type: ignore[no-untyped-def]
    """Takes the least off the heap, into the state."""
    state[TOP_VALUE] = heap[0, 0]
    state[TOP_LOW] = heap[0, 1]
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


@inlined
def offer_rank(nodes, values, heap, state, node, value, steps):  # type: ignore[no-untyped-def]
    """A derivation offers a node a rank: it waits, if that is not above the one that it has, nor offered already."""
    if nodes[node, PRESENT]:
        held = values[node, HELD]
        if value > held or (value == held and steps > nodes[node, STEPS]):
            return
    if nodes[node, OFFERED] == state[UPDATE]:
        known = values[node, OFFER]
        if value > known or (value == known and steps >= nodes[node, OFFERED_STEPS]):
            return
    nodes[node, OFFERED] = state[UPDATE]
    nodes[node, OFFERED_STEPS] = steps
    values[node, OFFER] = value
    _push(heap, state, value, (steps << 32) | node)


@inlined
def note_node(nodes, values, notes, state, node):  # type: ignore[no-untyped-def]
    """Notes what a node was before the update, once."""
    if nodes[node, NOTED] != state[UPDATE]:
        nodes[node, NOTED] = state[UPDATE]
        at = state[USED_NOTES]
        state[USED_NOTES] = at + 1
        notes[at, 0] = node
        notes[at, 1] = nodes[node, PRESENT]
        notes[at, 2] = values[node, HELD]
        notes[at, 3] = nodes[node, STEPS]
        notes[at, 4] = nodes[node, COUNT]


@inlined
def steps_through(nodes, values, node, value):  # type: ignore[no-untyped-def]
    """The steps of a derivation of a value from a node."""
    return int64(nodes[node, STEPS]) + 1 if values[node, HELD] == value else int64(1)


@inlined
def take_off(nodes, values, notes, lost, state, node, value, steps):  # type: ignore[no-untyped-def]
    """A derivation of a node goes. If it counted, it is taken off; a node without any is lost."""
    if nodes[node, WAS_LOST] == state[UPDATE] or not nodes[node, PRESENT]:
        return
    if value != values[node, HELD] or steps != nodes[node, STEPS]:
        return
    note_node(nodes, values, notes, state, node)
    nodes[node, COUNT] -= 1
    if nodes[node, COUNT] == 0:
        nodes[node, WAS_LOST] = state[UPDATE]
        lost[state[USED_LOST]] = node
        state[USED_LOST] += 1


@operator(INT, NUMBERS, INT, MATRIX, NUMBERS)
def undo(notes, number, nodes, values):  # type: ignore[no-untyped-def]
    """Makes nodes what notes say that they were."""
    for i in range(number):
        node = notes[i, 0]
        nodes[node, PRESENT] = notes[i, 1]
        values[node, HELD] = notes[i, 2]
        nodes[node, STEPS] = notes[i, 3]
        nodes[node, COUNT] = notes[i, 4]
    return number


@operator(INT, WORDS, MATRIX, MATRIX, MATRIX)
def link(added, vertices, edges, degrees):  # type: ignore[no-untyped-def]
    """Puts edges into the lists of their vertices. Returns the most edges that one of these vertices has."""
    most = 0
    for i in range(added.shape[0]):
        edge = added[i]
        source, target = edges[edge, SOURCE], edges[edge, TARGET]
        edges[edge, NEXT_OUT] = vertices[source, FIRST_OUT]
        edges[edge, NEXT_IN] = vertices[target, FIRST_IN]
        vertices[source, FIRST_OUT] = edge
        vertices[target, FIRST_IN] = edge
        degrees[source, 0] += 1
        if degrees[source, 0] > most:
            most = int64(degrees[source, 0])
    return most


@operator(INT, WORDS, MATRIX, MATRIX)
def link_bases(added, bases, nodes):  # type: ignore[no-untyped-def]
    """Puts bases into the lists of their nodes."""
    for i in range(added.shape[0]):
        base = added[i]
        node = bases[base, BASE_NODE]
        bases[base, BASE_NEXT] = nodes[node, BASE]
        nodes[node, BASE] = base
    return added.shape[0]


@operator(INT, MATRIX, INT, WORDS)
def fill_table(nodes, used, table):  # type: ignore[no-untyped-def]
    """Puts nodes into an empty table."""
    for node in range(used):
        table[_slot_of(table, nodes, nodes[node, CONTEXT], nodes[node, VERTEX])] = node + 1
    return used


@operator(INT, WORDS, WORDS, WORDS, INT, MATRIX, MATRIX, WORDS, STATE)
def find_nodes(found, contexts, of_vertices, first, nodes, vertices, table, state):  # type: ignore[no-untyped-def]
    """The nodes of vertices in contexts, made where there are none. Goes on from `first`; returns how many are done:
    all, or those for which there is room."""
    for i in range(first, of_vertices.shape[0]):
        if not state[IS_PLAIN] and 2 * (state[USED_NODES] + 1) > table.shape[0]:
            return i
        if not state[IS_PLAIN] and state[USED_NODES] >= nodes.shape[0]:
            return i
        found[i] = made_node(table, nodes, vertices, state, contexts[i], of_vertices[i])
    return of_vertices.shape[0]


@operator(INT, NUMBERS, WORDS, WORDS, MATRIX, NUMBERS, MATRIX, MATRIX, NUMBERS, MATRIX, NUMBERS, WORDS, WORDS, STATE)
def lose(  # type: ignore[no-untyped-def]
    notes, lost, gone_edges, nodes, values, vertices, edges, weights, bases, given, gone_bases, table, state
):
    """Takes off what is derived by edges and bases that go, over the ranks as they were, to its end. Then these are
    dead, and lost nodes absent. Returns how many nodes are lost. `notes` and `lost` have room for all nodes."""
    update = state[UPDATE]
    for i in range(gone_bases.shape[0]):
        base = gone_bases[i]
        state[LOOKED] += 1
        if bases[base, BASE_ALIVE]:
            bases[base, BASE_ALIVE] = 0
            take_off(nodes, values, notes, lost, state, int64(bases[base, BASE_NODE]), given[base, 0], int64(1))
    for i in range(gone_edges.shape[0]):
        edge = gone_edges[i]
        edges[edge, SEEN] = update
        node = int64(edges[edge, SOURCE])
        if not state[IS_PLAIN]:
            node = int64(vertices[node, FIRST_NODE])
        while node != NOTHING:
            state[LOOKED] += 1
            if nodes[node, PRESENT]:
                target = node_of(table, nodes, state, nodes[node, CONTEXT], edges[edge, TARGET])
                value = value_through(weights, edge, values[node, HELD], state)
                steps = steps_through(nodes, values, node, value)
                if target != NOTHING:
                    take_off(nodes, values, notes, lost, state, target, value, steps)
            node = int64(NOTHING) if state[IS_PLAIN] else int64(nodes[node, NEXT])
    at = int64(0)
    while at < state[USED_LOST]:
        node = int64(lost[at])
        at += 1
        edge = int64(vertices[nodes[node, VERTEX], FIRST_OUT])
        while edge != NOTHING:
            state[LOOKED] += 1
            if edges[edge, ALIVE] and edges[edge, SEEN] != update:
                target = node_of(table, nodes, state, nodes[node, CONTEXT], edges[edge, TARGET])
                if target != NOTHING:
                    value = value_through(weights, edge, values[node, HELD], state)
                    steps = steps_through(nodes, values, node, value)
                    take_off(nodes, values, notes, lost, state, target, value, steps)
            edge = int64(edges[edge, NEXT_OUT])
    for i in range(gone_edges.shape[0]):
        edges[gone_edges[i], ALIVE] = 0
    for i in range(state[USED_LOST]):
        nodes[lost[i], PRESENT] = 0
    return state[USED_LOST]


@operator(INT, NUMBERS, WORDS, MATRIX, NUMBERS, MATRIX, MATRIX, NUMBERS, MATRIX, NUMBERS, WORDS, STATE)
def seek(  # type: ignore[no-untyped-def]
    heap, lost, nodes, values, vertices, edges, weights, bases, given, table, state
):
    """Offers every lost node the best rank that what is left gives it. The heap has room."""
    for i in range(state[USED_LOST]):
        node = int64(lost[i])
        best, best_steps, is_found = LARGEST, int64(0), False
        base = int64(nodes[node, BASE])
        while base != NOTHING:
            state[LOOKED] += 1
            if bases[base, BASE_ALIVE] and (not is_found or given[base, 0] < best):
                best, best_steps, is_found = given[base, 0], int64(1), True
            base = int64(bases[base, BASE_NEXT])
        edge = int64(vertices[nodes[node, VERTEX], FIRST_IN])
        while edge != NOTHING:
            state[LOOKED] += 1
            if edges[edge, ALIVE]:
                source = node_of(table, nodes, state, nodes[node, CONTEXT], edges[edge, SOURCE])
                if source != NOTHING and nodes[source, PRESENT]:
                    value = value_through(weights, edge, values[source, HELD], state)
                    steps = steps_through(nodes, values, source, value)
                    if not is_found or value < best or (value == best and steps < best_steps):
                        best, best_steps, is_found = value, steps, True
            edge = int64(edges[edge, NEXT_IN])
        if is_found:
            offer_rank(nodes, values, heap, state, node, best, best_steps)
    return 0


@operator(INT, NUMBERS, WORDS, WORDS, MATRIX, NUMBERS, MATRIX, MATRIX, NUMBERS, MATRIX, NUMBERS, WORDS, STATE)
def bring(  # type: ignore[no-untyped-def]
    heap, new_edges, new_bases, nodes, values, vertices, edges, weights, bases, given, table, state
):
    """Offers what edges and bases that came derive, which are alive. Goes on from AT, and returns how many are done, of
    bases first: all, or those after which there may be no room for what the next one offers."""
    at, all_bases = state[AT], new_bases.shape[0]
    while at < all_bases:
        if state[USED_HEAP] >= heap.shape[0]:
            return at
        base = new_bases[at]
        at += 1
        state[LOOKED] += 1
        offer_rank(nodes, values, heap, state, int64(bases[base, BASE_NODE]), given[base, 0], int64(1))
    while at < all_bases + new_edges.shape[0]:
        room = int64(1) if state[IS_PLAIN] else state[USED_NODES]
        if state[USED_HEAP] + room > heap.shape[0]:
            return at
        is_full = state[USED_NODES] + room > nodes.shape[0] or 2 * (state[USED_NODES] + room) > table.shape[0]
        if is_full and not state[IS_PLAIN]:
            return at
        edge = new_edges[at - all_bases]
        at += 1
        node = int64(edges[edge, SOURCE])
        if not state[IS_PLAIN]:
            node = int64(vertices[node, FIRST_NODE])
        while node != NOTHING:
            state[LOOKED] += 1
            if nodes[node, PRESENT]:
                target = made_node(table, nodes, vertices, state, nodes[node, CONTEXT], edges[edge, TARGET])
                value = value_through(weights, edge, values[node, HELD], state)
                steps = steps_through(nodes, values, node, value)
                offer_rank(nodes, values, heap, state, target, value, steps)
            node = int64(NOTHING) if state[IS_PLAIN] else int64(nodes[node, NEXT])
    return at


@operator(INT, INT, NUMBERS, NUMBERS, MATRIX, NUMBERS, MATRIX, MATRIX, NUMBERS, MATRIX, NUMBERS, WORDS, STATE)
def settle(  # type: ignore[no-untyped-def]
    most, heap, notes, nodes, values, vertices, edges, weights, bases, given, table, state
):
    """Settles what is offered, the least rank first, and offers what follows from it. Returns 1 when there is nothing
    left, 0 when there is no room, 2 when so many derivations have been looked at, 3 at a fault."""
    while state[USED_HEAP] > 0:
        if state[FAULT]:
            return 3
        if state[LOOKED] > most:
            return 2
        room = state[MOST_EDGES] + 1
        if state[USED_HEAP] + room > heap.shape[0] or state[USED_NOTES] >= notes.shape[0]:
            return 0
        if not state[IS_PLAIN] and 2 * (state[USED_NODES] + room) > table.shape[0]:
            return 0
        if not state[IS_PLAIN] and state[USED_NODES] + room > nodes.shape[0]:
            return 0
        pop_least(heap, state)
        value, low = state[TOP_VALUE], state[TOP_LOW]
        node, steps = low & LOW, low >> 32
        held = values[node, HELD]
        if nodes[node, DONE] == state[UPDATE]:
            continue
        if nodes[node, PRESENT] and (value > held or (value == held and steps > nodes[node, STEPS])):
            continue
        context, vertex = nodes[node, CONTEXT], int64(nodes[node, VERTEX])
        number = int64(0)
        base = int64(nodes[node, BASE])
        while base != NOTHING:
            state[LOOKED] += 1
            if bases[base, BASE_ALIVE] and given[base, 0] == value and steps == 1:
                number += 1
            base = int64(bases[base, BASE_NEXT])
        edge = int64(vertices[vertex, FIRST_IN])
        while edge != NOTHING:
            state[LOOKED] += 1
            if edges[edge, ALIVE]:
                source = node_of(table, nodes, state, context, edges[edge, SOURCE])
                if source != NOTHING and nodes[source, PRESENT] and values[source, HELD] <= value:
                    is_same = value_through(weights, edge, values[source, HELD], state) == value
                    if is_same and steps_through(nodes, values, source, value) == steps:
                        number += 1
            edge = int64(edges[edge, NEXT_IN])
        if number == 0:
            continue  # what offered it has got better since, and offered again
        is_other = not nodes[node, PRESENT] or held != value or nodes[node, STEPS] != steps
        note_node(nodes, values, notes, state, node)
        nodes[node, DONE] = state[UPDATE]
        nodes[node, PRESENT] = 1
        nodes[node, STEPS] = steps
        nodes[node, COUNT] = number
        values[node, HELD] = value
        if is_other:
            edge = int64(vertices[vertex, FIRST_OUT])
            while edge != NOTHING:
                state[LOOKED] += 1
                if edges[edge, ALIVE]:
                    target = made_node(table, nodes, vertices, state, context, edges[edge, TARGET])
                    better = value_through(weights, edge, value, state)
                    offer_rank(nodes, values, heap, state, target, better, steps_through(nodes, values, node, better))
                edge = int64(edges[edge, NEXT_OUT])
    return 3 if state[FAULT] else 1


@operator(INT, MATRIX, NUMBERS, MATRIX, MATRIX, NUMBERS, MATRIX, NUMBERS, WORDS, STATE)
def check(nodes, values, vertices, edges, weights, bases, given, table, state):  # type: ignore[no-untyped-def]
    """Whether ranks and counts of all nodes are what the derivations say: 1 if so."""
    for number in range(state[USED_NODES]):
        node = int64(number)
        best, best_steps, count = LARGEST, int64(0), int64(0)
        base = int64(nodes[node, BASE])
        while base != NOTHING:
            if bases[base, BASE_ALIVE]:
                value = given[base, 0]
                if count == 0 or value < best:
                    best, best_steps, count = value, int64(1), int64(1)
                elif value == best:
                    count += 1
            base = int64(bases[base, BASE_NEXT])
        edge = int64(vertices[nodes[node, VERTEX], FIRST_IN])
        while edge != NOTHING:
            if edges[edge, ALIVE]:
                source = node_of(table, nodes, state, nodes[node, CONTEXT], edges[edge, SOURCE])
                if source != NOTHING and nodes[source, PRESENT]:
                    value = value_through(weights, edge, values[source, HELD], state)
                    steps = steps_through(nodes, values, source, value)
                    if count == 0 or value < best or (value == best and steps < best_steps):
                        best, best_steps, count = value, steps, int64(1)
                    elif value == best and steps == best_steps:
                        count += 1
            edge = int64(edges[edge, NEXT_IN])
        if nodes[node, PRESENT] != (count > 0):
            return 0
        if count and (best != values[node, HELD] or best_steps != nodes[node, STEPS] or count != nodes[node, COUNT]):
            return 0
    return 1
