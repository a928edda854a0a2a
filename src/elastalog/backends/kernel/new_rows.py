"""How operators give a fact that a relation never held a row."""

from __future__ import annotations

from elastalog.backends.kernel.compiled import HALF, LOW, hash_row, inlined, uint64


@inlined
def add_row(block, i, slot, rows, table, row):  # type: ignore[no-untyped-def]
    """Copies a row of a block to row `row` of a relation and enters it in an empty slot of the set table. Nothing is
    said of its annotations."""
    width = rows.shape[1]
    tag = hash_row(block, i, width) & LOW
    table[slot] = (tag << HALF) | uint64(row + 1)
    for c in range(width):
        rows[row, c] = block[i, c]
