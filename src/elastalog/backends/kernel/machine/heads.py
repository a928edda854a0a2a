"""What becomes of derivations in an update: they are taken off their heads, offered to them, or to lost ones. In the
dense strategy they move in the vectors of their heads, from the level where they fired to the one where they fire (see
`store.count_vectors`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    group_of_numbers,
    hash_columns,
    inlined,
    int64,
    keys_at,
    np_int32,
    piece,
    prefetch,
    uint64,
    words_at,
)
from elastalog.backends.kernel.execution.join import MEMBER
from elastalog.backends.kernel.machine.bucket_queue import wait
from elastalog.backends.kernel.machine.layout import (
    DONE,
    INDEXED,
    NO_COUNTS,
    NO_LEVELS,
    NO_NODES,
    facts_of,
    given_of,
    home_of,
    index_at,
    index_of,
    operands,
    probe_at,
    relation_at,
    touched_of,
)
from elastalog.backends.kernel.machine.together import offer_together
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, FIXED, LOST, PENDING, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import add_absent, offer, touch
from elastalog.backends.kernel.store.count_vectors import change, first_level, vectors_at
from elastalog.backends.kernel.store.postings import DIRECT, SLOT_WIDTH, hash_key, index_key
from elastalog.backends.kernel.store.set_table import find_in_turn


@inlined
def fetch_ahead(machine, head, block, i):
    """A head will be in the next delta, or in a later one: asks for the memory that probes from there will look at. In
    a long chain nothing else is there to wait for it; many heads are looked up in groups when it is their turn."""
    at = head.ahead
    while at < head.ahead_end:
        number = operands(machine, at, 2)
        probe = probe_at(machine.probes, number[0])
        columns = operands(machine, at + 2, number[1])
        at += 2 + number[1]
        if probe.kind == MEMBER:
            relation = relation_at(machine.relations, probe.relation)
            facts = facts_of(relation)
            prefetch(facts.table, int64(hash_columns(block, i, columns) >> uint64(facts.shift)))
        elif probe.kind == INDEXED and not index_at(machine.indexes, probe.index).is_missing:
            index = index_of(index_at(machine.indexes, probe.index))
            if index.kind == DIRECT:
                word = int64(block[i, columns[0]])
                if word >= 0 and word < index.slots_size:
                    prefetch(words_at(index.slots, index.slots_size * SLOT_WIDTH), word * SLOT_WIDTH)
            else:
                home = int64(hash_key(index_key(block, i, columns)) >> uint64(index.shift))
                prefetch(keys_at(index.keys, index.keys_size), home)


@piece
def lose(block, used, head, machine):
    """Takes old derivations off the counts of their heads, in the dense strategy at the level where they fired; lists
    those whose (first) count reached 0."""
    width = block.shape[1]
    facts = facts_of(head)
    is_dense = head.vectors != 0
    vectors = vectors_at(head.vectors, 0)
    found = group_of_numbers()
    left = int64(0)
    for i in range(used):
        row = find_in_turn(block, i, used, facts, found)
        if row < 0:
            continue
        value = facts.level[row]
        fires = block[i, width - 1] + 1
        if is_dense:
            left = change(vectors, row, np_int32(fires), np_int32(-1))
        if value < REFERENCE:
            if value != fires:
                continue
            touch(home_of(head), facts, row, facts.count[row], ABSENT, ABSENT)
        entry = facts.level[row] - REFERENCE
        fact = entry_of(facts.touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        if not is_dense:
            fact.count -= 1
            left = int64(fact.count)
        if left == 0:
            entry_of(facts.touched, head.losses).losses = entry
            head.losses += 1
            if used < GROUP:
                fetch_ahead(machine, head, block, i)


@piece
def gain(block, used, relation, head, machine):
    """Offers new derivations to their heads; facts never seen get a row. In the dense strategy derivations move from
    the level where they fired before, if they did, to the one where they fire now."""
    width = block.shape[1]
    facts = facts_of(head)
    is_dense = head.vectors != 0
    vectors = vectors_at(head.vectors, 0)
    found = group_of_numbers()
    for i in range(used):
        fires = block[i, width - 2] + 1
        before = block[i, width - 1]
        before = before + 1 if before < ABSENT else np_int32(ABSENT)
        row = find_in_turn(block, i, used, facts, found)
        if is_dense and fires == before:
            continue
        if row < 0:
            row = add_absent(home_of(head), facts, block, i, -1 - row)
        if is_dense:
            if before < ABSENT:
                change(vectors, row, np_int32(before), np_int32(-1))
            change(vectors, row, np_int32(fires), np_int32(1))
        value = facts.level[row]
        if value < REFERENCE:
            is_moved = is_dense and value == before  # what counted at the first level does no more
            if (value < fires and not is_moved) or (value == fires and fires == before):
                continue
            # A level that falls is counted anew, so that the old count need not be looked at.
            known = facts.count[row] if value == fires else np_int32(0)
            touch(home_of(head), facts, row, known, ABSENT, ABSENT)
        entry = facts.level[row] - REFERENCE
        if offer(entry_of(facts.touched, entry), fires, before):
            wait(machine, relation, entry, fires)
            if used < GROUP:
                fetch_ahead(machine, head, block, i)


@piece
def recover(block, used, relation, head, machine):
    """Offers derivations found backwards to the lost heads they were asked for (word 0 is the touched entry), as they
    stood before the delta of gains: what the delta adds or lowers is offered when it is propagated."""
    width = block.shape[1]
    touched = touched_of(head)
    for i in range(used):
        before = block[i, width - 1]
        if before < ABSENT:
            entry = int64(block[i, 0])
            if offer(entry_of(touched, entry), before + 1, np_int32(ABSENT)):
                wait(machine, relation, entry, before + 1)


@piece
def recover_listed(block, used, relation, head, first, machine):
    """Offers derivations that were found by enumeration, to the heads from place `first` of the list of losses
    on; `deltas` of a listed entry is its place (see `rederivation`). Returns how many derivations those have."""
    width = block.shape[1]
    facts = facts_of(head)
    found = group_of_numbers()
    derived = 0
    for i in range(used):
        row = find_in_turn(block, i, used, facts, found)
        if row < 0 or facts.level[row] < REFERENCE:
            continue
        entry = facts.level[row] - REFERENCE
        fact = entry_of(facts.touched, entry)
        place = int64(fact.deltas)
        if not fact.marks & LOST or place < first or place >= head.losses:
            continue
        if entry_of(facts.touched, place).losses != entry:
            continue
        derived += 1
        before = block[i, width - 1]
        if before < ABSENT and offer_together(facts.touched, entry, before + 1, np_int32(ABSENT)):
            wait(machine, relation, entry, before + 1)
    return derived


@piece
def highest(block, used, column):
    """The highest level at which a derivation of the block fires, as one of its columns says."""
    found = np_int32(0)
    for i in range(used):
        if block[i, column] < ABSENT:
            found = max(found, block[i, column])
    return int64(found) + 1


@piece
def has_counts(head, rows, steps):
    """Whether the vectors of a head have room for `rows`, and for `steps` more."""
    vectors = vectors_at(head.vectors, 0)
    return (
        rows <= vectors.rows_room
        and vectors.nodes_used + steps <= vectors.nodes_room
        and vectors.logged + steps <= vectors.log_room
    )


@piece
def wait_for_counts(machine):
    """Facts that lost their last derivation, and explicit ones that go, wait for the first level of what is left in
    their vectors; says what is missing for that, having done nothing. They are not looked for backwards: what is left
    are derivations from facts that were not lost."""
    sought = 0
    highest = int64(0)
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.vectors != 0:
            machine.full = r
            if not has_counts(relation, home_of(relation).used, 0):
                return NO_COUNTS
            sought += relation.losses + relation.going
            for i in range(relation.losses + relation.going):
                highest = max(highest, first_level(vectors_at(relation.vectors, 0), _lost(relation, i).row))
    if machine.nodes_used + sought > machine.nodes_room:
        return NO_NODES
    if highest >= machine.levels_room:
        machine.highest = highest
        return NO_LEVELS
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.vectors != 0:
            for i in range(relation.losses + relation.going):
                fact = _lost(relation, i)
                level = first_level(vectors_at(relation.vectors, 0), fact.row)
                if level >= 0:
                    fact.other = np_int32(level)
                    fact.marks |= PENDING
                    wait(machine, r, facts_of(relation).level[fact.row] - REFERENCE, level)
    return DONE


@inlined
def _lost(relation, i):
    """One after another, the facts that lost their last derivation, and the explicit ones that go."""
    touched = touched_of(relation)
    if i < relation.losses:
        return entry_of(touched, entry_of(touched, i).losses)
    return entry_of(touched, given_of(relation)[i - relation.losses])
