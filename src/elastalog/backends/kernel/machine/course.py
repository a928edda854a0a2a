"""The update of a stratum (algorithm 4.4 in its counting form): from the first look at what changes below it, and at
its own explicit facts that go and come, to the list of what changed in it.

Losses go first, over the previous epoch: a derivation through a lost fact is taken off its head's count if it was
counted there, and a head whose count reaches 0 is lost in its turn. Counts only count derivations from lower levels, so
this never turns in a circle. Then every lost fact is looked for backwards, and gains settle in the order of their
levels. Each derivation through a changed fact is enumerated once a phase: at the delta that contains its last changed
fact, by the first goal that is in that delta. The rounds of a phase are in `update`.

Most updates end after a few facts, and then what counts is how often Python is asked."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.machine import inputs, layout
from elastalog.backends.kernel.machine.arrays import touched_of
from elastalog.backends.kernel.machine.counts import wait_for_counts
from elastalog.backends.kernel.machine.drive import enter_next, leave
from elastalog.backends.kernel.machine.inputs import MAY_GAIN, MAY_LOSE
from elastalog.backends.kernel.machine.layout import relation_at
from elastalog.backends.kernel.store.annotations import DELTA_LIST, entry_of
from elastalog.backends.kernel.store.bookkeeping import finish_entry


@piece
def go_on(machine):  # type: ignore[no-untyped-def]
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
def _go_on_within(machine):  # type: ignore[no-untyped-def]
    """The same within a stratum."""
    if machine.part == layout.TO_LOSE:
        concerned = inputs.look_at_inputs(machine) | inputs.look_at_given(machine)
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
                inputs.seek_given(machine)
                return _enter(machine, layout.RECOVERS, layout.RECOVERING)
    if machine.part == layout.TO_REDERIVE:
        reason = wait_for_counts(machine)
        if reason != layout.DONE:
            return reason
        machine.part = layout.TO_GAIN
        if _ways_of_losses(machine) & layout.SOUGHT:
            inputs.seek_losses(machine)
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
def _enter(machine, part, phase):  # type: ignore[no-untyped-def]
    machine.part = part
    machine.phase = phase
    machine.stage = layout.OPENING
    return layout.GO_ON


@piece
def _ways_of_losses(machine):  # type: ignore[no-untyped-def]
    """0 if no fact of the stratum was lost, and none of its explicit ones goes or comes; whether any that was lost can
    be looked for (SOUGHT), or any explicit one that goes (SOUGHT_IF_EXPLICIT)."""
    ways = 0
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.is_own:
            if relation.losses > 0:
                ways |= layout.FORWARDS | (relation.starts & layout.SOUGHT)
            if relation.going + relation.coming > 0:
                ways |= layout.FORWARDS
            if relation.going > 0:
                ways |= relation.starts & layout.SOUGHT_IF_EXPLICIT
    return ways


@piece
def _finish(machine):  # type: ignore[no-untyped-def]
    """Lists what changed in the relations of the stratum, as their deltas."""
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.is_own:
            touched = touched_of(relation)
            listed = 0
            for entry in range(relation.touched_used):
                if finish_entry(entry_of(touched, entry), machine.is_global != 0):
                    entry_of(touched, listed).deltas = entry
                    listed += 1
            relation.listed_in = DELTA_LIST
            relation.delta = 0
            relation.delta_end = listed
