"""The course of an update of a stratum that hears of changes below it, from the first look at them to the list of what
changed in it. Most such updates end after a few facts, and then what counts is how often Python is asked."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import piece
from elastalog.backends.kernel.machine import inputs, layout
from elastalog.backends.kernel.machine.arrays import touched_of
from elastalog.backends.kernel.machine.drive import enter_next, leave
from elastalog.backends.kernel.machine.inputs import MAY_GAIN, MAY_LOSE
from elastalog.backends.kernel.machine.layout import relation_at
from elastalog.backends.kernel.store.annotations import DELTA_LIST, LOSS_LIST, entry_of
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
            if reason != layout.DONE or machine.drive == 0:
                return reason
            machine.part = layout.TO_LEAVE
        reason = leave(machine)
        if reason != layout.GO_ON:
            return reason


@piece
def _go_on_within(machine):  # type: ignore[no-untyped-def]
    """The same within a stratum."""
    if machine.part == layout.TO_LOSE:
        concerned = inputs.look_at_inputs(machine)
        machine.may_gain = concerned & MAY_GAIN
        machine.is_marked = 0
        if concerned & MAY_LOSE:
            machine.is_marked = 1
            inputs.list_losses(machine)
            return _enter(machine, layout.LOSES, layout.LOSING)
        machine.part = layout.TO_RECOVER
    if machine.part == layout.TO_RECOVER:
        ways = _ways_of_losses(machine)
        if ways == 0 and not machine.may_gain:
            machine.part = layout.TO_END
        else:
            machine.is_marked = 1
            inputs.list_gains(machine)
            if ways & layout.SOUGHT:
                inputs.set_deltas(machine, LOSS_LIST)
                _seek_losses(machine)
                return _enter(machine, layout.RECOVERS, layout.RECOVERING)
            machine.part = layout.TO_GAIN
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
    """0 if no fact of the stratum was lost; whether any that was can be looked for (SOUGHT)."""
    ways = 0
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.is_own and relation.losses > 0:
            ways |= layout.FORWARDS | relation.starts
    return ways


@piece
def _seek_losses(machine):  # type: ignore[no-untyped-def]
    for r in range(machine.relations_number):
        relation = relation_at(machine.relations, r)
        if relation.is_own:
            relation.delta_end = relation.losses


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
