"""Arrays that become longer or shorter keep what is in them, whoever refers to them."""

from __future__ import annotations

import mmap
import os
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.store import memory
from elastalog.backends.kernel.store.memory import lengthen, words
from elastalog.diagnostics import quota
from elastalog.settings import SETTINGS

SHAPES: list[tuple[int, ...]] = [(), (2,), (3,)]


class Owner:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


@pytest.fixture(autouse=True)
def _long_from_4_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "map_from", 1 << 22)


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
    assert held is None or is_numbered(held, 1000)


def resident() -> int:
    return quota.resident_bytes()


def test_a_long_array_never_moves_and_takes_what_is_touched() -> None:
    owner = numbered(2_000_000, (2,))
    address, before = address_of(owner.array), resident()
    for length in (2_500_000, 100_000_000, 500_000_000):
        lengthen(owner, "array", 2_000_000, length)
        assert address_of(owner.array) == address
        assert address % (1 << 12) == 0
    assert is_numbered(owner.array, 2_000_000)
    assert resident() - before < 64 << 20
    owner.array[10_000_000:20_000_000] = 1
    assert resident() - before > 64 << 20
    lengthen(owner, "array", 2_000_000, 2_100_000)
    assert resident() - before < 64 << 20
    assert is_numbered(owner.array, 2_000_000)


def test_what_a_child_writes_is_its_own() -> None:
    owner = numbered(2_000_000, (2,))
    child = os.fork()
    if child == 0:
        owner.array[0] = 77
        os._exit(0)
    os.waitpid(child, 0)
    assert is_numbered(owner.array, 2_000_000)


def test_what_is_reserved_is_left_out_of_core_dumps() -> None:
    owner = numbered(2_000_000, (2,))
    address = address_of(owner.array)
    found = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            is_here = start <= address < end
        elif line.startswith("VmFlags") and is_here:
            found = line
    assert " dd" in found
    assert " nr" in found


@pytest.mark.parametrize("limit", [None, 3 << 30])
def test_little_address_space_is_enough(limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a limit, or on a system that counts what is reserved: then arrays may move."""
    made = mmap.mmap
    sizes = []

    def grudging(file: int, size: int, flags: int) -> mmap.mmap:
        sizes.append(size)
        if size > 1 << 28:
            raise OSError
        return made(file, size, flags)

    if limit is None:
        monkeypatch.setattr(mmap, "mmap", grudging)
        monkeypatch.setattr(memory, "_mapping_of", lambda array: getattr(array.base, "obj", None))
    else:
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    owner = numbered(2_000_000, (2,))
    for length in (3_000_000, 20_000_000):
        lengthen(owner, "array", 2_000_000, length)
        assert owner.array.shape == (length, 2)
        assert is_numbered(owner.array, 2_000_000)
    assert limit is not None or min(sizes) <= 1 << 28 < max(sizes)


def test_no_memory_leaves_a_long_array_as_it_was() -> None:
    owner = numbered(2_000_000, ())
    with pytest.raises(MemoryError):
        lengthen(owner, "array", 2_000_000, 1 << 58)
    assert len(owner.array) == 2_000_000
    assert is_numbered(owner.array, 2_000_000)


def test_systems_without_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_HAS_MAPPINGS", False)
    owner = numbered(1000, (2,))
    lengthen(owner, "array", 1000, 3_000_000)
    assert owner.array.flags.owndata
    assert is_numbered(owner.array, 1000)
