"""Lost facts are looked for backwards, or by enumerating a clause, whichever should go through fewer rows.

Going backwards from a head is cheap if the atoms of its clause share few facts with it, and hopeless if they share many
(see `sets.heads_backward`). Which it is shows after some heads. Those that are left when it should cost more than to
enumerate the clause once are left to a variant that does that, and hands on the derivations of these heads only. The
first heads may be unlike the others, so a part of what enumerating costs is spent before that is believed.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    NONE,
    ONE,
    hash_row,
    inlined,
    int64,
    keys_at,
    matrix_at,
    np_int32,
    piece,
    words_at,
)
from elastalog.backends.kernel.execution.join_levels import fetch_fact
from elastalog.backends.kernel.execution.level_views import VIEWS, copy_fact, is_seen
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.level_steps import fetch_listed
from elastalog.backends.kernel.machine.rounds import has_delta
from elastalog.backends.kernel.store.annotations import LOSS_LIST, entry_of
from elastalog.backends.kernel.store.memory import index_descriptor_at
from elastalog.backends.kernel.store.postings import LENGTH, PLACE, SLOT_WIDTH
from elastalog.backends.kernel.store.set_table import keep_row

_FIRST_HEADS = 16
"""Heads that are looked for at first; then as many again, up to a block."""

_PART_SPENT = 64
"""One in this many of the rows that enumerating should take are looked at before it is judged what others will cost."""

_AHEAD = 16
"""How many rows of a posting before its turn the memory of one is asked for."""

_UPPER = np.uint64(64 - (layout.SOUGHT_BITS - 1).bit_length())
_WORD, _IN_WORD = np.uint64(6), np.uint64(63)
"""The bit of a hash is what its upper part says; which word of bits, and where in it."""


@piece
def heads_to_seek(machine, variant, most):
    """How many heads a backward variant starts at next: as many again as before, at most `most`, or none, if the others
    are better left to enumeration."""
    relation = layout.relation_at(machine.relations, variant.start)
    if variant.whole == 0 or relation.listed_in != LOSS_LIST:
        return most
    work = machine.work_before + machine.work
    done = machine.at - relation.delta
    if done == 0:
        variant.left = 0
        variant.spent = work
        return int64(_FIRST_HEADS)
    spent = work - variant.spent
    if _PART_SPENT * spent > variant.whole and spent * (relation.delta_end - machine.at) > variant.whole * done:
        variant.left = machine.at
        return int64(0)
    return min(int64(done), most)


@piece
def has_left(machine, variant):
    """Whether the backward variant that one stands in for has left it something."""
    sought = layout.variant_at(machine.variants, variant.seeks - 1)
    relation = layout.relation_at(machine.relations, sought.start)
    return relation.listed_in == LOSS_LIST and has_delta(machine, sought) and sought.left > 0


@piece
def gather_all(machine, variant, frame, most):
    """Fills the first block with the next facts of the start's relation that are there, at most `most`, with their
    levels. If an index has those together that the first probe looks up alike, in its order: then what is found for one
    is near for the next."""
    sought = layout.variant_at(machine.variants, variant.seeks - 1)
    relation = layout.relation_at(machine.relations, variant.start)
    if machine.at == 0:
        variant.spent = machine.work_before + machine.work
        _note_sought(machine, layout.relation_at(machine.relations, sought.start), sought.left)
    place = layout.index_at(machine.indexes, variant.grouped - 1 if variant.grouped > 0 else 0)
    is_grouped = (
        variant.grouped > 0 and not place.is_missing and layout.index_of(place).added >= layout.home_of(relation).used
    )
    index = index_descriptor_at(place.home if is_grouped else 0, 0)
    slots = matrix_at(index.slots if is_grouped else 0, index.slots_size if is_grouped else 0, SLOT_WIDTH)
    pool = words_at(index.pool if is_grouped else 0, index.pool_size if is_grouped else 0)
    end = index.slots_size if is_grouped else layout.home_of(relation).used
    facts = layout.facts_of(relation)
    taken = layout.taken_of(machine, variant, frame, most)
    is_flat = relation.is_flat != 0
    seen = VIEWS[layout.RECOVERING, 0]
    at = int64(machine.at) >> 32  # a row or a slot; below, where in its posting
    within = int64(machine.at) & 0xFFFFFFFF
    filled = int64(0)
    passed = int64(0)
    while at < end and filled < most:
        row = at
        length = int64(1)
        if is_grouped:
            length = int64(slots[at, LENGTH])
            row = int64(slots[at, PLACE])
            if length > 1:
                later = min(row + within + _AHEAD, row + length - 1)
                fetch_fact(facts, int64(pool[later]))
                row = int64(pool[row + within])
        if length > 0:
            if is_seen(seen, facts, row):
                copy_fact(facts, row, False, is_flat, taken, filled)
                filled += 1
            passed += 1
        within += 1
        if within >= length:
            within = int64(0)
            at += 1
    machine.work += passed - filled
    machine.at = at << 32 | within
    if filled == 0:
        sought.left = 0
        sought.whole = max(machine.work_before + machine.work - variant.spent, int64(1))
    return filled


@piece
def _note_sought(machine, relation, first):
    """Writes the place of every entry in the list of losses where the list of the delta would be, which there is none
    of now. Those from the first that is sought on get the bit of their hash."""
    touched = layout.touched_of(relation)
    rows = layout.rows_of(relation)
    bits = keys_at(machine.sought, layout.SOUGHT_BITS // 64)
    for i in range(bits.shape[0]):
        bits[i] = NONE
    for at in range(relation.losses):
        fetch_listed(touched, rows, LOSS_LIST, at, relation.losses)
        fact = entry_of(touched, entry_of(touched, at).losses)
        fact.deltas = np_int32(at)
        if at >= first:
            bit = _bit(rows, int64(fact.row), rows.shape[1])
            bits[bit >> _WORD] |= ONE << (bit & _IN_WORD)


@piece
def keep_sought(machine, block, used, width):
    """Moves the heads of a block that may be sought to its front; most are not, and need no look at the relation.
    Returns how many those are."""
    bits = keys_at(machine.sought, layout.SOUGHT_BITS // 64)
    kept = 0
    for i in range(used):
        bit = _bit(block, i, width)
        if (bits[bit >> _WORD] >> (bit & _IN_WORD)) & ONE:
            kept = keep_row(block, kept, i)
    return kept


@inlined
def _bit(rows, row, width):
    return hash_row(rows, row, width) >> _UPPER
