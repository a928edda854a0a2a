"""Arrays that become longer or shorter keep what is in them, whoever refers to them."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from elastalog.backends.kernel.store import lengthening
from elastalog.backends.kernel.store.lengthening import lengthen, words

SHAPES: list[tuple[int, ...]] = [(), (2,), (3,)]


class Owner:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def numbered(length: int, shape: tuple[int, ...], make: Any = words) -> Owner:
    owner = Owner(make(length, shape))
    owner.array.reshape(-1)[:] = np.arange(owner.array.size)
    return owner


def own(length: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.empty((length, *shape), np.int32)


def is_numbered(array: np.ndarray[Any, Any], used: int) -> bool:
    kept = array[:used].reshape(-1)
    return array.dtype == np.int32 and np.array_equal(kept, np.arange(len(kept)))


@pytest.mark.parametrize("make", [words, own])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_referred_to", [False, True])
def test_longer_and_shorter(shape: tuple[int, ...], make: Any, is_referred_to: bool) -> None:
    owner = numbered(1000, shape, make)
    for length in (1001, 5000, 2_000_000, 2_100_000, 4_000_000):
        held = owner.array if is_referred_to else None
        lengthen(owner, "array", 1000, length)
        assert owner.array.shape == (length, *shape)
        assert is_numbered(owner.array, 1000)
        owner.array[-1] = 7
        assert held is None or is_numbered(held, 1000)
    held = owner.array if is_referred_to else None
    lengthen(owner, "array", 1000, 1200)
    assert is_numbered(owner.array, 1000)
    assert len(owner.array) == 1200
    assert held is None or (held[-1] == 7).all()


def test_a_long_array_stays_where_it_is_in_whole_pages() -> None:
    owner = numbered(2_000_000, (2,))
    before = owner.array.base
    assert isinstance(before, memoryview)
    mapping = before.obj
    del before
    lengthen(owner, "array", 2_000_000, 2_500_000)
    assert is_numbered(owner.array, 2_000_000)
    base = owner.array.base
    assert isinstance(base, memoryview)
    assert base.obj is mapping
    assert isinstance(mapping, mmap.mmap)
    assert len(mapping) % (1 << 21) == 0


def test_no_memory_leaves_a_long_array_as_it_was() -> None:
    owner = numbered(2_000_000, ())
    with pytest.raises(MemoryError):
        lengthen(owner, "array", 2_000_000, 1 << 58)
    assert len(owner.array) == 2_000_000
    assert is_numbered(owner.array, 2_000_000)


def test_systems_without_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengthening, "_HAS_MAPPINGS", False)
    owner = numbered(1000, (2,))
    lengthen(owner, "array", 1000, 3_000_000)
    assert owner.array.flags.owndata
    assert is_numbered(owner.array, 1000)
