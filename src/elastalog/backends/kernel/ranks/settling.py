"""Nodes lose their ranks, and settle in the order of ranks (see `operators`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import INT, MATRIX, NUMBERS, STATE, WORDS, int64, operator
from elastalog.backends.kernel.ranks.operators import (
    ALIVE,
    AT,
    BASE,
    BASE_ALIVE,
    BASE_NEXT,
    BASE_NODE,
    CONTEXT,
    COUNT,
    DONE,
    FAULT,
    FIRST_IN,
    FIRST_NODE,
    FIRST_OUT,
    HELD,
    IS_PLAIN,
    LARGEST,
    LOOKED,
    LOW,
    MOST_EDGES,
    NEXT,
    NEXT_IN,
    NEXT_OUT,
    NOTHING,
    PRESENT,
    SEEN,
    SOURCE,
    STEPS,
    TARGET,
    TOP_LOW,
    TOP_VALUE,
    UPDATE,
    USED_HEAP,
    USED_LOST,
    USED_NODES,
    USED_NOTES,
    VERTEX,
    made_node,
    node_of,
    note_node,
    offer_rank,
    pop_least,
    steps_through,
    take_off,
    value_through,
)


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
