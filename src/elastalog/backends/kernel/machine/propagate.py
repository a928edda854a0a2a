"""Rounds of the strategies that maintain sets, in compiled code: what follows from a delta is found, some of it is the
next delta, and so on to the end.

Deletions along a chain are thousands of rounds of a handful of facts. The machine runs them without returning, except
where that of updates does. The deltas are one list a relation, `deltas` of the touched table; the heads of a round are
nodes.
"""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.compile.records import record, record_at
from elastalog.backends.kernel.compile.signatures import GROUP, INT, operator
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.arrays import block_of, counts_of, levels_of, rows_of, table_of, touched_of
from elastalog.backends.kernel.machine.driver import driver, has_delta, has_more, runner
from elastalog.backends.kernel.machine.layout import machine_at, node_at, relation_at
from elastalog.backends.kernel.machine.level_steps import gather_heads, probe_seen
from elastalog.backends.kernel.machine.steps import extend_indexes
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, DERIVED, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import fetch, touch
from elastalog.backends.kernel.store.set_table import add_row, find_row


@record
class PropagationTask(Structure):
    """What is done with heads: `column`, `step`, `is_new` and `stamp` as in `set_operators.apply_heads`. The next delta
    are heads whose marks, as far as they are looked at, are those wanted; if `is_unsupported`, only without C_nr. Marks
    are added when a fact enters the delta, and removed when it leaves it."""

    column: int
    step: int
    is_new: int
    stamp: int
    looked_at: int
    wanted: int
    is_unsupported: int
    added: int
    removed: int


_task_at = record_at(PropagationTask)


@piece
def list_head(machine, relation, fact, entry, stamp):  # type: ignore[no-untyped-def]
    """Lists a head as a node, once a round."""
    if fact.other != stamp:
        fact.other = stamp
        node = node_at(machine.nodes, machine.nodes_used)
        node.relation = relation
        node.entry = entry
        machine.nodes_used += 1


@piece
def enter_delta(relation, touched, entry):  # type: ignore[no-untyped-def]
    """A fact is in the next delta."""
    entry_of(touched, entry).marks |= DELTA
    entry_of(touched, relation.delta_end).deltas = entry
    relation.delta_end += 1


@piece
def _open(machine):  # type: ignore[no-untyped-def]
    is_ready = not _task_at(machine.task, 0).is_new or extend_indexes(machine)
    return layout.DONE if is_ready else layout.NO_INDEX


@piece
def _sink(machine, variant, frame):  # type: ignore[no-untyped-def]
    """Applies the last block to its heads and lists each head once a round, or says what is missing for that."""
    task = _task_at(machine.task, 0)
    used = frame.end
    head = relation_at(machine.relations, variant.head)
    machine.full = variant.head
    if head.touched_used + used > head.touched_room or (task.is_new and head.used + used > head.room):
        return layout.NO_ROOM
    if machine.nodes_used + used > machine.nodes_room:
        return layout.NO_NODES
    block = block_of(frame)
    rows = rows_of(head)
    table = table_of(head)
    level = levels_of(head)
    count = counts_of(head)
    touched = touched_of(head)
    for start in range(0, used, GROUP):
        stop = min(start + GROUP, used)
        fetch(block, start, stop, rows, table, head.shift, level)
        for i in range(start, stop):
            row = find_row(block, i, rows, table, head.shift)
            if row < 0:
                if not task.is_new:
                    continue
                add_row(block, i, -1 - row, rows, table, head.used)
                row = head.used
                level[row] = ABSENT
                count[row] = 0
                head.used += 1
            value = level[row]
            if value < REFERENCE:
                if task.is_new and task.column < 0 and value < ABSENT:
                    continue
                touch(row, level, count[row], touched, head.touched_used, DERIVED, 0)
                head.touched_used += 1
            entry = level[row] - REFERENCE
            if task.column >= 0:
                touched[entry, task.column] += task.step
            list_head(machine, variant.head, entry_of(touched, entry), entry, task.stamp)
    machine.derived += used
    frame.begun = used
    return layout.DONE


@piece
def leave_delta(machine, removed):  # type: ignore[no-untyped-def]
    """The delta is over: its facts lose some marks."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        touched = touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            entry_of(touched, entry_of(touched, at).deltas).marks &= ~(DELTA | removed)
        relation.delta = relation.delta_end


@piece
def _close(machine):  # type: ignore[no-untyped-def]
    """The delta is over; the heads found that are wanted are the next one."""
    task = _task_at(machine.task, 0)
    machine.work += 1
    leave_delta(machine, task.removed)
    is_more = False
    for number in range(machine.nodes_used):
        node = node_at(machine.nodes, number)
        relation = relation_at(machine.relations, node.relation)
        touched = touched_of(relation)
        fact = entry_of(touched, node.entry)
        if fact.marks & task.looked_at == task.wanted and not (task.is_unsupported and fact.count != 0):
            fact.marks |= task.added
            enter_delta(relation, touched, node.entry)
            is_more = True
    machine.nodes_used = 0
    task.stamp += 1
    if not is_more:
        return layout.DONE
    return layout.CHECK if machine.work > machine.work_allowed else layout.GO_ON


_drive = driver(_open, has_delta, runner(has_more, gather_heads, probe_seen, _sink), _close)


@operator(INT, INT)
def propagate(address):  # type: ignore[no-untyped-def]
    """Runs round after round; returns why it stops."""
    return _drive(machine_at(address, 0))
