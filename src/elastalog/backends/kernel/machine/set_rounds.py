"""Rounds of the strategies that maintain sets, in compiled code: what follows from a delta is found, some of it is the
next delta, and so on to the end.

Deletions along a chain are thousands of rounds of a handful of facts. The machine runs them without returning, except
where that of updates does. The deltas are one list a relation, `deltas` of the touched table; the heads of a round are
nodes.

Backward/forward checking has rounds in which nothing can be proved: facts are deleted along a chain, one or a few a
round, each of which lost its last derivation with the one before. A round is *plain* if no fact that is questioned has
support or is delayed, and all facts of the stratum that its derivations need have been checked: then all of them go.
The machine runs plain rounds without returning, and leaves off before one that is not (LARGE). A round has two halves:
the heads of the delta are found, of which those that may go are the candidates; then derivations of the candidates are
looked for. Deltas and candidates lie in `deltas` of the touched table.
"""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import (
    INT,
    group_of_numbers,
    operator,
    piece,
    record,
    record_at,
    words_at,
)
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.level_steps import gather_heads, probe_seen
from elastalog.backends.kernel.machine.rounds import driver, extend_indexes, has_delta, has_more, runner
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, DERIVED, IS, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import find_or_add, touched_entry
from elastalog.backends.sets import Mark


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
def enter_delta(relation, touched, entry):
    """A fact is in the next delta."""
    entry_of(touched, entry).marks |= DELTA
    entry_of(touched, relation.delta_end).deltas = entry
    relation.delta_end += 1


@piece
def _open(machine):
    is_ready = not _task_at(machine.task, 0).is_new or extend_indexes(machine)
    return layout.DONE if is_ready else layout.NO_INDEX


@piece
def _sink(machine, variant, frame):
    """Applies the last block to its heads and lists each head once a round, or says what is missing for that."""
    task = _task_at(machine.task, 0)
    return apply_heads(machine, variant, frame, task.is_new, task.column, task.step, task.stamp)


@piece
def apply_heads(machine, variant, frame, is_new, column, step, stamp):
    """See `set_operators.apply_heads`; a head is listed as a node, once a round."""
    used = frame.end
    relation = layout.relation_at(machine.relations, variant.head)
    head = layout.home_of(relation)
    machine.full = variant.head
    if head.touched_used + used > head.touched_room or (is_new and head.used + used > head.room):
        return layout.NO_ROOM
    if machine.nodes_used + used > machine.nodes_room:
        return layout.NO_NODES
    block = layout.block_of(frame)
    facts = layout.facts_of(relation)
    found = group_of_numbers()
    for i in range(used):
        row = find_or_add(head, facts, block, i, used, is_new, found)
        if row < 0 or (is_new and column < 0 and facts.level[row] < ABSENT):
            continue
        entry = touched_entry(head, facts, row, DERIVED, 0)
        if column >= 0:
            facts.touched[entry, column] += step
        fact = entry_of(facts.touched, entry)
        if fact.other != stamp:
            fact.other = stamp
            node = layout.node_at(machine.nodes, machine.nodes_used)
            node.relation = variant.head
            node.entry = entry
            machine.nodes_used += 1
    machine.derived += used
    frame.begun = used
    return layout.DONE


@piece
def leave_delta(machine, removed):
    """The delta is over: its facts lose some marks."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            entry_of(touched, entry_of(touched, at).deltas).marks &= ~(DELTA | removed)
        relation.delta = relation.delta_end


@piece
def _close(machine):
    """The delta is over; the heads found that are wanted are the next one."""
    task = _task_at(machine.task, 0)
    machine.work += 1
    leave_delta(machine, task.removed)
    is_more = False
    for number in range(machine.nodes_used):
        node = layout.node_at(machine.nodes, number)
        relation = layout.relation_at(machine.relations, node.relation)
        touched = layout.touched_of(relation)
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
def propagate(address):
    """Runs round after round; returns why it stops."""
    return _drive(layout.machine_at(address, 0))


CHECKED, PROVED, DELAYED = (int(mark) for mark in (Mark.CHECKED, Mark.PROVED, Mark.DELAYED))


@record
class PlainRoundsTask(Structure):
    """`is_open`: the round is not plain. `forward`: how many variants find heads; the others look for derivations.
    `scans`: for each of these, `most_scans` numbers of relations, -1 for those below the stratum. `deletions`: heads
    that had not been checked before."""

    stamp: int
    is_backward_half: int
    is_open: int
    forward: int
    scans: int
    scans_size: int
    most_scans: int
    deletions: int


_plain_task_at = record_at(PlainRoundsTask)


@piece
def _open_half(machine):
    """Each half has variants of its own."""
    task = _plain_task_at(machine.task, 0)
    if task.is_backward_half:
        machine.variant = task.forward
    else:
        machine.variants_end = task.forward
    return layout.DONE


@piece
def _starts_half(machine, variant):
    return not _plain_task_at(machine.task, 0).is_open and has_delta(machine, variant)


@piece
def _look_at_bodies(machine, task, block, used):
    """The round is not plain if a derivation of a candidate needs a fact that has neither been checked nor is a
    candidate."""
    scans = words_at(task.scans, task.scans_size)
    first = (machine.variant - task.forward) * task.most_scans
    for scan in range(task.most_scans):
        number = scans[first + scan]
        if number < 0:
            continue
        relation = layout.relation_at(machine.relations, number)
        facts = layout.facts_of(relation)
        for i in range(used):
            value = facts.level[block[i, scan + 1]]
            if value < REFERENCE or not entry_of(facts.touched, value - REFERENCE).marks & (CHECKED | DELTA):
                task.is_open = 1
                return


@piece
def _sink_half(machine, variant, frame):
    """What is done with the last block, by half of the round."""
    task = _plain_task_at(machine.task, 0)
    if not task.is_backward_half:
        return apply_heads(machine, variant, frame, False, -1, 0, task.stamp)
    _look_at_bodies(machine, task, layout.block_of(frame), frame.end)
    machine.derived += frame.end
    frame.begun = frame.end
    return layout.DONE


_run_half_variant = runner(has_more, gather_heads, probe_seen, _sink_half)


@piece
def _run_half(machine, variant):
    reason = _run_half_variant(machine, variant)
    task = _plain_task_at(machine.task, 0)
    if reason == layout.CHECK and task.is_backward_half:
        # So long a search is better made by those who know when to give up.
        task.is_open = 1
        return layout.DONE
    return reason


@piece
def _mark_candidates(machine, added, removed):
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            fact = entry_of(touched, entry_of(touched, at).deltas)
            fact.marks = (fact.marks & ~removed) | added


@piece
def _choose(machine, task):
    """The delta is gone; heads that may go with it are the candidates. Whether there are any."""
    leave_delta(machine, IS)
    is_more = False
    for number in range(machine.nodes_used):
        node = layout.node_at(machine.nodes, number)
        relation = layout.relation_at(machine.relations, node.relation)
        touched = layout.touched_of(relation)
        fact = entry_of(touched, node.entry)
        if not fact.marks & IS or fact.marks & PROVED:
            continue
        if not fact.marks & CHECKED:
            task.deletions += 1
            if fact.marks & DELAYED or fact.count > 0:
                task.is_open = 1
        enter_delta(relation, touched, node.entry)
        is_more = True
    machine.nodes_used = 0
    task.stamp += 1
    return is_more


@piece
def _close_half(machine):
    """A half is over. With LARGE, the facts in the delta are still to be checked."""
    task = _plain_task_at(machine.task, 0)
    machine.work += 1
    if not task.is_backward_half:
        if not _choose(machine, task):
            return layout.DONE
        task.is_backward_half = 1
    elif not task.is_open:
        _mark_candidates(machine, CHECKED, 0)
        task.is_backward_half = 0
    if task.is_open:
        _mark_candidates(machine, 0, DELTA)
        return layout.LARGE
    # So that a search has the other half at least.
    return layout.CHECK if machine.work > machine.work_allowed // 2 else layout.GO_ON


_drive_plainly = driver(_open_half, _starts_half, _run_half, _close_half)


@operator(INT, INT)
def delete_plainly(address):
    """Runs plain rounds, beginning with the search for derivations of candidates; returns why it stops."""
    return _drive_plainly(layout.machine_at(address, 0))
