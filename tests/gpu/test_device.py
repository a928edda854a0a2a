"""The module that runs on devices, on one that is emulated: its arrays are those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastalog.backends.gpu import fused
from elastalog.backends.gpu.arrays import Arrays
from elastalog.backends.gpu.device_arrays import SMALL, TILE, distinct


@pytest.mark.parametrize("size", [0, 1, 2, 33, SMALL, SMALL + 1, TILE + 1, 9_000])
def test_arrays_are_those_of_numpy(emulated: Arrays, size: int) -> None:
    module = emulated.module
    rng = np.random.default_rng(size)
    many, few = rng.integers(0, 1 << 37, size), rng.integers(0, 50, size)
    signed = rng.integers(-5, 5, size).astype(np.int32)
    large, small, words = map(module.asarray, (many, few, signed))

    def same(found: Any, expected: Any) -> None:
        assert found.dtype == expected.dtype
        assert found.get().tolist() == expected.tolist()

    same(large, many)
    same(module.sort(large, 37), np.sort(many))
    same(module.lexsort((large, small)), np.lexsort((many, few)))
    same(module.cumsum(large), np.cumsum(many))
    same(module.cumsum(words), np.cumsum(signed, dtype=np.int64))
    same((small == 3).nonzero()[0], np.flatnonzero(few == 3))
    same(module.minimum(small, 7), np.minimum(few, 7))
    same(module.concatenate((large, large[3:])), np.concatenate((many, many[3:])))
    same(words.astype(np.int64) * 3 - large + np.int64(7), signed.astype(np.int64) * 3 - many + 7)
    same((large >> 5) & 1023 | small << 3, (many >> 5) & 1023 | few << 3)
    same(~(words < 0), ~(signed < 0))
    same(-words, -signed)
    same(module.arange(3, size + 3), np.arange(3, size + 3))
    same(module.full(size, np.int32(-2), np.int32), np.full(size, -2, np.int32))
    same(module.zeros(size, bool), np.zeros(size, bool))
    for operator in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        same(getattr(words, operator)(2), getattr(signed, operator)(2))
        same(getattr(small, operator)(large), getattr(few, operator)(many))
    assert ((words >= np.int32(3)) | (words == -5)).any() == bool(((signed >= 3) | (signed == -5)).any())
    order = np.sort(many)
    same(module.searchsorted(module.asarray(order), small, side="right"), np.searchsorted(order, few, "right"))
    if size:
        assert (words.min(), large.max()) == (signed.min(), many.max())
        assert (int(words[-1]), int(large[0])) == (signed[-1], many[0])
        places = rng.integers(0, size, size)
        same(large[module.asarray(places)], many[places])
        values, numbers = distinct(module.sort(small, 6))
        expected = np.unique(few, return_counts=True)
        same(values, expected[0])
        same(numbers, expected[1])
        once = module.zeros(size, np.int64)
        once[module.asarray(rng.permutation(size))] = large
        assert sorted(once.get().tolist()) == order.tolist()


def test_what_is_given_back_is_free_again(emulated: Arrays) -> None:
    before = emulated.held()
    keys = emulated.module.arange(1000)
    part = keys[10:20]
    del keys
    assert emulated.held() == before + 8000
    assert part.get().tolist() == list(range(10, 20))
    del part
    assert emulated.held() == before


def test_rows_of_many_columns(emulated: Arrays) -> None:
    module = emulated.module
    rows = np.random.default_rng(2).integers(0, 8, (100, 20)).astype(np.int32)
    there = module.asarray(rows)
    keys = fused.packed(module, [there[:, n] for n in range(16)], [(0, 3 * n) for n in range(16)])
    columns = [(keys, 3 * (n % 16), 7, -1) for n in range(20)]
    for n, column in enumerate(fused.unpacked(module, columns)):
        assert column.get().tolist() == (rows[:, n % 16] - 1).tolist()
    (matrix,) = fused.unpacked(module, columns, is_matrix=True)
    assert matrix.get()[:, 16:].tolist() == (rows[:, :4] - 1).tolist()
