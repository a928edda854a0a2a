"""What several threads do at once to the heads of a variant of an update, when they share what it starts at.

One machine has gathered a block of facts. Each thread takes some of its rows at a time, and runs the variant on from
there with a machine of its own. No lock is held for more than one entry:

- A touched entry is written first and then, in one atomic step, referred to by the level of its row. If another thread
  was faster, its entry is used, and this one is for the next row. Entries are allocated in turns, as rows are (see
  `store.inserting`).
- Derivations are taken off a count by atomic steps: the thread that takes off the last one notes the head.
- Who offers a derivation to a head changes several words of its entry: the count is negative meanwhile.

When all have left off one thread closes the gaps, and takes over what the others have noted. Which entry a fact gets,
and the order of lists, depend on who was faster; facts, levels and counts do not.
"""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    INT,
    flattened,
    group_of_numbers,
    inlined,
    int64,
    np_int32,
    numbers_at,
    operator,
    piece,
    record,
    record_at,
    types,
    words_at,
)
from elastalog.backends.kernel.machine.bucket_queue import wait
from elastalog.backends.kernel.machine.layout import (
    BLOCK,
    GO,
    LOSING,
    SINK,
    block_of,
    facts_of,
    frame_at,
    home_of,
    machine_at,
    node_at,
    relation_at,
    touched_of,
)
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    FIXED,
    IS,
    LOSS_LIST,
    LOST,
    PENDING,
    REFERENCE,
    ROW,
    TOUCHED_WIDTH,
    UNTOUCHED,
    entry_of,
)
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
from elastalog.backends.kernel.store.set_table import find_in_turn
from elastalog.jit.atomics import add_unordered, atomic_load, atomic_store, compare_and_swap, relax
from elastalog.jit.operators import view


@record
class StartShares(Structure):
    """Rows of the block in a `frame`, below `stop`, of which threads take `size` at a time; `taken`: where the number
    of the next one is. `entries` and `rows` of the `head`: the turns that `threads` threads have in them."""

    frame: int
    stop: int
    size: int
    taken: int
    head: int
    entries: int
    rows: int
    threads: int


@record
class SharedTask(Structure):
    """What the machine of a `thread` takes its starts from."""

    shares: int
    thread: int


_shares_at = record_at(StartShares)
_task_at = record_at(SharedTask)


@view
def _turns_at(address, shares):
    return numbers_at(address, APART * (1 + shares.threads))


@piece
def take_starts(machine, variant):
    """Copies the next rows to the first block of a machine; False if all have been taken."""
    shares = _shares_at(_task_at(machine.task, 0).shares, 0)
    first = add_unordered(numbers_at(shares.taken, 1), 0, shares.size)
    if first >= shares.stop:
        return False
    frame = frame_at(machine.frames, 0)
    frame.block = frame.usual
    frame.rows = BLOCK
    frame.width = variant.width
    frame.begun = 0
    frame.end = min(shares.size, shares.stop - first)
    frame.within = 0
    given = block_of(frame_at(shares.frame, 0))
    block = block_of(frame)
    for i in range(frame.end):
        for c in range(variant.width):
            block[i, c] = given[first + i, c]
    machine.at = 0
    machine.depth = 0
    machine.step = SINK if variant.probes == 0 else GO
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
def _touch(facts, row, value, count, entry):
    """Touches a row of a known level as `bookkeeping.touch` does; False if another thread was faster with its own
    entry."""
    fact = entry_of(facts.touched, entry)
    fact.row = row
    fact.old = value
    fact.new = value
    fact.other = ABSENT
    fact.count = count
    fact.marks = UNTOUCHED if value < ABSENT else 0
    return compare_and_swap(facts.level, row, np_int32(value), np_int32(REFERENCE + entry)) == value


@piece
def lose_together(block, start, stop, number, head, machine):
    """Loses derivations as `heads.lose` does, and notes the heads whose count reached 0. Returns where it stopped,
    early if there is no entry."""
    task = _task_at(machine.task, 0)
    shares = _shares_at(task.shares, 0)
    turns = _turns_at(shares.entries, shares)
    own = APART * (1 + task.thread)
    width = block.shape[1]
    facts = facts_of(head)
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
            entry = _next_entry(turns, own, home_of(head).touched_room)
            if entry < 0:
                return i
            if _touch(facts, row, value, facts.count[row], entry):
                turns[own + OWN] = entry + 1
        entry = int64(atomic_load(facts.level, row)) - REFERENCE
        fact = entry_of(facts.touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        if add_unordered(words, entry * TOUCHED_WIDTH + COUNT, np_int32(-1)) == 1:
            node = node_at(machine.nodes, machine.nodes_used)
            node.relation = number
            node.entry = entry
            machine.nodes_used += 1
    return stop


@piece
def gain_together(block, start, stop, number, head, machine):
    """Gains derivations as `heads.gain` does. Returns where it stopped, early if there is no row or no entry."""
    task = _task_at(machine.task, 0)
    shares = _shares_at(task.shares, 0)
    turns = _turns_at(shares.entries, shares)
    own = APART * (1 + task.thread)
    width = block.shape[1]
    facts = facts_of(head)
    noted = Noted(words_at(home_of(head).count, 0), 0, facts.level, ABSENT)
    stop = insert_together(facts, noted, block, start, stop, _turns_at(shares.rows, shares), task.thread)
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
            entry = _next_entry(turns, own, home_of(head).touched_room)
            if entry < 0:
                return i
            if value == ABSENT:
                facts.count[row] = 0
            if _touch(facts, row, value, facts.count[row] if value == fires else np_int32(0), entry):
                turns[own + OWN] = entry + 1
        entry = int64(atomic_load(facts.level, row)) - REFERENCE
        if offer_together(facts.touched, entry, fires, before):
            wait(machine, number, entry, fires)
    return stop


@piece
def offer_together(touched, entry, fires, before):
    """Offers a derivation as `bookkeeping.offer` does, while other threads offer theirs to the same head."""
    words = flattened(touched)
    place = entry * TOUCHED_WIDTH + COUNT
    count = atomic_load(words, place)
    while count < 0 or compare_and_swap(words, place, count, np_int32(-1 - count)) != count:
        relax()
        count = atomic_load(words, place)
    fact = entry_of(touched, entry)
    present = np_int32(ABSENT)
    if fact.marks & PENDING:
        present = fact.other
    elif fact.marks & IS:
        present = fact.new
    is_lower = fires < present
    if is_lower:
        fact.marks |= PENDING
        fact.other = fires
        count = np_int32(1)
    elif fires == present and fires != before:
        count += np_int32(1)
    atomic_store(words, place, np_int32(count))
    return is_lower


@operator(types.void, INT, INT)
def close_gaps(address, shares):
    """All threads have left off: makes the rows and the entries of the head dense."""
    machine = machine_at(address, 0)
    shares = _shares_at(shares, 0)
    relation = relation_at(machine.relations, shares.head)
    head = home_of(relation)
    level = facts_of(relation).level
    touched = touched_of(relation)
    before = head.used
    close_rows(head, _turns_at(shares.rows, shares))
    for row in range(before, head.used):
        if level[row] >= REFERENCE:
            entry_of(touched, level[row] - REFERENCE).row = row
    turns = _turns_at(shares.entries, shares)
    head.touched_used = _close_entries(touched, level, head.touched_used, head.touched_room, turns)


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
    return end


@operator(types.void, INT, INT)
def take_over(address, other):
    """What the machine of a thread has noted, after gaps were closed: heads that are lost are listed, others wait for
    their levels."""
    machine = machine_at(address, 0)
    noted = machine_at(other, 0)
    for number in range(noted.nodes_used):
        node = node_at(noted.nodes, number)
        relation = relation_at(machine.relations, node.relation)
        touched = touched_of(relation)
        entry = int64(node.entry)
        while entry >= home_of(relation).touched_used:  # it may have moved more than once
            entry = int64(entry_of(touched, entry).row)
        if machine.phase == LOSING:
            entry_of(touched, relation.losses).losses = entry
            relation.losses += 1
        else:
            wait(machine, node.relation, entry, entry_of(touched, entry).other)
