"""Operators that apply derivations to the annotations of their heads, and move facts through the phases of an update.

The caller makes room first: one more row, touched entry and list entry for each row of a block suffice. Explicit facts
of a relation without rules need nothing else: `change_facts` finds them by their words and finishes them at once.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    INT,
    MATRIX,
    STATE,
    WORDS,
    flattened,
    group_of_numbers,
    inlined,
    int64,
    np_int32,
    operator,
    piece,
    prefetch,
    types,
)
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    DELTA,
    FIXED,
    IS,
    LOST,
    PENDING,
    REFERENCE,
    UNTOUCHED,
    WAS,
    counts_of,
    entry_of,
    facts_of,
    levels_of,
    touched_of,
)
from elastalog.backends.kernel.store.memory import Matrix, Vector, relation_descriptor_at
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import add_row, find_in_turn, find_row
from elastalog.backends.protocol import GONE

# Fields of the state vector of a commit.
GROWN, LOWEST, HIGHEST = range(3)

_FLAGS = types.Array(types.boolean, 1)
_TRUTH = np.dtype(np.bool_)

AHEAD = 16
"""How many facts before they are looked for their memory is asked for."""


@inlined
def touch(home, facts, row, count, absent, other):
    """Makes a touched entry for a row that has none, and has this count. `absent`: the new level of an absent fact, and
    `other`: as it is at first; both ABSENT, or DERIVED and 0 where sets are maintained."""
    value = facts.level[row]
    fact = entry_of(facts.touched, home.touched_used)
    fact.row = row
    fact.old = value
    fact.new = value if value < ABSENT else np_int32(absent)
    fact.other = other
    fact.count = count
    fact.marks = UNTOUCHED if value < ABSENT else 0
    facts.level[row] = REFERENCE + home.touched_used
    home.touched_used += 1
    home.is_settled = 0


@inlined
def touched_entry(home, facts, row, absent, other):
    """The touched entry of a row, made if it has none (see `touch`)."""
    if facts.level[row] < REFERENCE:
        touch(home, facts, row, facts.count[row], absent, other)
    return facts.level[row] - REFERENCE


@inlined
def add_absent(head, facts, block, i, slot):
    """The new row of a fact that has none, and is absent: its slot of the set table is empty."""
    row = head.used
    add_row(block, i, slot, facts, row)
    facts.level[row] = ABSENT
    facts.count[row] = 0
    head.used += 1
    return row


@inlined
def find_or_add(head, facts, block, i, used, is_new, found):
    """The row of a fact, found in its turn, -1 and less if it has none; with `is_new`, one of an absent fact is added
    then."""
    row = find_in_turn(block, i, used, facts, found)
    return add_absent(head, facts, block, i, -1 - row) if row < 0 and is_new else row


@operator(types.void, INT, WORDS, INT, INT, WORDS)
def touch_rows(address, wanted, absent, other, entries):
    """The touched entry of each of some rows."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    for i in range(wanted.shape[0]):
        entries[i] = touched_entry(home, facts, wanted[i], absent, other)


@operator(types.void, WORDS, WORDS, WORDS, MATRIX)
def annotate(entries, level, count, touched):
    """Writes the current state of touched entries; the level of a fact that is absent is GONE."""
    for i in range(entries.shape[0]):
        fact = entry_of(touched, entries[i])
        is_present = level[i] != GONE
        fact.new = level[i] if is_present else np_int32(ABSENT)
        fact.count = count[i]
        fact.marks = (fact.marks & WAS) | (IS if is_present else 0)


@inlined
def offer(fact, count, fires, before):
    """A derivation that fires now at one level and fired before at another (ABSENT: not at all) reaches a touched head
    with a count. Whether the head now waits for that level, and did not before; and its new count."""
    present = np_int32(ABSENT)
    if fact.marks & PENDING:
        present = fact.other
    elif fact.marks & IS:
        present = fact.new
    if fires < present:
        fact.marks |= PENDING
        fact.other = fires
        return True, np_int32(1)
    return False, np_int32(count + 1) if fires == present and fires != before else np_int32(count)


@inlined
def settle_at(fact, level):
    """A fact that waits for a level gets it and is in the delta; whether it waited for that one."""
    if not fact.marks & PENDING or fact.other != level:
        return False
    fact.other = fact.new if fact.marks & IS else np_int32(ABSENT)
    fact.new = level
    fact.marks = (fact.marks & ~PENDING) | IS | DELTA
    return True


@operator(types.void, INT, MATRIX, INT)
def insert_lowest(address, block, used):
    """Inserts the heads of derivations, each at its lowest level with the number of derivations of that level. Explicit
    facts, at level 0, stay as they are."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    found = group_of_numbers()
    for i in range(used):
        fires = block[i, block.shape[1] - 2] + 1
        row = find_in_turn(block, i, used, facts, found)
        if row < 0:
            add_row(block, i, -1 - row, facts, home.used)
            facts.level[home.used] = fires
            facts.count[home.used] = 1
            home.used += 1
        elif fires < facts.level[row]:
            facts.level[row] = fires
            facts.count[row] = 1
        elif fires == facts.level[row]:
            facts.count[row] += 1


@operator(types.void, WORDS, MATRIX, INT, INT)
def mark(entries, touched, added, removed):
    """Adds and removes marks."""
    for i in range(entries.shape[0]):
        fact = entry_of(touched, entries[i])
        fact.marks = (fact.marks & ~removed) | added


@inlined
def lose_fact(fact):
    """After its loss has been propagated a fact of the stratum is gone, until something recovers it."""
    fact.marks = (fact.marks & ~(DELTA | IS)) | LOST
    fact.new = ABSENT
    fact.other = ABSENT
    fact.count = 0


@inlined
def insert_explicit(fact):
    """An inserted explicit fact: level 0, count 1, in the delta of gains."""
    fact.other = fact.new if fact.marks & IS else np_int32(ABSENT)
    fact.new = 0
    fact.count = 1
    fact.marks = (fact.marks & ~PENDING) | IS | DELTA | FIXED


@inlined
def finish_entry(fact, is_level_change):
    """The update of a fact's stratum has ended: keeps only WAS and IS, sets the level before for those who read it
    next; whether the fact changed (membership, or also level)."""
    fact.marks &= WAS | IS
    old = fact.old if fact.marks & WAS else np_int32(ABSENT)
    new = fact.new if fact.marks & IS else np_int32(ABSENT)
    fact.other = old if new < old else np_int32(ABSENT)
    return (old < ABSENT) != (new < ABSENT) or (is_level_change and old != new)


@operator(INT, MATRIX, INT, INT, types.boolean, WORDS)
def finish(touched, start, stop, is_level_change, changed):
    """Ends the update of a relation's stratum for touched[start:stop]; lists the entries that changed."""
    listed = 0
    for entry in range(start, stop):
        if finish_entry(entry_of(touched, entry), is_level_change):
            changed[listed] = entry
            listed += 1
    return listed


@operator(INT, WORDS, MATRIX, MATRIX, MATRIX)
def came_and_went(entries, touched, rows, facts):
    """Copies the facts that came to the front, and those that went to the back; returns how many came, in the lower
    half of a number, and how many went, in the upper one."""
    came = 0
    first_gone = facts.shape[0]
    flat_rows = flattened(rows)
    for i in range(entries.shape[0]):
        if i + AHEAD < entries.shape[0]:
            prefetch(flat_rows, int64(entry_of(touched, entries[i + AHEAD]).row) * rows.shape[1])
        fact = entry_of(touched, entries[i])
        marks = fact.marks & (WAS | IS)
        if marks == IS:
            at = came
            came += 1
        elif marks == WAS:
            first_gone -= 1
            at = first_gone
        else:
            continue
        for column in range(rows.shape[1]):
            facts[at, column] = rows[fact.row, column]
    return (facts.shape[0] - first_gone) << 32 | came


WITH_WHAT_FOLLOWS, WITH_FACTS_BEFORE, WITH_LEVELS_BEFORE = range(3)
"""How a relation is compared with another one (see `follow`): with what follows it, levels and counts; or with what was
before, without counts, and with or without levels."""


@operator(INT, INT, INT, INT, WORDS, _FLAGS, INT, INT)
def follow(address, other, start, mates, seen, compared, first):
    """Makes touched entries, from `first` on, of those rows from `start` on whose facts are not in another relation as
    they are here; returns how many, and only counts them if `first` is negative. `mates`: for each of the rows in
    question, the row of its fact there (see `set_table.match`), which is marked as seen."""
    home = relation_descriptor_at(address, 0)
    level = levels_of(home)
    count = counts_of(home)
    touched = touched_of(home)
    there_home = relation_descriptor_at(other, 0)
    other_level = levels_of(there_home)
    other_count = counts_of(there_home)
    is_after = compared != WITH_WHAT_FOLLOWS
    found = 0
    for at in range(mates.shape[0]):
        if at + AHEAD < mates.shape[0] and mates[at + AHEAD] >= 0:
            prefetch(other_level, int64(mates[at + AHEAD]))
            prefetch(other_count, int64(mates[at + AHEAD]))
            prefetch(seen, int64(mates[at + AHEAD]))
        mate = mates[at]
        if mate < -1:
            continue
        row = start + at
        here = level[row]
        there = np_int32(ABSENT)
        number = np_int32(0)
        if mate >= 0:
            there = min(other_level[mate], np_int32(ABSENT))
            number = other_count[mate]
            seen[mate] = True
        if is_after:
            is_same = there < ABSENT and (here == there or compared == WITH_FACTS_BEFORE)
        else:
            is_same = here == there and count[row] == number
        if is_same:
            continue
        if first >= 0:
            fact = entry_of(touched, first + found)
            fact.row = row
            fact.old = there if is_after else here
            fact.new = here if is_after else there
            fact.other = ABSENT
            fact.count = count[row] if is_after else number
            fact.marks = (WAS if fact.old < ABSENT else 0) | (IS if fact.new < ABSENT else 0)
        found += 1
    return found


@operator(types.void, MATRIX, INT, INT, WORDS)
def refer(touched, start, stop, level):
    """The levels of the rows of touched[start:stop] refer to these entries from now on."""
    for entry in range(start, stop):
        level[entry_of(touched, entry).row] = REFERENCE + entry


@operator(types.void, MATRIX, INT, WORDS, WORDS, STATE)
def commit(touched, used, level, count, state):
    """Makes current annotations those of the epoch; says by how much the number of present facts grew, and between
    which levels the touched ones are, if any is left."""
    grown = 0
    lowest = int64(ABSENT)
    highest = int64(0)
    for entry in range(used):
        if entry + AHEAD < used:
            prefetch(level, int64(entry_of(touched, entry + AHEAD).row))
            prefetch(count, int64(entry_of(touched, entry + AHEAD).row))
        fact = entry_of(touched, entry)
        row = fact.row
        if fact.marks & IS:
            level[row] = fact.new
            count[row] = fact.count
            grown += 0 if fact.marks & WAS else 1
            lowest = min(lowest, int64(fact.new))
            highest = max(highest, int64(fact.new))
        else:
            level[row] = ABSENT
            count[row] = 0
            grown -= 1 if fact.marks & WAS else 0
    state[GROWN] = grown
    state[LOWEST] = lowest
    state[HIGHEST] = highest


@operator(types.void, MATRIX, INT, WORDS)
def rollback(touched, used, level):
    """Restores the levels of the previous epoch; counts were never changed."""
    for entry in range(used):
        fact = entry_of(touched, entry)
        level[fact.row] = fact.old if fact.marks & WAS else ABSENT


@operator(types.void, INT, MATRIX, INT, _FLAGS)
def _find_below(address, block, above, found):
    """Which facts are present at a level below `above`; without annotations, which are present."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    for i in range(block.shape[0]):
        row = find_row(block, i, facts)
        found[i] = row >= 0 and (home.is_annotated == 0 or facts.level[row] < above)


@piece
def change_facts(home, block, is_present):
    """Explicit facts of a relation without rules come, or go, and need nothing more. Returns 0, or why nothing was
    done: how many have no row, or no room for an entry; or less than 0, since some have come, or gone, before."""
    facts = facts_of(home)
    lacking = max(home.touched_used + block.shape[0] - home.touched_room, 0)
    idle = 0
    for i in range(block.shape[0]):
        row = find_row(block, i, facts)
        is_explicit = row >= 0 and facts.level[row] == 0
        if row < 0:
            lacking += 1
        if is_explicit == is_present:
            idle += 1
    if idle > 0:
        return -idle
    if lacking > 0:
        return lacking
    for i in range(block.shape[0]):
        row = find_row(block, i, facts)
        fact = entry_of(facts.touched, touched_entry(home, facts, row, ABSENT, ABSENT))
        fact.new = np_int32(0) if is_present else np_int32(ABSENT)
        fact.count = 1 if is_present else 0
        fact.marks = fact.marks | IS if is_present else fact.marks & ~IS
        finish_entry(fact, False)
    return 0


def are_below(relation: KernelRelation, facts: Matrix, level: int = ABSENT) -> Vector:
    """Which facts are present at a level below `level`, outside an update; explicit ones are below 1 where levels are
    kept."""
    found: Vector = np.empty(len(facts), _TRUTH)
    _find_below(relation.address if relation.stamp == relation.laid_out else relation.home, facts, level, found)
    return found
