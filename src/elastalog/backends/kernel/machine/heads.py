"""What becomes of derivations in an update: they are taken off their heads, offered to them, or to lost ones."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.signatures import GROUP, flattened, group_of_keys, int64, np_int32
from elastalog.backends.kernel.machine.arrays import counts_of, levels_of, rows_of, table_of, touched_of
from elastalog.backends.kernel.machine.queue import wait
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, FIXED, LOST, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import offer, touch
from elastalog.backends.kernel.store.set_table import add_row, fetch_facts, find_from


@piece
def lose(block, used, head):  # type: ignore[no-untyped-def]
    """Takes old derivations off the counts of their heads; lists those whose count reached 0."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    flat_rows = flattened(rows)
    homes = group_of_keys()
    tags = group_of_keys()
    for i in range(used):
        at = i % GROUP
        if at == 0:
            fetch_facts(block, i, min(GROUP, used - i), rows, flat_rows, table, head.shift, level, homes, tags)
        row = find_from(block, i, rows, table, homes[at], tags[at])
        if row < 0:
            continue
        value = level[row]
        fires = block[i, width - 1] + 1
        if value < REFERENCE:
            if value != fires:
                continue
            touch(row, level, count, touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        fact.count -= 1
        if fact.count == 0:
            entry_of(touched, head.losses).losses = entry
            head.losses += 1


@piece
def gain(block, used, relation, head, machine):  # type: ignore[no-untyped-def]
    """Offers new derivations to their heads; facts never seen get a row."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    flat_rows = flattened(rows)
    homes = group_of_keys()
    tags = group_of_keys()
    for i in range(used):
        at = i % GROUP
        if at == 0:
            fetch_facts(block, i, min(GROUP, used - i), rows, flat_rows, table, head.shift, level, homes, tags)
        fires = block[i, width - 2] + 1
        before = block[i, width - 1]
        before = before + 1 if before < ABSENT else np_int32(ABSENT)
        row = find_from(block, i, rows, table, homes[at], tags[at])
        if row < 0:
            add_row(block, i, -1 - row, rows, table, head.used)
            row = head.used
            level[row] = ABSENT
            count[row] = 0
            head.used += 1
        value = level[row]
        if value < REFERENCE:
            if value < fires or (value == fires and fires == before):
                continue
            touch(row, level, count, touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        entry = level[row] - REFERENCE
        if offer(entry_of(touched, entry), fires, before):
            wait(machine, relation, entry, fires)


@piece
def recover(block, used, relation, head, machine):  # type: ignore[no-untyped-def]
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
def recover_listed(block, used, relation, head, first, machine):  # type: ignore[no-untyped-def]
    """The same with derivations that were found by enumeration, for the heads from place `first` of the list of losses
    on; `deltas` of a listed entry is its place (see `seeking`). Returns how many derivations those have."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    touched = touched_of(head)
    flat_rows = flattened(rows)
    homes = group_of_keys()
    tags = group_of_keys()
    found = 0
    for i in range(used):
        at = i % GROUP
        if at == 0:
            fetch_facts(block, i, min(GROUP, used - i), rows, flat_rows, table, head.shift, level, homes, tags)
        row = find_from(block, i, rows, table, homes[at], tags[at])
        if row < 0 or level[row] < REFERENCE:
            continue
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        place = int64(fact.deltas)
        if not fact.marks & LOST or place < first or place >= head.losses:
            continue
        if entry_of(touched, place).losses != entry:
            continue
        found += 1
        before = block[i, width - 1]
        if before < ABSENT and offer(fact, before + 1, np_int32(ABSENT)):
            wait(machine, relation, entry, before + 1)
    return found


@piece
def highest(block, used):  # type: ignore[no-untyped-def]
    """The highest level at which a derivation of the block fires."""
    width = block.shape[1]
    found = np_int32(0)
    for i in range(used):
        for c in range(width - 2, width):
            if block[i, c] < ABSENT:
                found = max(found, block[i, c])
    return int64(found) + 1
