"""The arrays of relations and blocks, in compiled code."""

from __future__ import annotations

from elastalog.backends.kernel.compile.addresses import keys_at, matrix_at, numbers_at, words_at
from elastalog.backends.kernel.compile.signatures import inlined
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH


@inlined
def rows_of(relation):  # type: ignore[no-untyped-def]
    return matrix_at(relation.rows, relation.room, relation.width)


@inlined
def table_of(relation):  # type: ignore[no-untyped-def]
    return keys_at(relation.table, relation.table_size)


@inlined
def levels_of(relation):  # type: ignore[no-untyped-def]
    return words_at(relation.level, relation.room)


@inlined
def counts_of(relation):  # type: ignore[no-untyped-def]
    return words_at(relation.count, relation.room)


@inlined
def touched_of(relation):  # type: ignore[no-untyped-def]
    return matrix_at(relation.touched, relation.touched_room, TOUCHED_WIDTH)


@inlined
def inputs_of(relation):  # type: ignore[no-untyped-def]
    """The changed entries of a relation below the stratum."""
    return words_at(relation.inputs, relation.inputs_number)


@inlined
def block_of(frame):  # type: ignore[no-untyped-def]
    """The block that a step made."""
    return matrix_at(frame.block, frame.rows, frame.width)


@inlined
def operands(machine, place, length):  # type: ignore[no-untyped-def]
    """Some operands of a variant or a probe."""
    return numbers_at(machine.operands + 8 * place, length)
