"""The operator of the dense bootstrap."""

from __future__ import annotations

from elastalog.backends.kernel.compiled import INT, KEYS, MATRIX, STATE, WORDS, operator, types
from elastalog.backends.kernel.maintain import LISTED, USED, find_row
from elastalog.backends.kernel.new_rows import add_row


@operator(types.void, MATRIX, INT, MATRIX, KEYS, INT, WORDS, WORDS, STATE)
def count_heads(block, used, rows, table, shift, hits, listed_rows, state):  # type: ignore[no-untyped-def]
    """Inserts heads and counts, for every row, how often it was met; lists each row that was met once."""
    rows_used = state[USED]
    listed = state[LISTED]
    for i in range(used):
        row = find_row(block, i, rows, table, shift)
        if row < 0:
            add_row(block, i, -1 - row, rows, table, rows_used)
            row = rows_used
            hits[row] = 0
            rows_used += 1
        if hits[row] == 0:
            listed_rows[listed] = row
            listed += 1
        hits[row] += 1
    state[USED] = rows_used
    state[LISTED] = listed
