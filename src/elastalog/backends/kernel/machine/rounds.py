"""The loop of all machines: round after round, variant after variant, block after block.

Facts are few and rounds may be many thousand, so what counts is the cost of a step, not of a row. A machine therefore
runs without returning until something must be done in Python: memory to grow, an expression to evaluate, limits to look
at. Then it leaves off, and is called again to go on: where it is stands in the records (see `layout`).

Where a variant forks (see `planning.variants`), each fact of a delta must go one way and no other. So both indexes are
brought up to date before the first of the two variants begins, and as they only grow between rounds, both find the same
lengths.
"""

from __future__ import annotations

from typing import Any

from elastalog.backends.kernel.compile.signatures import inlined, int64, np_int32, piece
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.store.postings import LENGTH, append_rows, find_slot_of, postings_of
from elastalog.backends.kernel.store.set_table import keep_row
from elastalog.relations.limits import LEAST_NARROW, WIDE


def driver(open_round: Any, starts: Any, run: Any, close_round: Any) -> Any:
    """A piece that drives a machine; returns why it leaves off.

    `open_round` brings what a round needs up to date, `starts` says whether a variant has something to start from,
    `run` runs it (see `runner`): each DONE, or what is missing. `close_round` chooses the next delta and says GO_ON, or
    why there is no further round now."""

    @piece
    def drive(machine):
        while True:
            if machine.stage == layout.OPENING or machine.stage == layout.REOPENING:
                machine.variant = 0
                machine.variants_end = machine.variants_number
                reason = open_round(machine)
                if reason != layout.DONE:
                    return reason
                machine.stage = layout.RUNNING
                machine.at = -1
            while machine.variant < machine.variants_end:
                variant = layout.variant_at(machine.variants, machine.variant)
                if machine.at < 0:
                    if not starts(machine, variant):
                        machine.variant += 1
                        continue
                    begin(machine, variant)
                reason = run(machine, variant)
                if reason != layout.DONE:
                    return reason
                machine.variant += 1
                machine.at = -1
            machine.stage = layout.OPENING
            reason = close_round(machine)
            if reason != layout.GO_ON:
                return reason

    return drive


@piece
def begin(machine, variant):
    """Goes to the first place of the delta that a variant starts at."""
    machine.at = layout.relation_at(machine.relations, variant.start).delta
    machine.depth = 0
    machine.step = layout.GO
    frame = layout.frame_at(machine.frames, 0)
    frame.begun = 0
    frame.end = 0


@inlined
def has_delta(machine, variant):
    """Whether there are facts that a variant starts at."""
    relation = layout.relation_at(machine.relations, variant.start)
    return relation.delta < relation.delta_end


@inlined
def has_more(machine, variant):
    """Whether there are facts left that a variant starts at."""
    return machine.at < layout.relation_at(machine.relations, variant.start).delta_end


def runner(has_more: Any, gather: Any, probe_next: Any, sink: Any) -> Any:
    """A piece that runs one variant, depth first, one block a step; returns DONE, or what is missing.

    What differs between machines are its parts: `has_more` says whether the variant may have more to start at, `gather`
    fills the first block with that, `probe_next` the block of the next step, and `sink` hands what is left of the last
    block to the head, or says what is missing for that. Work is counted in rows that are looked at or made: limits must
    be checked though nothing is derived."""

    @piece
    def run(machine, variant):
        depth = machine.depth
        step = machine.step
        frame = layout.frame_at(machine.frames, depth)
        if step == layout.ACTED:
            # Python has made a block ready: it goes to the head, or to the next step.
            step = layout.SINK if depth == variant.probes and frame.end > 0 else layout.GO
        while True:
            if machine.work > machine.work_allowed or machine.derived > machine.derived_allowed:
                reason = layout.CHECK
                break
            if step == layout.SINK:
                reason = sink(machine, variant, frame)
                if reason != layout.DONE:
                    break
                step = layout.GO
                continue
            while depth > 0 and frame.begun >= frame.end:
                depth -= 1
                frame = layout.frame_at(machine.frames, depth)
            if frame.begun < frame.end:
                probe = layout.probe_at(machine.probes, variant.first_probe + depth)
                is_missing = probe.kind == layout.INDEXED and layout.index_at(machine.indexes, probe.index).is_missing
                if is_missing and not catch_up(machine, probe.index):
                    reason = layout.NO_INDEX
                    break
                following = layout.frame_at(machine.frames, depth + 1)
                begun = frame.begun
                filled = probe_next(machine, probe, frame, following)
                machine.work += filled + frame.begun - begun
                if filled == 0:
                    continue
                depth += 1
                frame = following
                reason = finish_block(machine, probe, frame, filled)
            else:
                other = layout.variant_at(machine.variants, variant.fork - 1)  # read only where there is one
                if variant.fork > 0 and not (_is_open(machine, variant) and _is_open(machine, other)):
                    reason = layout.NO_INDEX
                    break
                filled = gather(machine, variant, frame) if has_more(machine, variant) else int64(0)
                reason = layout.DONE
                if filled == 0:
                    break
                machine.work += filled
                reason = finish_block(machine, variant, frame, filled)
            if reason != layout.DONE:
                step = layout.ACTED
                break
            if depth == variant.probes and frame.end > 0:
                step = layout.SINK
        machine.depth = depth
        machine.step = step
        return reason

    return run


@inlined
def _second(block, i, second, is_constant):
    """The second operand of an action."""
    return np_int32(second) if is_constant else block[i, second]


@inlined
def _made(kind, left, right):
    """What an action makes of two numbers. Division is towards zero."""
    if kind == layout.ADD:
        return left + right
    if kind == layout.SUBTRACT:
        return left - right
    if kind == layout.MULTIPLY:
        return left * right
    if kind == layout.DIVIDE or kind == layout.REMAINDER:
        quotient = -(-left // right) if left < 0 else left // right
        return quotient if kind == layout.DIVIDE else left - quotient * right
    return int64(0)


@inlined
def _are_narrow(left, right):
    """Whether two words of numbers are the numbers themselves."""
    return left < WIDE and right < WIDE


@piece
def _compute(kind, first, second, is_constant, result, block, used):
    """Writes what an action makes of two numbers, row by row; False if one is not its own word, or would not be."""
    for i in range(used):
        left = int64(block[i, first])
        right = int64(_second(block, i, second, is_constant))
        made = _made(kind, left, right)
        if not _are_narrow(left, right) or made >= WIDE or made < LEAST_NARROW:
            return False
        block[i, result] = np_int32(made)
    return True


@piece
def _can_compare(first, second, is_constant, block, used):
    """Whether an action finds no numbers that are not their own words."""
    is_narrow = True
    for i in range(used):
        is_narrow &= _are_narrow(block[i, first], _second(block, i, second, is_constant))
    return is_narrow


@piece
def _act(machine, block, used, begin, end):
    """Runs simple actions on the first rows of a block; returns how many rows are left. -1 and less if a number is not
    its own word: then -1 - the rows that are left, on which all actions are to be run in Python, though some have
    been."""
    for number in range(begin, end):
        action = layout.action_at(machine.actions, number)
        kind = action.kind
        first, second, is_constant, result = action.first, action.second, action.is_constant != 0, action.result
        if kind == layout.COPY:
            for i in range(used):
                block[i, result] = _second(block, i, second, is_constant)
        elif kind >= layout.ADD and kind <= layout.REMAINDER:
            if not _compute(kind, first, second, is_constant, result, block, used):
                return -1 - used
        elif kind > layout.REMAINDER and not _can_compare(first, second, is_constant, block, used):
            return -1 - used
        else:
            kept = 0
            for i in range(used):
                word = block[i, first]
                other = _second(block, i, second, is_constant)
                if kind == layout.KEEP_EQUAL:
                    holds = word == other
                elif kind == layout.KEEP_UNEQUAL:
                    holds = word != other
                elif kind == layout.KEEP_LESS:
                    holds = word < other
                elif kind == layout.KEEP_AT_MOST:
                    holds = word <= other
                elif kind == layout.KEEP_MORE:
                    holds = word > other
                else:
                    holds = word >= other
                if holds:
                    kept = keep_row(block, kept, i)
            used = kept
    return used


@inlined
def finish_block(machine, step, frame, filled):
    """A step, the start of a variant or a probe, has filled its block: runs its actions."""
    frame.block = frame.usual
    frame.rows = max(filled, layout.BLOCK)
    frame.width = step.width
    frame.begun = 0
    frame.end = filled
    frame.within = 0
    return layout.DONE if step.first_action == step.actions_end else _run_actions(machine, step, frame)


@piece
def _run_actions(machine, step, frame):
    """The actions of a step, or ACTIONS if they are to be run in Python."""
    action = layout.action_at(machine.actions, step.first_action)
    machine.action = action.first
    if action.kind == layout.IN_PYTHON:
        return layout.ACTIONS
    first = step.first_action + (1 if action.kind == layout.IF_NARROW else 0)
    left = _act(machine, layout.block_of(frame), frame.end, first, step.actions_end)
    frame.end = left if left >= 0 else -1 - left
    return layout.DONE if left >= 0 else layout.ACTIONS


@piece
def extend_indexes(machine):
    """Adds the latest rows to the indexes of the stratum's relations; False if one is full."""
    for r in range(machine.relations_number):
        relation = layout.relation_at(machine.relations, r)
        for i in range(relation.first_index, relation.indexes_end):
            place = layout.index_at(machine.indexes, i)
            is_behind = not place.is_missing and layout.index_of(place).added < layout.home_of(relation).used
            if is_behind and not extend_index(place, relation):
                machine.full_index = i
                return False
    return True


@piece
def extend_index(place, relation):
    """Adds the latest rows of a relation to an index; False if it is full."""
    index = layout.index_of(place)
    index.added = extend_part(index, relation, index.added, 0, 1)
    return index.added >= layout.home_of(relation).used


@piece
def extend_part(index, relation, start, part, parts):
    """Adds the rows of some keys to an index, from a row on; returns where it is full, or the relation ends."""
    return append_rows(index, layout.rows_of(relation), start, layout.home_of(relation).used, part, parts)


@piece
def catch_up(machine, number):
    """Brings an index up to date that lacks rows which a drive has added to its relation; False if that is to be done
    in Python, since it is full, or is not there."""
    place = layout.index_at(machine.indexes, number)
    machine.full_index = number
    if place.home == 0 or not extend_index(place, layout.relation_at(machine.relations, place.relation)):
        return False
    place.is_missing = 0
    return True


@piece
def _is_open(machine, variant):
    """Whether a way of a fork is open; else the index that is missing is to be made in Python."""
    number = layout.probe_at(machine.probes, variant.first_probe).index
    return not layout.index_at(machine.indexes, number).is_missing or catch_up(machine, number)


@piece
def goes_here(machine, variant, rows, row):
    """Whether the fact in a row goes the way of this variant of a fork."""
    here = _length(machine, variant, rows, row)
    there = _length(machine, layout.variant_at(machine.variants, variant.fork - 1), rows, row)
    return variant.handicap * here < there if variant.is_other_way else here <= variant.handicap * there


@piece
def _length(machine, variant, rows, row):
    """How many rows the first join of a variant would look at from a fact."""
    probe = layout.probe_at(machine.probes, variant.first_probe)
    index = postings_of(layout.index_of(layout.index_at(machine.indexes, probe.index)))
    columns = layout.operands(machine, variant.first_key, variant.first_key_width)
    slot = find_slot_of(
        rows, row, columns, index, layout.rows_of(layout.relation_at(machine.relations, probe.relation))
    )
    return int64(index.slots[slot, LENGTH]) if slot >= 0 else int64(0)
