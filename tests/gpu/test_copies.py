"""Copies beside the work of a device, on an emulated one: every thread has a stream of its own, and what fails in it is
raised where somebody waits."""

from __future__ import annotations

from threading import Event, current_thread
from typing import Any

import numpy as np
import pytest

from elastalog.backends.gpu import found
from elastalog.backends.gpu.arrays import Arrays, Carrier
from elastalog.backends.gpu.found import Found


def test_facts_come_back_in_order_beside_the_rounds(emulated: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "PIECE", 4)
    driver, module = emulated.module.driver, emulated.module
    main, threads = driver.stream, set()
    waited: set[int] = set()
    monkeypatch.setattr(driver, "wait_for", lambda event: waited.add(driver.stream))

    def rows(keys: Any) -> Any:
        assert driver.stream != main
        assert driver.stream in waited
        threads.add(current_thread().name)
        here = keys[0].get()
        return module.asarray(np.stack([(here >> 8).astype(np.int32), (here & 255).astype(np.int32)], axis=1))

    carrier = Carrier(emulated)
    facts = Found(carrier, emulated, 2, rows)
    rng = np.random.default_rng(1)
    expected: list[tuple[int, int, int, int]] = []
    for level in range(12):
        keys = np.sort(rng.integers(0, 1 << 16, level * 3))
        counts = None if not level % 5 else rng.integers(1, 9, len(keys))
        facts.add((module.asarray(keys),), None if counts is None else module.asarray(counts), level)
        ones = [1] * len(keys) if counts is None else counts.tolist()
        expected += [(key >> 8, key & 255, level, count) for key, count in zip(keys.tolist(), ones, strict=True)]
    brought = facts.brought()
    carrier.close()
    found_rows = np.column_stack((brought.words, brought.level, brought.count))
    assert [tuple(row) for row in found_rows.tolist()] == expected
    assert threads
    assert current_thread().name not in threads


def test_arrays_are_sent_on_a_stream_of_their_own(emulated: Arrays) -> None:
    carrier = Carrier(emulated)
    given = [np.arange(12, dtype=np.int32).reshape(4, 3), np.arange(5, dtype=np.int32)]
    coming = [carrier.send(given[0][:, 1]), carrier.send(given[1])]
    assert [arrived().get().tolist() for arrived in coming] == [[1, 4, 7, 10], [0, 1, 2, 3, 4]]
    carrier.close()


def test_what_fails_in_a_thread_is_raised_where_it_is_waited_for(emulated: Arrays) -> None:
    carrier = Carrier(emulated)
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
