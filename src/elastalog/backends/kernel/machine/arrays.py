"""The arrays of relations and blocks, in compiled code."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, table_at, words_at
from elastalog.backends.kernel.compile.signatures import inlined
from elastalog.backends.kernel.machine.layout import INDEXED, index_at
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH
from elastalog.backends.kernel.store.postings import SLOT_WIDTH
from elastalog.jit.intrinsics import require
from elastalog.jit.operators import view


@view
def rows_of(relation):  # type: ignore[no-untyped-def]
    return matrix_at(relation.rows, relation.room, relation.width)


@view
def table_of(relation):  # type: ignore[no-untyped-def]
    return table_at(relation.table, relation.table_size)


@view
def levels_of(relation):  # type: ignore[no-untyped-def]
    return words_at(relation.level, relation.room)


@view
def counts_of(relation):  # type: ignore[no-untyped-def]
    return words_at(relation.count, relation.room)


@view
def touched_of(relation):  # type: ignore[no-untyped-def]
    return matrix_at(relation.touched, relation.touched_room, TOUCHED_WIDTH)


@view
def inputs_of(relation):  # type: ignore[no-untyped-def]
    """The changed entries of a relation below the stratum."""
    return words_at(relation.changed, relation.changed_number)


@view
def given_of(relation):  # type: ignore[no-untyped-def]
    """The entries of explicit facts that go and come in a relation of the stratum."""
    return words_at(relation.given, relation.going + relation.coming)


@view
def block_of(frame):  # type: ignore[no-untyped-def]
    """The block that a step made."""
    return matrix_at(frame.block, frame.rows, frame.width)


@view
def operands(machine, place, length):  # type: ignore[no-untyped-def]
    """Some operands of a variant or a probe."""
    return numbers_at(machine.operands + 8 * place, length)


@inlined
def lookup_of(machine, probe, relation):  # type: ignore[no-untyped-def]
    """Where a probe finds the rows of its relation, as joins are told: how, keys and their shift, slots, pool, and the
    columns of the index. Without an index the keys are the set table, two slots a number."""
    kind = probe.kind
    keys = keys_at(relation.table, relation.table_size // 2)
    shift = relation.shift
    slots = matrix_at(relation.rows, 0, SLOT_WIDTH)
    pool = words_at(relation.rows, 0)
    columns = numbers_at(relation.rows, 0)
    if kind == INDEXED:
        index = index_at(machine.indexes, probe.index)
        require(index.is_missing == 0)
        kind = index.kind
        keys = keys_at(index.keys, index.keys_size)
        shift = index.shift
        slots = matrix_at(index.slots, index.slots_size, SLOT_WIDTH)
        pool = words_at(index.pool, index.pool_size)
        columns = numbers_at(index.columns, index.columns_number)
    return kind, keys, shift, slots, pool, columns
