"""What becomes of derivations in an update: they are taken off their heads, offered to them, or to lost ones. In the
dense strategy they move in the vectors of their heads, from the level where they fired to the one where they fire (see
`store.count_vectors`).

Several threads may share what a variant starts at. One machine has gathered a block of facts; each thread takes some of
its rows at a time, and runs the variant on from there with a machine of its own. No lock is held for more than one
entry:

- A touched entry is written first and then, in one atomic step, referred to by the level of its row. If another thread
  was faster, its entry is used, and this one is for the next row. Entries are allocated in turns, as rows are (see
  `store.inserting`).
- Derivations are taken off a count by atomic steps: the thread that takes off the last one notes the head.
- Who offers a derivation to a head changes several words of its entry: the count is negative meanwhile.

When all have left off one thread closes the gaps, and takes over what the others have noted. Which entry a fact gets,
and the order of lists, depend on who was faster; facts, levels and counts do not.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    INT,
    flattened,
    group_of_numbers,
    hash_columns,
    inlined,
    int64,
    keys_at,
    np_int32,
    operator,
    piece,
    prefetch,
    types,
    uint64,
    words_at,
)
from elastalog.backends.kernel.execution.join import MEMBER
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.bucket_queue import wait
from elastalog.backends.kernel.machine.shares import (
    entries_at,
    share_at,
    shared_task_at,
    sharing_at,
    take_share,
    turns_at,
)
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    FIXED,
    LOSS_LIST,
    LOST,
    PENDING,
    REFERENCE,
    ROW,
    TOUCHED_WIDTH,
    UNTOUCHED,
    entry_of,
)
from elastalog.backends.kernel.store.bookkeeping import add_absent, offer, touch
from elastalog.backends.kernel.store.count_vectors import change, first_level, vectors_at
from elastalog.backends.kernel.store.inserting import (
    APART,
    GIVEN,
    OWN,
    OWN_END,
    TURN,
    Noted,
    close_rows,
    insert_together,
    without_gaps_at_end,
)
from elastalog.backends.kernel.store.postings import DIRECT, SLOT_WIDTH, hash_key, index_key
from elastalog.backends.kernel.store.set_table import find_in_turn
from elastalog.jit.atomics import add_unordered, atomic_load, atomic_store, compare_and_swap, relax


@inlined
def fetch_ahead(machine, head, block, i):
    """A head will be in the next delta, or in a later one: asks for the memory that probes from there will look at. In
    a long chain nothing else is there to wait for it; many heads are looked up in groups when it is their turn."""
    at = head.ahead
    while at < head.ahead_end:
        number = layout.operands(machine, at, 2)
        probe = layout.probe_at(machine.probes, number[0])
        columns = layout.operands(machine, at + 2, number[1])
        at += 2 + number[1]
        if probe.kind == MEMBER:
            relation = layout.relation_at(machine.relations, probe.relation)
            facts = layout.facts_of(relation)
            prefetch(facts.table, int64(hash_columns(block, i, columns) >> uint64(facts.shift)))
        elif probe.kind == layout.INDEXED and not layout.index_at(machine.indexes, probe.index).is_missing:
            index = layout.index_of(layout.index_at(machine.indexes, probe.index))
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
    facts = layout.facts_of(head)
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
            touch(layout.home_of(head), facts, row, facts.count[row], ABSENT, ABSENT)
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
    facts = layout.facts_of(head)
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
            row = add_absent(layout.home_of(head), facts, block, i, -1 - row)
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
            touch(layout.home_of(head), facts, row, known, ABSENT, ABSENT)
        entry = facts.level[row] - REFERENCE
        fact = entry_of(facts.touched, entry)
        is_waiting, fact.count = offer(fact, fact.count, fires, before)
        if is_waiting:
            wait(machine, relation, entry, fires)
            if used < GROUP:
                fetch_ahead(machine, head, block, i)


@piece
def recover(block, used, relation, head, machine):
    """Offers derivations found backwards to the lost heads they were asked for (word 0 is the touched entry), as they
    stood before the delta of gains: what the delta adds or lowers is offered when it is propagated."""
    width = block.shape[1]
    touched = layout.touched_of(head)
    for i in range(used):
        before = block[i, width - 1]
        if before < ABSENT:
            entry = int64(block[i, 0])
            fact = entry_of(touched, entry)
            is_waiting, fact.count = offer(fact, fact.count, before + 1, np_int32(ABSENT))
            if is_waiting:
                wait(machine, relation, entry, before + 1)


@piece
def recover_listed(block, used, relation, head, first, machine):
    """Offers derivations that were found by enumeration, to the heads from place `first` of the list of losses
    on; `deltas` of a listed entry is its place (see `rederivation`). Returns how many derivations those have."""
    width = block.shape[1]
    facts = layout.facts_of(head)
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
        relation = layout.relation_at(machine.relations, r)
        if relation.vectors != 0:
            machine.full = r
            if not has_counts(relation, layout.home_of(relation).used, 0):
                return layout.NO_COUNTS
            sought += relation.losses + relation.going
            for i in range(relation.losses + relation.going):
                highest = max(highest, first_level(vectors_at(relation.vectors, 0), _lost(relation, i).row))
    if machine.nodes_used + sought > machine.nodes_room:
        return layout.NO_NODES
    if highest >= machine.levels_room:
        machine.highest = highest
        return layout.NO_LEVELS
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.vectors != 0:
            for i in range(relation.losses + relation.going):
                fact = _lost(relation, i)
                level = first_level(vectors_at(relation.vectors, 0), fact.row)
                if level >= 0:
                    fact.other = np_int32(level)
                    fact.marks |= PENDING
                    wait(machine, r, layout.facts_of(relation).level[fact.row] - REFERENCE, level)
    return layout.DONE


@inlined
def _lost(relation, i):
    """One after another, the facts that lost their last derivation, and the explicit ones that go."""
    touched = layout.touched_of(relation)
    if i < relation.losses:
        return entry_of(touched, entry_of(touched, i).losses)
    return entry_of(touched, layout.given_of(relation)[i - relation.losses])


# --- by several threads at once ------------------------------------------------------------------------------------


@piece
def take_starts(machine, variant):
    """Copies the rows of the next share to the first block of a machine; False if all have been taken."""
    task = shared_task_at(machine.task, 0)
    place = take_share(task.sharing, task.thread)
    if place == 0:
        return False
    share = share_at(place, 0)
    frame = layout.frame_at(machine.frames, 0)
    frame.block = frame.usual
    frame.rows = layout.BLOCK
    frame.width = variant.width
    frame.begun = 0
    frame.end = share.stop - share.start
    frame.within = 0
    given = layout.block_of(layout.frame_at(sharing_at(task.sharing, 0).frame, 0))
    block = layout.block_of(frame)
    for i in range(frame.end):
        for c in range(variant.width):
            block[i, c] = given[share.start + i, c]
    machine.at = 0
    machine.depth = 0
    machine.step = layout.SINK if variant.probes == 0 else layout.GO
    return True


@inlined
def _next_entry(turns, own, room):
    """An entry that no other thread has been given, -1 if there is none; it is taken when `turns` says so."""
    if turns[own + OWN] == turns[own + OWN_END]:
        first = add_unordered(turns, GIVEN, turns[TURN])
        if first + turns[TURN] > room:
            return int64(-1)
        turns[own + OWN] = first
        turns[own + OWN_END] = first + turns[TURN]
    return turns[own + OWN]


@inlined
def _touch(head, facts, row, value, count, turns, own):
    """Touches a row of a known level as `bookkeeping.touch` does, unless another thread is faster with an entry of its
    own. False if there is no entry."""
    entry = _next_entry(turns, own, layout.home_of(head).touched_room)
    if entry < 0:
        return False
    fact = entry_of(facts.touched, entry)
    fact.row = row
    fact.old = value
    fact.new = value
    fact.other = ABSENT
    fact.count = count
    fact.marks = UNTOUCHED if value < ABSENT else 0
    if compare_and_swap(facts.level, row, np_int32(value), np_int32(REFERENCE + entry)) == value:
        turns[own + OWN] = entry + 1
    return True


@piece
def lose_together(block, start, stop, number, head, machine):
    """Loses derivations as `lose` does, and notes the heads whose count reached 0. Returns where it stopped,
    early if there is no entry."""
    task = shared_task_at(machine.task, 0)
    turns = entries_at(sharing_at(task.sharing, 0))
    own = APART * (1 + task.thread)
    width = block.shape[1]
    facts = layout.facts_of(head)
    words = flattened(facts.touched)
    found = group_of_numbers()
    for g in range(GROUP):
        found[g] = -1
    for i in range(start, stop):
        row = find_in_turn(block, i, stop, facts, found)
        if row < 0:
            continue
        value = facts.level[row]
        fires = block[i, width - 1] + 1
        if value < REFERENCE:
            if value != fires:
                continue
            if not _touch(head, facts, row, value, facts.count[row], turns, own):
                return i
        entry = int64(atomic_load(facts.level, row)) - REFERENCE
        fact = entry_of(facts.touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        if add_unordered(words, entry * TOUCHED_WIDTH + COUNT, np_int32(-1)) == 1:
            node = layout.node_at(machine.nodes, machine.nodes_used)
            node.relation = number
            node.entry = entry
            machine.nodes_used += 1
    return stop


@piece
def gain_together(block, start, stop, number, head, machine):
    """Gains derivations as `gain` does. Returns where it stopped, early if there is no row or no entry."""
    task = shared_task_at(machine.task, 0)
    sharing = sharing_at(task.sharing, 0)
    turns = entries_at(sharing)
    own = APART * (1 + task.thread)
    width = block.shape[1]
    facts = layout.facts_of(head)
    noted = Noted(words_at(layout.home_of(head).count, 0), 0, facts.level, ABSENT)
    stop = insert_together(facts, noted, block, start, stop, turns_at(sharing, number), task.thread)
    found = group_of_numbers()
    for g in range(GROUP):
        found[g] = -1
    for i in range(start, stop):
        fires = block[i, width - 2] + 1
        before = block[i, width - 1]
        before = before + 1 if before < ABSENT else np_int32(ABSENT)
        row = find_in_turn(block, i, stop, facts, found)
        value = facts.level[row]
        if value < REFERENCE:
            if value < fires or (value == fires and fires == before):
                continue
            if value == ABSENT:
                facts.count[row] = 0
            if not _touch(head, facts, row, value, facts.count[row] if value == fires else np_int32(0), turns, own):
                return i
        entry = int64(atomic_load(facts.level, row)) - REFERENCE
        if offer_together(facts.touched, entry, fires, before):
            wait(machine, number, entry, fires)
    return stop


@piece
def offer_together(touched, entry, fires, before):
    """Offers a derivation while other threads offer theirs to the same head."""
    words = flattened(touched)
    place = entry * TOUCHED_WIDTH + COUNT
    count = atomic_load(words, place)
    while count < 0 or compare_and_swap(words, place, count, np_int32(-1 - count)) != count:
        relax()
        count = atomic_load(words, place)
    is_waiting, count = offer(entry_of(touched, entry), count, fires, before)
    atomic_store(words, place, np_int32(count))
    return is_waiting


@operator(types.void, INT, INT, INT)
def close_gaps(address, sharing, number):
    """All threads have left off: makes the rows and the entries of the head dense."""
    machine = layout.machine_at(address, 0)
    sharing = sharing_at(sharing, 0)
    relation = layout.relation_at(machine.relations, number)
    head = layout.home_of(relation)
    level = layout.facts_of(relation).level
    touched = layout.touched_of(relation)
    before = head.used
    close_rows(head, turns_at(sharing, number))
    for row in range(before, head.used):
        if level[row] >= REFERENCE:
            entry_of(touched, level[row] - REFERENCE).row = row
    head.touched_used = _close_entries(touched, level, head.touched_used, head.touched_room, entries_at(sharing))


@piece
def _close_entries(touched, level, used, room, turns):
    """Moves the last entries to where turns are not used up, and leaves there where they have gone. Returns where
    entries end now."""
    end = used + (min(turns[GIVEN], room) - used) // turns[TURN] * turns[TURN]
    end = without_gaps_at_end(turns, end)
    for own in range(APART, turns.shape[0], APART):
        while turns[own + OWN] < turns[own + OWN_END]:
            end -= 1
            target = turns[own + OWN]
            for c in range(LOSS_LIST):
                touched[target, c] = touched[end, c]
            level[touched[end, ROW]] = REFERENCE + target
            touched[end, ROW] = target
            turns[own + OWN] = target + 1
            end = without_gaps_at_end(turns, end)
    turns[GIVEN] = end
    return end


@operator(types.void, INT, INT)
def take_over(address, other):
    """What the machine of a thread has noted, after gaps were closed: heads that are lost are listed, others wait for
    their levels."""
    machine = layout.machine_at(address, 0)
    noted = layout.machine_at(other, 0)
    for number in range(noted.nodes_used):
        node = layout.node_at(noted.nodes, number)
        relation = layout.relation_at(machine.relations, node.relation)
        touched = layout.touched_of(relation)
        entry = int64(node.entry)
        while entry >= layout.home_of(relation).touched_used:  # it may have moved more than once
            entry = int64(entry_of(touched, entry).row)
        if machine.phase == layout.LOSING:
            entry_of(touched, relation.losses).losses = entry
            relation.losses += 1
        else:
            wait(machine, node.relation, entry, entry_of(touched, entry).other)
