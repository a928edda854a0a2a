"""`.limitsize` stops a recursion that would go on, and such an answer is not maintained."""

from __future__ import annotations

import pytest

import elastalog

COUNTING = """
.decl n(x: number)
.limitsize n(n={limit})
n(0).
n(x + 1) :- n(x), x < 50.
"""


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_evaluation_stops_at_the_limit(strategy: str) -> None:
    with elastalog.open(COUNTING.format(limit=10), strategy=strategy) as db:
        assert sorted(db["n"]) == [(x,) for x in range(10)]
        with pytest.raises(elastalog.ElastalogError) as caught:
            db.apply(inserted={"n": [(100,)]})
        assert [d.code for d in caught.value.diagnostics] == ["E0615"]


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    with elastalog.open(COUNTING.format(limit=1000)) as db:
        assert len(db["n"]) == 51
        db.apply(deleted={"n": [(0,)]})
        assert len(db["n"]) == 0
