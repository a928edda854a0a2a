"""Iterations of a bootstrap in compiled code.

Semi-naive evaluation of a long chain is thousands of iterations that find a handful of facts each, that of many rules
thousands of variants that do. The machine runs them without returning: the delta of a relation are rows, and what an
iteration finds is appended. It leaves off as the machine of updates does, and when iterations have become so large that
they are better run otherwise. Several machines, each in a thread, may share iterations (see `shares`).

With global levels bindings carry levels, and iterations are levels: what fires later waits in the bucket queue.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    INT,
    inlined,
    int64,
    matrix_at,
    np_int32,
    operator,
    piece,
    record,
    record_at,
    words_at,
)
from elastalog.backends.kernel.execution.join import MEMBER, copy_columns, join, join_members
from elastalog.backends.kernel.execution.level_views import LACKS, VIEWS, is_seen, level_now
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.bucket_queue import insert_due, lowest_level, put_off
from elastalog.backends.kernel.machine.drive import enter_to_grow, leave_grown
from elastalog.backends.kernel.machine.level_steps import probe_levels
from elastalog.backends.kernel.machine.rounds import begin, driver, extend_indexes, has_delta, runner
from elastalog.backends.kernel.machine.shares import (
    SharedTask,
    are_extended,
    extend_again,
    extend_shared,
    gate_of,
    may_pass,
    share_at,
    share_out,
    sharing_at,
    take_back,
    take_share,
    turns_at,
)
from elastalog.backends.kernel.store.inserting import Noted, insert_alone, insert_together
from elastalog.jit.atomics import PASSED, arrive, atomic_load, let_pass
from elastalog.jit.operators import view


@record
class GrowthTask(SharedTask):
    """`most_found`, `most_work`: growth is left when that many facts have been found, and after an iteration that took
    more work; also when the iteration `until` is next. `carried`: how many words rows of bindings carry behind their
    slots. `hands_on`: what variants give is taken in Python. `allowed`: what `most_found` is at first in each stratum
    of a drive. `passed`: how often all machines that share had come when this one last did.

    `stop`: where the rows end that the present variant starts at; `began`, `began_at`: all work, and the row, when it
    began; `opened`: all work when the iteration did."""

    iteration: int
    most_found: int
    most_work: int
    carried: int
    hands_on: int
    until: int
    allowed: int
    passed: int
    stop: int
    began: int
    began_at: int
    opened: int


_task_at = record_at(GrowthTask)


@piece
def _open(machine):
    if not extend_indexes(machine):
        return layout.NO_INDEX
    if not insert_due(machine, _task_at(machine.task, 0).iteration):
        return layout.NO_ROOM
    return layout.DONE


@inlined
def _has_more(machine, variant):
    """Whether there are rows of the delta left."""
    return machine.at < _task_at(machine.task, 0).stop


@piece
def _gather(machine, variant, frame):
    task = _task_at(machine.task, 0)
    return gather_rows(machine, variant, frame, VIEWS[layout.GAINING, 0], task.stop, task.carried)


@piece
def gather_rows(machine, variant, frame, seen, stop, carried):
    """Fills the first block with the next rows of the delta, below `stop`, that are `seen`, with their levels if
    bindings carry such."""
    relation = layout.relation_at(machine.relations, variant.start)
    facts = layout.facts_of(relation)
    taken = layout.taken_of(machine, variant, frame, layout.BLOCK)
    is_checked = layout.home_of(relation).is_settled == 0
    row = machine.at
    filled = int64(0)
    while row < stop and filled < layout.BLOCK:
        if not is_checked or is_seen(seen, facts, row):
            copy_columns(facts.rows, row, np_int32(row), taken, filled)
            for c in range(variant.width - carried, variant.width):
                taken.out[filled, c] = level_now(facts, row, False, relation.is_flat != 0)
            filled += 1
        row += 1
    machine.at = row
    return filled


@piece
def _probe(machine, probe, frame, following):
    """Joins what is left of a step's block with the relation of the next step, until the block of that is full."""
    relation = layout.relation_at(machine.relations, probe.relation)
    limit = layout.home_of(relation).used
    if relation.is_own:
        limit = relation.delta if probe.is_before else relation.delta_end
    if limit == 0 and not probe.is_negated:
        frame.begun = frame.end
        return int64(0)
    if _task_at(machine.task, 0).carried > 0:
        seen = VIEWS[layout.GAINING, (LACKS if probe.is_negated else 0) + probe.is_before]
        return probe_levels(machine, probe, frame, following, seen, False, limit)
    return probe_rows(machine, probe, frame, following, limit)


@piece
def probe_rows(machine, probe, frame, following, limit):
    """Joins bindings that carry no levels with the rows below `limit`."""
    goal = layout.goal_of(machine, probe, following, limit)
    return join_members(frame, goal) if probe.kind == MEMBER else join(frame, goal)


@view
def _noted_of(head, iteration):
    """What is noted of facts that an iteration inserts."""
    home = layout.home_of(head)
    size = home.room if home.is_annotated else 0
    return Noted(words_at(home.count, size), head.delta_end, words_at(home.level, size), iteration)


@piece
def _insert_rows(machine, task, number, block, start, stop):
    """Inserts rows of a block into a relation; returns where it stopped, early if that has no room."""
    head = layout.relation_at(machine.relations, number)
    machine.full = number
    facts = layout.facts_of(head)
    if task.sharing != 0:
        sharing = sharing_at(task.sharing, 0)
        noted = _noted_of(head, _task_at(sharing.task, 0).iteration)
        return insert_together(facts, noted, block, start, stop, turns_at(sharing, number), task.thread)
    return insert_alone(layout.home_of(head), facts, _noted_of(head, task.iteration), block, start, stop)


@piece
def _insert_later(machine, variant, frame, task):
    """With global levels: inserts what is left of the last block, but for what fires later."""
    head = layout.relation_at(machine.relations, variant.head)
    block = layout.block_of(frame)
    before = frame.end
    reason = put_off(machine, block, frame.begun, before, task.iteration, variant.head, layout.home_of(head).width)
    if reason != layout.DONE:
        return reason
    frame.end = frame.begun + machine.kept
    done = _insert_rows(machine, task, variant.head, block, frame.begun, frame.end)
    # What was put off has been derived too.
    made = done - frame.begun + before - frame.end
    machine.derived += made
    variant.made += made
    frame.begun = done
    return layout.DONE if done >= frame.end else layout.NO_ROOM


@piece
def _insert_heads(machine, variant, frame, task):
    """Inserts what is left of the last block into one head after another, as much of it at a time as a block holds:
    a range may have made more."""
    given = layout.block_of(frame)
    spare = layout.frame_at(machine.frames, variant.probes + 1)
    while frame.begun < frame.end:
        size = min(frame.end - frame.begun, layout.BLOCK)
        if machine.served == 0:
            spare.begun = 0
            machine.served = 1
        while machine.served <= variant.heads:
            place = variant.first_head + (machine.served - 1) * variant.head_size
            head = layout.operands(machine, place, variant.head_size)
            width = head[1]
            block = matrix_at(spare.usual, layout.BLOCK, width)
            for i in range(spare.begun, size):
                for c in range(width):
                    block[i, c] = given[frame.begun + i, head[2 + c]]
            spare.begun = _insert_rows(machine, task, head[0], block, spare.begun, size)
            if spare.begun < size:
                return layout.NO_ROOM
            spare.begun = 0
            machine.served += 1
        machine.served = 0
        machine.derived += size * variant.heads
        variant.made += size
        frame.begun += size
    return layout.DONE


@piece
def _sink(machine, variant, frame):
    """Inserts what is left of the last block into the head, or the heads, or says what is missing for that."""
    task = _task_at(machine.task, 0)
    if task.hands_on:
        return layout.HAND_ON if frame.begun < frame.end else layout.DONE
    if task.carried > 0:
        return _insert_later(machine, variant, frame, task)
    if variant.heads > 0:
        return _insert_heads(machine, variant, frame, task)
    done = _insert_rows(machine, task, variant.head, layout.block_of(frame), frame.begun, frame.end)
    machine.derived += done - frame.begun
    variant.made += done - frame.begun
    frame.begun = done
    return layout.DONE if done >= frame.end else layout.NO_ROOM


@inlined
def _all_work(machine):
    return machine.work_before + machine.work


@piece
def _starts(machine, variant):
    """A variant starts at the whole delta."""
    relation = layout.relation_at(machine.relations, variant.start)
    task = _task_at(machine.task, 0)
    task.began_at = relation.delta
    task.stop = relation.delta_end
    task.began = _all_work(machine)
    return has_delta(machine, variant)


_run_variant = runner(_has_more, _gather, _probe, _sink)


@piece
def _run(machine, variant):
    """Runs a variant, and notes how many rows it has looked at and started from."""
    reason = _run_variant(machine, variant)
    if reason == layout.DONE:
        task = _task_at(machine.task, 0)
        variant.looked += _all_work(machine) - task.began
        variant.started += task.stop - task.began_at
    return reason


@piece
def _settle(machine):
    """What the iteration has appended is the next delta; returns how many facts that is."""
    found = 0
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        if relation.is_own:
            relation.delta = relation.delta_end
            relation.delta_end = layout.home_of(relation).used
            found += relation.delta_end - relation.delta
        else:
            relation.delta = relation.delta_end  # what the stratum reads is new in the first iteration
    return found


@piece
def _close(machine):
    task = _task_at(machine.task, 0)
    found = _settle(machine)
    task.iteration += 1
    if found == 0:
        if machine.levels_waiting == 0:
            return layout.DONE
        task.iteration = lowest_level(machine)
    task.most_found -= found
    is_large = _all_work(machine) - task.opened > task.most_work
    task.opened = _all_work(machine)
    return layout.LARGE if is_large or task.most_found < 0 or task.iteration >= task.until else layout.GO_ON


_drive = driver(_open, _starts, _run, _close)


@piece
def _run_shares(machine, task):
    """Runs shares of an iteration as long as there are any."""
    while True:
        if machine.at < 0:
            share = take_share(task.sharing, task.thread)
            if share == 0:
                return layout.DONE
            taken = share_at(share, 0)
            machine.variant = taken.variant
            begin(machine, layout.variant_at(machine.variants, machine.variant))
            machine.at = taken.start
            task.began_at = taken.start
            task.stop = taken.stop
            task.began = _all_work(machine)
        reason = _run(machine, layout.variant_at(machine.variants, machine.variant))
        if reason != layout.DONE:
            return reason
        machine.at = -1


@piece
def _go_over(machine, task, sharing):
    """All machines have come to the end of a stage, this one last: what is to be done by one before the next."""
    if sharing.stage == layout.OPENING:
        if not are_extended(machine, task.sharing):
            machine.stage = layout.REOPENING
            return layout.NO_INDEX
        sharing.stage = layout.RUNNING
        return layout.GO_ON
    if sharing.stage == layout.RUNNING:
        take_back(machine, task.sharing)
        first = _task_at(sharing.task, 0)
        found = _settle(machine)
        first.iteration += 1
        first.most_found -= found
        if found == 0:
            return layout.DONE
        if first.most_found < 0:
            return layout.LARGE
    return share_out(machine, task.sharing)


@piece
def _arrive(machine, task, sharing):
    """A machine has done its part of a stage. The last one says what follows for all."""
    gate = gate_of(sharing)
    task.passed = int64(atomic_load(gate, PASSED))
    machine.stage = layout.WAITING
    if not arrive(gate, sharing.threads):
        return layout.DONE
    reason = _go_over(machine, task, sharing)
    if machine.stage == layout.REOPENING:
        return reason
    sharing.reason = reason
    let_pass(gate)
    return layout.DONE


@piece
def _grow_together(machine, task):
    """Runs iterations with other machines, stage after stage."""
    sharing = sharing_at(task.sharing, 0)
    while True:
        if machine.stage == layout.REOPENING:
            # The index that was full has got room, while the others waited.
            extend_again(task.sharing)
            machine.stage = layout.WAITING
            let_pass(gate_of(sharing))
        elif machine.stage != layout.WAITING:
            reason = layout.DONE
            if machine.stage == layout.OPENING:
                reason = extend_shared(machine, task.sharing)
            elif machine.stage == layout.RUNNING:
                reason = _run_shares(machine, task)
            if reason == layout.DONE:
                reason = _arrive(machine, task, sharing)
            if reason != layout.DONE:
                return reason
        if not may_pass(machine, sharing, task.passed):
            return layout.CHECK
        if sharing.reason != layout.GO_ON:
            return sharing.reason
        machine.stage = sharing.stage
        machine.at = -1


@piece
def _grow_strata(machine, task):
    """Brings the strata of a drive to their fixpoints, one after the other."""
    while True:
        if machine.part == layout.TO_ENTER:
            reason = enter_to_grow(machine)
            if reason != layout.GO_ON:
                return reason
            task.iteration = 1
            task.most_found = task.allowed
            task.opened = _all_work(machine)
        reason = _drive(machine)
        if reason != layout.DONE:
            return reason
        leave_grown(machine)


@operator(INT, INT)
def grow(address):
    """Runs iteration after iteration, of one stratum, alone or with others, or of those of a drive; returns why it
    stops."""
    machine = layout.machine_at(address, 0)
    task = _task_at(machine.task, 0)
    if machine.drive != 0:
        return _grow_strata(machine, task)
    return _drive(machine) if task.sharing == 0 else _grow_together(machine, task)
