"""The update of a stratum (algorithm 4.4 in its counting form) in compiled code: from the first look at what changes
below it, and at its own explicit facts that go and come, to the list of what changed in it.

Losses go first, over the previous epoch: a derivation through a lost fact is taken off its head's count if it was
counted there, and a head whose count reaches 0 is lost in its turn. Counts only count derivations from lower levels, so
this never turns in a circle. Then every lost fact is looked for backwards, and gains settle in the order of their
levels. Each derivation through a changed fact is enumerated once a phase: at the delta that contains its last changed
fact, by the first goal that is in that delta.

Most updates end after a few facts, and then what counts is how often Python is asked.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import INT, inlined, int64, matrix_at, operator, piece
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.machine import inputs, layout
from elastalog.backends.kernel.machine.bucket_queue import take_lowest, waiting_of
from elastalog.backends.kernel.machine.drive import drive_at, enter_next, leave
from elastalog.backends.kernel.machine.heads import (
    gain,
    gain_together,
    has_counts,
    highest,
    lose,
    lose_together,
    recover,
    recover_listed,
    take_starts,
    wait_for_counts,
)
from elastalog.backends.kernel.machine.inputs import MAY_GAIN, MAY_LOSE
from elastalog.backends.kernel.machine.level_steps import gather_seen, gather_some_heads, probe_seen
from elastalog.backends.kernel.machine.rederivation import gather_all, has_left, heads_to_seek, keep_sought
from elastalog.backends.kernel.machine.rounds import driver, extend_indexes, has_delta, has_more, runner
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, LOSS_LIST, LOST, entry_of
from elastalog.backends.kernel.store.bookkeeping import finish_entry, lose_fact, settle_at
from elastalog.backends.kernel.store.count_vectors import MOST_STEPS


@piece
def _open(machine):
    """Gains may have brought new rows. After the first round only facts of the stratum are in the delta."""
    if machine.stage == layout.REOPENING:
        machine.variants_end = machine.own_variants
    is_ready = machine.phase != layout.GAINING or extend_indexes(machine)
    return layout.DONE if is_ready else layout.NO_INDEX


@inlined
def _starts(machine, variant):
    """Whether a variant has something to start from."""
    if variant.seeks > 0:
        return machine.phase == layout.RECOVERING and has_left(machine, variant)
    if not has_delta(machine, variant):
        return False
    relation = layout.relation_at(machine.relations, variant.start)
    if machine.phase == layout.RECOVERING:
        return variant.lists & (1 << relation.listed_in) != 0
    if variant.is_backward:
        return False
    if (machine.phase == layout.LOSING) != (variant.is_negated != 0):
        return relation.may_lose != 0
    return relation.may_gain != 0


@inlined
def _has_more(machine, variant):
    """Whether there is something left to start at; who goes through all facts finds out himself, who helps another is
    given it."""
    return machine.task == 0 and (variant.seeks > 0 or has_more(machine, variant))


@piece
def _gather(machine, variant, frame):
    """The next facts of the delta that the start sees, or the next lost heads, or of all facts."""
    machine.served = 0
    most = drive_at(machine.drive, 0).most_started if variant.is_shared else int64(layout.BLOCK)
    if variant.seeks > 0:
        return gather_all(machine, variant, frame, most)
    if variant.is_backward:
        return gather_some_heads(machine, variant, frame, heads_to_seek(machine, variant, most))
    return gather_seen(machine, variant, frame, most)


@piece
def _sink(machine, variant, frame):
    """Hands the last block to the head, or to one head after another, or says what is missing for that."""
    if machine.task != 0 and machine.phase != layout.RECOVERING:
        return _hand_on_together(machine, variant, frame)
    if variant.heads == 0:
        reason = _hand_on(machine, variant, variant.head, layout.block_of(frame), frame.end)
        if reason != layout.DONE:
            return reason
    else:
        spare = layout.frame_at(machine.frames, variant.probes + 1)
        while machine.served < variant.heads:
            head = layout.operands(machine, variant.first_head + machine.served * variant.head_size, variant.head_size)
            block = matrix_at(spare.usual, layout.BLOCK, head[1] + LEVELS)
            _project(layout.block_of(frame), frame.end, head, block)
            reason = _hand_on(machine, variant, head[0], block, frame.end)
            if reason != layout.DONE:
                return reason
            machine.served += 1
        machine.served = 0
    frame.begun = frame.end
    return layout.DONE


@piece
def _project(block, used, head, out):
    """Copies the words of a head, and the levels."""
    width = head[1]
    last = block.shape[1] - LEVELS
    for i in range(used):
        for c in range(width):
            out[i, c] = block[i, head[2 + c]]
        for c in range(LEVELS):
            out[i, width + c] = block[i, last + c]


@piece
def _hand_on_together(machine, variant, frame):
    """Hands what is left of the last block to the head, as other threads do, or says what is missing for that."""
    head = layout.relation_at(machine.relations, variant.head)
    block = layout.block_of(frame)
    begun = frame.begun
    machine.full = variant.head
    if machine.phase == layout.LOSING:
        if machine.nodes_used + frame.end > machine.nodes_room:
            return layout.NO_NODES
        frame.begun = lose_together(block, begun, frame.end, variant.head, head, machine)
    else:
        reason = _can_wait(machine, block, frame.end)
        if reason != layout.DONE:
            return reason
        frame.begun = gain_together(block, begun, frame.end, variant.head, head, machine)
    machine.derived += frame.begun - begun
    return layout.DONE if frame.begun == frame.end else layout.NO_ROOM


@piece
def _can_wait(machine, block, used):
    """Whether there is room in the queue for the heads of a block, or what is missing."""
    if machine.nodes_used + used > machine.nodes_room:
        return layout.NO_NODES
    # What was found backwards is offered as it was before the gains.
    machine.highest = highest(block, used, block.shape[1] - (1 if machine.phase == layout.RECOVERING else 2))
    return layout.DONE if machine.highest < machine.levels_room else layout.NO_LEVELS


@piece
def _hand_on(machine, variant, number, block, used):
    """Hands a block to a head, or says what is missing for that."""
    phase = machine.phase
    head = layout.relation_at(machine.relations, number)
    home = layout.home_of(head)
    machine.full = number
    if phase != layout.RECOVERING and home.touched_used + used > home.touched_room:
        return layout.NO_ROOM
    if head.vectors != 0 and not has_counts(head, home.used + used, MOST_STEPS * used):
        return layout.NO_COUNTS
    derived = used
    if phase == layout.LOSING:
        lose(block, used, head, machine)
    else:
        if phase == layout.GAINING and home.used + used > home.room:
            return layout.NO_ROOM
        reason = _can_wait(machine, block, used)
        if reason != layout.DONE:
            return reason
        if phase == layout.RECOVERING:
            if variant.seeks > 0:
                first = layout.variant_at(machine.variants, variant.seeks - 1).left
                kept = keep_sought(machine, block, used, home.width)
                derived = recover_listed(block, kept, number, head, first, machine)
            else:
                recover(block, used, number, head, machine)
        else:
            gain(block, used, number, head, machine)
    machine.derived += derived
    return layout.DONE


@piece
def _close_losses(machine):
    """The delta has been propagated: its facts are lost. Heads that lost their last derivation are the next delta;
    returns how many."""
    found = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            fact = entry_of(touched, touched[at, relation.listed_in])
            if relation.is_own:
                lose_fact(fact)
            else:
                fact.marks = (fact.marks & ~DELTA) | LOST
        if relation.is_own:
            relation.delta = relation.delta_end if relation.listed_in == LOSS_LIST else 0
            relation.listed_in = LOSS_LIST
            relation.delta_end = relation.losses
            for at in range(relation.delta, relation.delta_end):
                entry_of(touched, touched[at, LOSS_LIST]).marks |= DELTA
            found += relation.delta_end - relation.delta
        else:
            relation.delta = relation.delta_end
    return found


@piece
def _close_gains(machine):
    """The delta has been propagated. The facts that wait for the lowest level settle at it and are the next delta;
    returns how many."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        touched = layout.touched_of(relation)
        for at in range(relation.delta, relation.delta_end):
            entry_of(touched, touched[at, relation.listed_in]).marks &= ~DELTA
        relation.listed_in = DELTA_LIST
        relation.delta = 0
        relation.delta_end = 0
    waiting = waiting_of(machine)
    while machine.levels_waiting > 0:
        level = take_lowest(machine)
        number = int64(waiting[level])
        waiting[level] = -1
        found = 0
        while number >= 0:
            node = layout.node_at(machine.nodes, number)
            number = int64(node.next)
            relation = layout.relation_at(machine.relations, node.relation)
            touched = layout.touched_of(relation)
            if settle_at(entry_of(touched, node.entry), level):
                entry_of(touched, relation.delta_end).deltas = node.entry
                relation.delta_end += 1
                found += 1
        if machine.levels_waiting == 0:
            machine.nodes_used = 0
        if found > 0:
            return found
    return 0


@piece
def _close(machine):
    if machine.phase == layout.RECOVERING:
        return layout.DONE
    machine.work += 1
    found = _close_losses(machine) if machine.phase == layout.LOSING else _close_gains(machine)
    if found == 0:
        return layout.DONE
    machine.stage = layout.REOPENING
    if found >= drive_at(machine.drive, 0).large:
        return layout.LARGE
    return layout.CHECK if machine.work > machine.work_allowed else layout.GO_ON


_run = runner(_has_more, _gather, probe_seen, _sink)
_drive = driver(_open, _starts, _run, _close)


@piece
def _help(machine):
    """Runs a variant that another machine is at from what that one has gathered, as long as there is any."""
    variant = layout.variant_at(machine.variants, machine.variant)
    while machine.at >= 0 or take_starts(machine, variant):
        reason = _run(machine, variant)
        if reason != layout.DONE:
            return reason
        machine.at = -1
    return layout.DONE


@piece
def _advance(machine):
    while True:
        if machine.part & 1 == 0:  # between phases
            reason = go_on(machine)
            if reason != layout.GO_ON:
                return reason
        reason = _drive(machine)
        if reason != layout.DONE:
            return reason
        machine.part += 1


@operator(INT, INT)
def advance(address):
    """Runs a drive on, stratum after stratum, round after round, or helps with a variant (see `heads`); returns why
    it stops (`layout.DONE`)."""
    machine = layout.machine_at(address, 0)
    if machine.task != 0:
        return _help(machine)
    return _advance(machine)


@piece
def go_on(machine):
    """From the end of one phase to the beginning of the next, on a drive perhaps of another stratum: GO_ON, or DONE
    after the last, or what is missing."""
    while True:
        if machine.part == layout.TO_ENTER:
            reason = enter_next(machine)
            if reason != layout.GO_ON:
                return reason
        if machine.part != layout.TO_LEAVE:
            reason = _go_on_within(machine)
            if reason != layout.DONE:
                return reason
            machine.part = layout.TO_LEAVE
        reason = leave(machine)
        if reason != layout.GO_ON:
            return reason


@piece
def _go_on_within(machine):
    """From the end of one phase of a stratum to the beginning of the next."""
    if machine.part == layout.TO_LOSE:
        concerned = inputs.look_at_changes(machine)
        machine.may_gain = concerned & MAY_GAIN
        machine.is_marked = 0
        if concerned & MAY_LOSE:
            machine.is_marked = 1
            inputs.list_losses(machine)
            return _enter(machine, layout.LOSES, layout.LOSING)
        inputs.lose_given(machine)
        machine.part = layout.TO_RECOVER
    if machine.part == layout.TO_RECOVER:
        ways = _ways_of_losses(machine)
        machine.part = layout.TO_REDERIVE
        if ways == 0 and not machine.may_gain:
            machine.part = layout.TO_END
        else:
            machine.is_marked = 1
            inputs.list_gains(machine)
            if ways & layout.SOUGHT_IF_EXPLICIT:
                inputs.seek(machine, DELTA_LIST)
                return _enter(machine, layout.RECOVERS, layout.RECOVERING)
    if machine.part == layout.TO_REDERIVE:
        reason = wait_for_counts(machine)
        if reason != layout.DONE:
            return reason
        machine.part = layout.TO_GAIN
        if _ways_of_losses(machine) & layout.SOUGHT:
            inputs.seek(machine, LOSS_LIST)
            return _enter(machine, layout.REDERIVES, layout.RECOVERING)
    if machine.part == layout.TO_GAIN:
        if machine.may_gain or machine.levels_waiting > 0:
            inputs.set_gains(machine)
            return _enter(machine, layout.GAINS, layout.GAINING)
        machine.part = layout.TO_END
    if machine.is_marked:
        inputs.take_marks_off(machine)
        machine.is_marked = 0
    _finish(machine)
    return layout.DONE


@piece
def _enter(machine, part, phase):
    machine.part = part
    machine.phase = phase
    machine.stage = layout.OPENING
    return layout.GO_ON


@piece
def _ways_of_losses(machine):
    """0 if no fact of the stratum was lost, and none of its explicit ones goes or comes; whether any that was lost can
    be looked for (SOUGHT), or any explicit one that goes (SOUGHT_IF_EXPLICIT)."""
    ways = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            if relation.losses > 0:
                ways |= layout.FORWARDS | (relation.starts & layout.SOUGHT)
            if relation.going + relation.coming > 0:
                ways |= layout.FORWARDS
            if relation.going > 0:
                ways |= relation.starts & layout.SOUGHT_IF_EXPLICIT
    return ways


@piece
def _finish(machine):
    """Lists what changed in the relations of the stratum, as their deltas."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            touched = layout.touched_of(relation)
            listed = 0
            for entry in range(layout.home_of(relation).touched_used):
                if finish_entry(entry_of(touched, entry), machine.is_global != 0):
                    entry_of(touched, listed).deltas = entry
                    listed += 1
            relation.listed_in = DELTA_LIST
            relation.delta = 0
            relation.delta_end = listed
