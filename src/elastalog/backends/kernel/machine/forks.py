"""Forks: two variants from one start, each for the facts that meet less on its way (see `planning.variants`).

Each fact of a delta must go one way and no other. So both indexes are brought up to date before the first of the two
begins, and as they only grow between rounds, both variants find the same lengths."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, piece
from elastalog.backends.kernel.compile.signatures import int64, uint64
from elastalog.backends.kernel.machine.arrays import operands
from elastalog.backends.kernel.machine.layout import index_at, probe_at, variant_at
from elastalog.backends.kernel.machine.steps import catch_up
from elastalog.backends.kernel.store.postings import DIRECT, LENGTH, SLOT_WIDTH, find_key, hash_key, index_key


@piece
def can_fork(machine, variant):  # type: ignore[no-untyped-def]
    """Whether both ways of a forked variant are open; else the index that is missing is to be made in Python."""
    return _is_open(machine, variant) and _is_open(machine, variant_at(machine.variants, variant.fork - 1))


@piece
def _is_open(machine, variant):  # type: ignore[no-untyped-def]
    number = probe_at(machine.probes, variant.first_probe).index
    return not index_at(machine.indexes, number).is_missing or catch_up(machine, number)


@piece
def goes_here(machine, variant, rows, row):  # type: ignore[no-untyped-def]
    """Whether the fact in a row goes the way of this variant of a fork."""
    here = _length(machine, variant, rows, row)
    there = _length(machine, variant_at(machine.variants, variant.fork - 1), rows, row)
    return variant.handicap * here < there if variant.is_other_way else here <= variant.handicap * there


@piece
def _length(machine, variant, rows, row):  # type: ignore[no-untyped-def]
    """How many rows the first join of a variant would look at from a fact."""
    index = index_at(machine.indexes, probe_at(machine.probes, variant.first_probe).index)
    columns = operands(machine, variant.first_key, variant.first_key_width)
    slots = matrix_at(index.slots, index.slots_size, SLOT_WIDTH)
    if index.kind == DIRECT:
        word = int64(rows[row, columns[0]])
        return int64(slots[word, LENGTH]) if word >= 0 and word < index.slots_size else int64(0)
    value = index_key(rows, row, columns)
    home = hash_key(value) >> uint64(index.shift)
    return int64(slots[find_key(value, home, keys_at(index.keys, index.keys_size)), LENGTH])
