"""Derivations reach their heads one by one, a few or a group at a time, and are counted alike."""

from __future__ import annotations

import pytest

import elastalog
from tests.closures import FROM_SOURCES


@pytest.mark.parametrize("ways", [2, 3, 4, 31, 32, 33, 100])
def test_heads_that_many_derivations_reach_at_once_are_counted_in_every_size_of_block(ways: int) -> None:
    """All derivations of a fact come in one block: the first brings it, and a lower level is counted anew."""
    far, last = list(range(1, ways + 1)), ways + 1

    def annotated(db: elastalog.Session) -> dict[int, tuple[int, int]]:
        rows = db["reach"].to_arrow(annotations=True).to_pandas().values.tolist()
        return {x: (level, count) for x, level, count in rows}

    with elastalog.open(FROM_SOURCES, {"source": [(0,)]}, budget=None) as db:
        db.apply({"edge": [(0, x) for x in far]})
        db.apply({"edge": [(x, last) for x in far]})
        assert annotated(db)[last] == (3, ways)  # through any of them
        db.apply({"source": [(x,) for x in far]})
        assert annotated(db)[last] == (2, ways)  # all of them fall at once
        db.apply(deleted={"source": [(x,) for x in far[1:]]})
        assert annotated(db)[last] == (2, 1)
        db.apply(deleted={"edge": [(x, last) for x in far]})
        assert last not in annotated(db)
        db.apply({"edge": [(x, last) for x in far]})
        assert annotated(db)[last] == (2, 1)
