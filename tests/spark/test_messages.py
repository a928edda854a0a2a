"""Operators of tasks that exchange facts."""

from __future__ import annotations

import numpy as np
import pytest

from elastalog.backends.spark.messages import distribute


@pytest.mark.parametrize("size", [0, 1, 50])
@pytest.mark.parametrize("has_count", [False, True])
def test_rows_are_ordered_by_share_and_those_for_everybody_come_last(size: int, has_count: bool) -> None:
    shares_number = 4
    random = np.random.default_rng(size)
    rows = random.integers(0, 100, (size, 2)).astype(np.int32)
    shares = random.integers(-1, shares_number, size).astype(np.int32)
    count = random.integers(1, 9, size if has_count else 0).astype(np.int32)
    ordered = np.empty((size, 2 + has_count), np.int32)
    bounds = np.zeros(shares_number + 2, np.int64)
    distribute(rows, count, shares, ordered, bounds)
    wanted: list[list[int]] = []
    for share in (*range(shares_number), -1):
        assert bounds[share % (shares_number + 1)] == len(wanted)
        for i in range(size):
            if shares[i] == share:
                wanted.append([*rows[i].tolist(), *count[i : i + 1].tolist()])
    assert bounds[-1] == size
    assert ordered.tolist() == wanted
