"""Steps of the machines on bindings that carry levels: facts of a delta as a start, and joins."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import flattened, inlined, int64, piece, prefetch
from elastalog.backends.kernel.execution.join import copy_columns
from elastalog.backends.kernel.execution.join_levels import join_levels, join_one
from elastalog.backends.kernel.execution.level_views import LACKS, OWN, VIEWS, copy_entry
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.rounds import goes_here
from elastalog.backends.kernel.store.annotations import ABSENT, TOUCHED_WIDTH, entry_of

_AHEAD = 16
"""How many facts of a list before its turn the memory of an entry is asked for; half as many before, that of its
row."""


@inlined
def fetch_listed(touched, rows, column, at, end):
    """Asks for what later facts of a list of entries will need, whose turn is at a place before `end`."""
    if at + _AHEAD < end:
        prefetch(flattened(touched), int64(touched[at + _AHEAD, column]) * TOUCHED_WIDTH)
        soon = entry_of(touched, touched[at + _AHEAD // 2, column])
        prefetch(flattened(rows), int64(soon.row) * rows.shape[1])


@piece
def gather_some_heads(machine, variant, frame, most):
    """Fills the first block with the next facts of the delta, at most `most`, whatever has become of them; column -1
    is the entry."""
    relation = layout.relation_at(machine.relations, variant.start)
    touched = layout.touched_of(relation)
    rows = layout.rows_of(relation)
    width = variant.width
    taken = layout.taken_of(machine, variant, frame, most)
    filled = min(relation.delta_end - machine.at, most)
    for i in range(filled):
        fetch_listed(touched, rows, relation.listed_in, machine.at + i, relation.delta_end)
        entry = touched[machine.at + i, relation.listed_in]
        row = int64(entry_of(touched, entry).row)
        copy_columns(rows, row, entry, taken, i)
        taken.out[i, width - 2] = 0
        taken.out[i, width - 1] = 0
    machine.at += filled
    return filled


@piece
def gather_heads(machine, variant, frame):
    """Fills the first block with as many facts of the delta as there is room for."""
    return gather_some_heads(machine, variant, frame, layout.BLOCK)


@piece
def gather_listed(machine, variant, frame, seen, is_loss, most):
    """Fills the first block with the next facts of the delta that are seen, at most `most`, those that go another way
    left aside, with their levels; column -1 is the row."""
    relation = layout.relation_at(machine.relations, variant.start)
    touched = layout.touched_of(relation)
    rows = layout.rows_of(relation)
    width = variant.width
    taken = layout.taken_of(machine, variant, frame, most)
    is_negated = variant.is_negated != 0
    is_flat = relation.is_flat != 0
    is_forked = variant.fork > 0
    at = machine.at
    filled = int64(0)
    while at < relation.delta_end and filled < most:
        fetch_listed(touched, rows, relation.listed_in, at, relation.delta_end)
        fact = entry_of(touched, touched[at, relation.listed_in])
        at += 1
        if not (seen >> int64(fact.marks)) & 1:
            continue
        if is_forked and not goes_here(machine, variant, rows, int64(fact.row)):
            continue
        copy_entry(rows, fact, is_loss, is_flat, taken, filled)
        if is_negated:
            taken.out[filled, width - 2] = 0
            taken.out[filled, width - 1] = 0 if is_loss else ABSENT
        filled += 1
    machine.at = at
    return filled


@piece
def gather_seen(machine, variant, frame, most):
    """Fills the first block with the next facts of the delta that the start sees in the phase, at most `most`."""
    seen = VIEWS[machine.phase, LACKS if variant.is_negated else 0]
    return gather_listed(machine, variant, frame, seen, machine.phase == layout.LOSING, most)


@piece
def probe_levels(machine, probe, frame, following, seen, is_loss, limit):
    """Joins what is left of a step's block with the rows below `limit` that are `seen` of the relation of the next
    step, until the block of that step is full. In chains that is one row, round after round."""
    goal = layout.goal_of(machine, probe, following, limit)
    if frame.end - frame.begun == 1:
        return join_one(machine, frame, goal, seen, is_loss)
    return join_levels(machine, frame, goal, seen, is_loss)


@piece
def probe_seen(machine, probe, frame, following):
    """Joins with all rows, as the phase sees them."""
    phase = machine.phase
    limit = layout.home_of(layout.relation_at(machine.relations, probe.relation)).used
    seen = VIEWS[phase, (LACKS if probe.is_negated else 0) + probe.is_before]
    return probe_levels(machine, probe, frame, following, seen, phase == layout.LOSING, limit)


@inlined
def view_in_phase(machine, relation, is_negated, is_before):
    """What a goal sees of its relation in a phase in which facts of the stratum are seen otherwise."""
    return VIEWS[machine.phase, (LACKS if is_negated else OWN if relation.is_own else 0) + is_before]


@piece
def gather_in_phase(machine, variant, frame):
    """As `gather_seen`, a block of facts, in such a phase."""
    seen = view_in_phase(machine, layout.relation_at(machine.relations, variant.start), variant.is_negated, 0)
    return gather_listed(machine, variant, frame, seen, machine.phase == layout.LOSING, layout.BLOCK)


@piece
def probe_in_phase(machine, probe, frame, following):
    """As `probe_seen`, in such a phase."""
    relation = layout.relation_at(machine.relations, probe.relation)
    seen = view_in_phase(machine, relation, probe.is_negated, probe.is_before)
    return probe_levels(
        machine, probe, frame, following, seen, machine.phase == layout.LOSING, layout.home_of(relation).used
    )
