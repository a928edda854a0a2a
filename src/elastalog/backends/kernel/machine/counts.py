"""What becomes of derivations in an update of the dense strategy: they move in the vectors of their heads, from the
level where they fired to the one where they fire (see `store.count_vectors`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.signatures import inlined, int64, np_int32
from elastalog.backends.kernel.machine.arrays import counts_of, given_of, levels_of, rows_of, table_of, touched_of
from elastalog.backends.kernel.machine.layout import DONE, NO_COUNTS, NO_LEVELS, NO_NODES, relation_at
from elastalog.backends.kernel.machine.queue import wait
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, FIXED, IS, LOST, PENDING, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import touch
from elastalog.backends.kernel.store.count_vectors import change, first_level, vectors_at
from elastalog.backends.kernel.store.set_table import add_row, find_row


@piece
def has_counts(head, rows, steps):  # type: ignore[no-untyped-def]
    """Whether the vectors of a head have room for so many rows, and for so many more steps."""
    vectors = vectors_at(head.vectors, 0)
    return (
        rows <= vectors.rows_room
        and vectors.nodes_used + steps <= vectors.nodes_room
        and vectors.logged + steps <= vectors.log_room
    )


@piece
def lose_counts(block, used, head):  # type: ignore[no-untyped-def]
    """Takes old derivations off the counts of their heads at the level where they fired; lists those whose first count
    reached 0."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    vectors = vectors_at(head.vectors, 0)
    for i in range(used):
        row = find_row(block, i, rows, table, head.shift)
        if row < 0:
            continue
        fires = block[i, width - 1] + np_int32(1)
        left = change(vectors, row, fires, np_int32(-1))
        value = level[row]
        if value < REFERENCE:
            if value != fires:
                continue
            touch(row, level, count[row], touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        if left != 0:
            continue
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        if fact.marks & (LOST | DELTA | FIXED) or fact.old != fires:
            continue
        entry_of(touched, head.losses).losses = entry
        head.losses += 1


@piece
def gain_counts(block, used, relation, head, machine):  # type: ignore[no-untyped-def]
    """Moves derivations from the level where they fired before (if they did) to the one where they fire now; facts
    never seen get a row. Heads whose first level falls wait for it."""
    width = block.shape[1]
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    vectors = vectors_at(head.vectors, 0)
    for i in range(used):
        fires = block[i, width - 2] + np_int32(1)
        before = block[i, width - 1]
        before = before + np_int32(1) if before < ABSENT else np_int32(ABSENT)
        if fires == before:
            continue
        row = find_row(block, i, rows, table, head.shift)
        if row < 0:
            add_row(block, i, -1 - row, rows, table, head.used)
            row = head.used
            level[row] = ABSENT
            count[row] = 0
            head.used += 1
        if before < ABSENT:
            change(vectors, row, before, np_int32(-1))
        change(vectors, row, fires, np_int32(1))
        value = level[row]
        if value < REFERENCE:
            if value < fires and value != before:
                continue
            touch(row, level, count[row], touched, head.touched_used, ABSENT, ABSENT)
            head.touched_used += 1
        entry = level[row] - REFERENCE
        fact = entry_of(touched, entry)
        if fact.marks & PENDING:
            best = fact.other
        else:
            best = fact.new if fact.marks & IS else np_int32(ABSENT)
        if fires < best:
            fact.marks |= PENDING
            fact.other = fires
            wait(machine, relation, entry, fires)


@piece
def wait_for_counts(machine):  # type: ignore[no-untyped-def]
    """Facts that lost their last derivation, and explicit ones that go, wait for the first level of what is left in
    their vectors; says what is missing for that, having done nothing. They are not looked for backwards: what is left
    are derivations from facts that were not lost."""
    sought = 0
    highest = int64(0)
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.vectors != 0:
            machine.full = r
            if not has_counts(relation, relation.used, 0):
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
                    wait(machine, r, levels_of(relation)[fact.row] - REFERENCE, level)
    return DONE


@inlined
def _lost(relation, i):  # type: ignore[no-untyped-def]
    """One after another, the facts that lost their last derivation, and the explicit ones that go."""
    touched = touched_of(relation)
    if i < relation.losses:
        return entry_of(touched, entry_of(touched, i).losses)
    return entry_of(touched, given_of(relation)[i - relation.losses])
