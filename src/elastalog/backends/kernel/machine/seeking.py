"""Lost facts are looked for backwards, or by enumerating a clause, whichever should go through fewer rows.

Going backwards from a head is cheap if the atoms of its clause share few facts with it, and hopeless if they share many
(see `sets.heads_backward`). Which it is shows after some heads. Those that are left when it should cost more than to
enumerate the clause once are left to a variant that does that, and hands on the derivations of these heads only.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import matrix_at, piece
from elastalog.backends.kernel.compile.signatures import int64, np_int32
from elastalog.backends.kernel.execution.join_levels import copy_fact, state_of
from elastalog.backends.kernel.machine.arrays import levels_of, operands, rows_of, touched_of
from elastalog.backends.kernel.machine.driver import has_delta
from elastalog.backends.kernel.machine.layout import BLOCK, RECOVERING, relation_at, variant_at
from elastalog.backends.kernel.machine.level_steps import VIEWS
from elastalog.backends.kernel.store.annotations import LOSS_LIST, entry_of

_FIRST_HEADS = 16
"""Heads that are looked for before it is judged what others will cost."""


@piece
def heads_to_seek(machine, variant):  # type: ignore[no-untyped-def]
    """How many heads a backward variant starts at next: as many again as before, or none, if the others are better left
    to enumeration."""
    relation = relation_at(machine.relations, variant.start)
    if variant.whole == 0 or relation.listed_in != LOSS_LIST:
        return int64(BLOCK)
    work = machine.work_before + machine.work
    done = machine.at - relation.delta
    if done == 0:
        variant.left = 0
        variant.spent = work
        return int64(_FIRST_HEADS)
    if (work - variant.spent) * (relation.delta_end - machine.at) > variant.whole * done:
        variant.left = machine.at
        return int64(0)
    return min(int64(done), int64(BLOCK))


@piece
def has_left(machine, variant):  # type: ignore[no-untyped-def]
    """Whether the backward variant that one stands in for has left it something."""
    sought = variant_at(machine.variants, variant.seeks - 1)
    relation = relation_at(machine.relations, sought.start)
    return relation.listed_in == LOSS_LIST and has_delta(machine, sought) and sought.left > 0


@piece
def gather_all(machine, variant, frame):  # type: ignore[no-untyped-def]
    """Fills the first block with the next facts of the start's relation that are there, with their levels."""
    sought = variant_at(machine.variants, variant.seeks - 1)
    if machine.at == 0:
        variant.spent = machine.work_before + machine.work
        _note_places(relation_at(machine.relations, sought.start))
    relation = relation_at(machine.relations, variant.start)
    touched = touched_of(relation)
    rows = rows_of(relation)
    level = levels_of(relation)
    out = matrix_at(frame.usual, BLOCK, variant.width)
    take = operands(machine, variant.take, variant.taken)
    place = operands(machine, variant.take + variant.taken, variant.taken)
    is_flat = relation.is_flat != 0
    seen = VIEWS[RECOVERING, 0]
    row = int64(machine.at)
    filled = int64(0)
    while row < relation.used and filled < BLOCK:
        if (seen >> state_of(level, touched, row)) & 1:
            copy_fact(rows, row, level, touched, False, is_flat, take, place, out, filled)
            filled += 1
        row += 1
    machine.work += row - machine.at - filled
    machine.at = row
    if filled == 0:
        sought.left = 0
        sought.whole = max(machine.work_before + machine.work - variant.spent, int64(1))
    return filled


@piece
def _note_places(relation):  # type: ignore[no-untyped-def]
    """Writes the place of every entry in the list of losses where the list of the delta would be, which there is none
    of now."""
    touched = touched_of(relation)
    for at in range(relation.losses):
        entry_of(touched, entry_of(touched, at).losses).deltas = np_int32(at)
