"""Facts of late rounds are kept beside the others: nothing is missed, and little is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastalog.backends.gpu import sorted_facts
from elastalog.backends.gpu.arrays import on_numpy
from elastalog.backends.gpu.packing import Range, packing_of
from elastalog.backends.gpu.sorted_facts import SortedIndex

WIDE = [Range(0, 32), Range(0, 32)]
NARROW = [Range(0, 20), Range(0, 20)]


def _index(ranges: list[Range], rows: Any) -> SortedIndex:
    return SortedIndex(on_numpy(), packing_of((0, 1), ranges), [rows[:, 0], rows[:, 1]])


@pytest.mark.parametrize("ranges", [NARROW, WIDE], ids=["one part", "two parts"])
@pytest.mark.parametrize("looks", [False, True], ids=["only asked", "joined"])
def test_late_facts_are_found(ranges: list[Range], looks: bool) -> None:
    rng = np.random.default_rng(5)
    rows = np.unique(rng.integers(0, 1 << 20, (4000, 2)).astype(np.int32), axis=0)
    rng.shuffle(rows)
    index = _index(ranges, rows[:1000])
    index.start()
    for begin in range(1000, 3000, 40):
        more = index.keys([rows[begin : begin + 40, 0], rows[begin : begin + 40, 1]])
        before = [part.tolist() for part in index.new] if looks else None
        index.take(more, keeps_old=looks)
        assert len(index) == begin + 40
        assert [part.tolist() for part in index.old] == (before or [[]] * len(more))
        every = index.packing.pack([rows[:, 0], rows[:, 1]], on_numpy())
        assert index.knows(every).tolist() == [place < begin + 40 for place in range(len(rows))]
    expected = sorted(map(tuple, rows[:3000].tolist()))
    columns = [index.packing.column(index.new, column, on_numpy()).tolist() for column in (0, 1)]
    assert list(zip(*columns, strict=True)) == expected


def test_a_large_array_is_not_written_anew_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    merge = sorted_facts.merged

    def counting(arrays: Any, keys: Any, more: Any) -> Any:
        nonlocal written
        found = merge(arrays, keys, more)
        written += len(found[0]) if found[0] is not keys[0] and found[0] is not more[0] else 0
        return found

    monkeypatch.setattr(sorted_facts, "merged", counting)
    facts = np.arange(200_000, dtype=np.int32)
    rows = np.column_stack((facts % 1000, facts // 1000)).astype(np.int32)
    index = _index(NARROW, rows[:1000])
    for begin in range(1000, 200_000, 500):
        part = rows[begin : begin + 500]
        index.take(index.keys([part[:, 0], part[:, 1]]), keeps_old=False)
    assert len(index) == 200_000
    assert written < 40 * 200_000  # one array, every round: 398 rounds of 100,000 on average
