"""Copies beside the work of a device, on arrays of NumPy that act as a device's would: every thread has a stream of its
own, waits for what the device was told before, and what fails in it is raised where somebody waits."""

from __future__ import annotations

import sys
from threading import Event, current_thread, local
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from elastalog.backends.gpu import found
from elastalog.backends.gpu.arrays import Arrays
from elastalog.backends.gpu.carrying import Carrier
from elastalog.backends.gpu.found import Found


class DeviceArray(np.ndarray):
    def get(self, out: Any) -> None:
        out[...] = self

    def set(self, array: Any, stream: Any) -> None:
        assert stream.is_own
        self[...] = array


class Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        self.is_own = non_blocking
        self.waited: list[Any] = []
        self.synchronised = 0

    def __enter__(self) -> Stream:
        CURRENT.stream = self
        return self

    def __exit__(self, *error: object) -> None:
        del CURRENT.stream

    def record(self) -> str:
        assert not self.is_own
        return "event of the main stream"

    def wait_event(self, event: Any) -> None:
        self.waited.append(event)

    def synchronize(self) -> None:
        self.synchronised += 1


CURRENT = local()
MAIN = Stream()


def _current() -> Stream:
    stream: Stream = getattr(CURRENT, "stream", MAIN)
    return stream


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Arrays:
    pinned = ModuleType("cupyx")
    pinned.empty_pinned = np.empty  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupyx", pinned)
    pool = SimpleNamespace(used_bytes=lambda: 0)
    module = SimpleNamespace(
        cuda=SimpleNamespace(get_current_stream=_current, Stream=Stream),
        get_default_memory_pool=lambda: pool,
        empty=lambda shape, dtype: np.empty(shape, dtype).view(DeviceArray),
        ones=lambda shape, dtype: np.ones(shape, dtype).view(DeviceArray),
        concatenate=lambda arrays: np.concatenate(arrays).view(DeviceArray),
        stack=lambda arrays, axis: np.stack(arrays, axis).view(DeviceArray),
    )
    return Arrays(module, is_device=True)


def test_facts_come_back_in_order_beside_the_rounds(device: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "PIECE", 4)
    threads: set[str] = set()

    def columns(keys: Any) -> list[Any]:
        assert _current().is_own
        assert _current().waited[-1] == "event of the main stream"
        threads.add(current_thread().name)
        return [(keys[0] >> 8).astype(np.int32), (keys[0] & 255).astype(np.int32)]

    carrier = Carrier(device)
    facts = Found(carrier, device, 2, columns)
    rng = np.random.default_rng(1)
    expected: list[tuple[int, int, int, int]] = []
    for level in range(12):
        keys = np.sort(rng.integers(0, 1 << 16, level * 3)).view(DeviceArray)
        counts = None if not level % 5 else rng.integers(1, 9, len(keys)).view(DeviceArray)
        facts.add((keys,), counts, level)
        ones = [1] * len(keys) if counts is None else counts.tolist()
        expected += [(key >> 8, key & 255, level, count) for key, count in zip(keys.tolist(), ones, strict=True)]
    brought = facts.brought()
    carrier.close()
    rows = np.column_stack((brought.words, brought.level, brought.count))  # type: ignore[arg-type]
    assert [tuple(row) for row in rows.tolist()] == expected
    assert threads
    assert current_thread().name not in threads


def test_arrays_are_sent_on_a_stream_of_their_own(device: Arrays) -> None:
    carrier = Carrier(device)
    given = [np.arange(12, dtype=np.int32).reshape(4, 3), np.arange(5, dtype=np.int32)]
    coming = [carrier.send(given[0][:, 1]), carrier.send(given[1])]
    assert [arrived().tolist() for arrived in coming] == [[1, 4, 7, 10], [0, 1, 2, 3, 4]]
    carrier.close()


def test_what_fails_in_a_thread_is_raised_where_it_is_waited_for(device: Arrays) -> None:
    carrier = Carrier(device)
    held, done = Event(), []

    def fail() -> None:
        held.wait(10)
        raise MemoryError

    carrier.start(fail)
    carrier.start(lambda: done.append(1))
    held.set()
    with pytest.raises(MemoryError):
        carrier.finish()
    carrier.close()  # waits for all others
    assert done == [1]
    carrier.finish()  # nothing is left
