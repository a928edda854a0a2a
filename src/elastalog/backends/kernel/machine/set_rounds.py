"""Rounds of the strategies that maintain sets, in compiled code: what follows from a delta is found, some of it is the
next delta, and so on to the end.

Deletions along a chain are thousands of rounds of a handful of facts. The machine runs them without returning, except
where that of updates does. The deltas are one list a relation, `deltas` of the touched table; the heads of a round are
nodes.

Backward/forward checking has rounds in which nothing can be proved: facts are deleted along a chain, one or a few a
round, each of which lost its last derivation with the one before. A round is *plain* if no fact that is questioned has
support or is delayed, and all facts of the stratum that its derivations need have been checked: then all of them go.
Such a round has a second half: what would be the next delta are candidates, and first their derivations are looked for.
The machine leaves off before a round that is not plain (LARGE).
"""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import (
    INT,
    group_of_numbers,
    inlined,
    np_int32,
    operator,
    piece,
    record,
    record_at,
    words_at,
)
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.drive import look_at_indexes
from elastalog.backends.kernel.machine.level_steps import gather_heads, gather_in_phase, probe_in_phase
from elastalog.backends.kernel.machine.rounds import driver, extend_indexes, has_delta, has_more, runner
from elastalog.backends.kernel.store.annotations import ABSENT, COUNT, DELTA, DERIVED, NEW, REFERENCE, entry_of
from elastalog.backends.kernel.store.bookkeeping import find_or_add, touched_entry
from elastalog.backends.sets import Mark

CHECKED, DELAYED = int(Mark.CHECKED), int(Mark.DELAYED)

MARKED, ASSURED, QUESTIONED = 2, 4, 8
"""The bits of `level` that look-ahead uses where derivations by recursive rules are not counted; those from QUESTIONED
on count the derivations by other rules with a marked body fact, where these are counted."""

NOTHING, IF_TOUCHED, IF_QUESTIONED, IF_CERTAIN = range(4)
"""What is noted of the heads of derivations: nothing; MARKED, if a body fact is and the update touches the head anyway;
MARKED, if a body fact is; ASSURED, if all body facts are certain."""

IS_RECURSIVE, READS_ABSENCE = 1, 2
"""What there is to know of the clause of a variant."""


@record
class SetRoundsTask(Structure):
    """What is done with heads. `recursive_step` and `other_step`: what a derivation by a recursive rule adds to `new`
    of its head, and one by another to `count`; nothing if that is not counted. With `is_new`, facts never seen get a
    row, and present heads that nothing touched are passed over unless counted. With `is_gain`, derivations that fired
    before are not counted. `noted`: what look-ahead wants to know. Heads are listed once a round, whose number is
    `stamp`. `kinds`: of each variant, what there is to know of its clause.

    `is_one_round`: there is no next delta. It are heads whose marks, as far as they are looked at, are those wanted; if
    `is_unsupported`, only without C_nr. Marks are added when a fact enters the delta, and removed when it leaves it.

    `is_checking`: rounds are run as long as they are plain. Then the variants from `forward` on look for derivations,
    and `is_backward_half` says that it is their turn; `is_open`: the round is not plain. `scans`: for each of these,
    `most_scans` numbers of relations, -1 for those below the stratum. `deletions`: heads that had not been checked
    before."""

    recursive_step: int
    other_step: int
    is_new: int
    is_gain: int
    noted: int
    stamp: int
    kinds: int

    is_one_round: int
    looked_at: int
    wanted: int
    is_unsupported: int
    added: int
    removed: int

    is_checking: int
    is_backward_half: int
    is_open: int
    forward: int
    scans: int
    scans_size: int
    most_scans: int
    deletions: int


_task_at = record_at(SetRoundsTask)


@piece
def _open(machine):
    task = _task_at(machine.task, 0)
    if machine.stage == layout.OPENING:
        look_at_indexes(machine)
    if task.is_checking:  # each half has variants of its own
        if task.is_backward_half:
            machine.variant = task.forward
        else:
            machine.variants_end = task.forward
    is_ready = not task.is_new or extend_indexes(machine)
    return layout.DONE if is_ready else layout.NO_INDEX


@piece
def _starts(machine, variant):
    return not _task_at(machine.task, 0).is_open and has_delta(machine, variant)


@piece
def _gather(machine, variant, frame):
    if variant.is_backward:
        return gather_heads(machine, variant, frame)
    return gather_in_phase(machine, variant, frame)


@piece
def _sink(machine, variant, frame):
    """Applies the last block to its heads and lists each head once a round, or looks at bodies; says what is missing
    for that."""
    task = _task_at(machine.task, 0)
    if not task.is_backward_half:
        return _apply_heads(machine, task, variant, frame)
    _look_at_bodies(machine, task, layout.block_of(frame), frame.end)
    machine.derived += frame.end
    frame.begun = frame.end
    return layout.DONE


@inlined
def _apply_heads(machine, task, variant, frame):
    used = frame.end
    relation = layout.relation_at(machine.relations, variant.head)
    head = layout.home_of(relation)
    machine.full = variant.head
    is_new = task.is_new != 0
    if head.touched_used + used > head.touched_room or (is_new and head.used + used > head.room):
        return layout.NO_ROOM
    if machine.nodes_used + used > machine.nodes_room:
        return layout.NO_NODES
    kind = words_at(task.kinds, machine.variants_number)[machine.variant]
    is_recursive = kind & IS_RECURSIVE != 0
    step = np_int32(task.recursive_step if is_recursive else task.other_step)
    column = NEW if is_recursive else COUNT
    noted = NOTHING if task.noted == IF_CERTAIN and kind & READS_ABSENCE else task.noted
    is_marking = NOTHING < noted < IF_CERTAIN
    block = layout.block_of(frame)
    now, before = block.shape[1] - 2, block.shape[1] - 1
    facts = layout.facts_of(relation)
    found = group_of_numbers()
    for i in range(used):
        row = find_or_add(head, facts, block, i, used, is_new, found)
        if row < 0:
            continue
        is_counted = step != 0 and (not task.is_gain or block[i, before] >= ABSENT)
        is_marked = is_marking and block[i, now] >= MARKED
        if is_new and not is_counted and facts.level[row] < ABSENT and not (is_marked and noted == IF_QUESTIONED):
            continue
        entry = touched_entry(head, facts, row, DERIVED, 0)
        fact = entry_of(facts.touched, entry)
        if is_counted:
            facts.touched[entry, column] += step
        if is_marked:
            fact.new |= MARKED
            if step != 0 and not is_recursive:
                fact.new += QUESTIONED
        elif noted == IF_CERTAIN and block[i, now] == 0:
            fact.new |= ASSURED
        if fact.other != task.stamp:
            fact.other = task.stamp
            node = layout.node_at(machine.nodes, machine.nodes_used)
            node.relation = variant.head
            node.entry = entry
            machine.nodes_used += 1
    machine.derived += used
    frame.begun = used
    return layout.DONE


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


_run_variant = runner(has_more, _gather, probe_in_phase, _sink)


@piece
def _run(machine, variant):
    reason = _run_variant(machine, variant)
    task = _task_at(machine.task, 0)
    if reason == layout.CHECK and task.is_backward_half:
        # So long a search is better made by those who know when to give up.
        task.is_open = 1
        return layout.DONE
    return reason


@piece
def _leave_delta(machine, removed):
    """The delta is over: its facts lose some marks."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            entry_of(touched, entry_of(touched, at).deltas).marks &= ~(DELTA | removed)
        relation.delta = relation.delta_end


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
    """The heads found that are wanted are the next delta, or the candidates for it. Whether there are any."""
    is_more = False
    for number in range(machine.nodes_used):
        node = layout.node_at(machine.nodes, number)
        relation = layout.relation_at(machine.relations, node.relation)
        touched = layout.touched_of(relation)
        fact = entry_of(touched, node.entry)
        if fact.marks & task.looked_at != task.wanted or (task.is_unsupported and fact.count != 0):
            continue
        if task.is_checking and not fact.marks & CHECKED:
            task.deletions += 1
            if fact.marks & DELAYED or fact.count > 0:
                task.is_open = 1
        fact.marks |= task.added | DELTA
        entry_of(touched, relation.delta_end).deltas = node.entry
        relation.delta_end += 1
        is_more = True
    machine.nodes_used = 0
    task.stamp += 1
    return is_more


@piece
def _close(machine):
    """A round is over, or a half of it. With LARGE, the facts in the delta are still to be checked."""
    task = _task_at(machine.task, 0)
    machine.work += 1
    if task.is_backward_half:
        if not task.is_open:
            _mark_candidates(machine, CHECKED, 0)
            task.is_backward_half = 0
    else:
        _leave_delta(machine, task.removed)
        if task.is_one_round or not _choose(machine, task):
            return layout.DONE
        task.is_backward_half = task.is_checking
    if task.is_open:
        _mark_candidates(machine, 0, DELTA)
        return layout.LARGE
    machine.stage = layout.REOPENING
    # So that a search has the other half at least.
    allowed = machine.work_allowed // 2 if task.is_checking else machine.work_allowed
    return layout.CHECK if machine.work > allowed else layout.GO_ON


_drive = driver(_open, _starts, _run, _close)


@operator(INT, INT)
def run_rounds(address):
    """Runs round after round, for one that is checking beginning with the search for derivations of candidates; returns
    why it stops."""
    return _drive(layout.machine_at(address, 0))
