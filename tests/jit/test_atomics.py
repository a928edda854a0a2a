"""Atomic steps and barriers do, in object code that we link ourselves, what they say, in several threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from elastalog.jit import loading
from elastalog.jit.atomics import GATE
from elastalog.jit.loading import link
from elastalog.jit.operators import operator_of
from tests.jit import declared
from tests.jit.test_linking import addresses

OPERATORS = ("stepped_atomically", "add_up", "meet")


@pytest.fixture(scope="module")
def operators() -> dict[str, Callable[..., Any]]:
    """Linked by us, none of them by LLVM."""
    lowering = pytest.importorskip("elastalog.jit.lowering")
    found = {}
    for name in OPERATORS:
        operator: Any = operator_of(getattr(declared, name))
        code = lowering.object_code(operator)
        if sys.platform == "linux":
            assert link(code.code, code.entry, addresses(code)) is not None
        loaded = loading._load(operator, code)
        assert loaded is not None
        found[name] = loaded
    return found


def in_threads(number: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_each_step_returns_what_was_there(operators: dict[str, Callable[..., Any]]) -> None:
    numbers, words, found = np.array([4]), np.array([0, 2**32 - 1], np.uint32), np.zeros(8, np.int64)
    operators["stepped_atomically"](numbers, words, found)
    assert found.tolist() == [4, 5, 3, 9, 9, 2**32 - 1, 2, 2]
    assert (numbers.tolist(), words.tolist()) == ([2], [0, 8])


def test_threads_that_count_together_lose_nothing(operators: dict[str, Callable[..., Any]]) -> None:
    numbers = np.zeros(64, np.int64)
    in_threads(3, lambda thread: operators["add_up"](numbers, 20_000))
    assert numbers[[0, 16, 32, 48]].tolist() == [60_000, 60_000, 0, 60_000]


@pytest.mark.parametrize(("threads", "looks"), [(2, 0), (2, 300), (3, 0), (5, 20)])
def test_nobody_passes_a_barrier_before_all_have_come(
    operators: dict[str, Callable[..., Any]], threads: int, looks: int
) -> None:
    """Without a look all sleep, and a thread that nobody wakes would sleep for ever."""
    gate, rounds, wrong = np.zeros(GATE, np.uint32), np.zeros(threads + 1, np.int64), [-1] * threads

    def work(thread: int) -> None:
        wrong[thread] = operators["meet"](gate, rounds, thread, 500, looks)

    in_threads(threads, work)
    assert wrong == [0] * threads
    assert gate[0] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="threads sleep on Linux")
def test_a_thread_that_waits_long_sleeps(operators: dict[str, Callable[..., Any]]) -> None:
    gate, rounds, spent = np.zeros(GATE, np.uint32), np.zeros(3, np.int64), []

    def work(thread: int) -> None:
        if thread:
            time.sleep(0.3)
        began = time.thread_time()
        operators["meet"](gate, rounds, thread, 1, 100)
        spent.append(time.thread_time() - began)

    in_threads(2, work)
    assert max(spent) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), [("aarch64", "aarch64"), ("x86-64-v3", "x86_64")])
def test_they_are_compiled_for_every_family(family: str, name: str) -> None:
    pytest.importorskip("numba")
    script = (
        "from elastalog.jit import lowering, objects\nfrom tests.jit import declared\n"
        "from elastalog.jit.operators import operator_of\n"
        "from elastalog.jit.loading import link\nfrom tests.jit.test_linking import addresses\n"
        f"lowering.prepare(objects.FAMILIES[{family!r}])\n"
        f"for name in {OPERATORS!r}:\n"
        "    made = lowering.object_code(operator_of(getattr(declared, name)))\n"
        "    print(link(made.code, made.entry, addresses(made)) is not None, 'syscall' in made.wanted)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines() == ["True False", "True False", "True True"]
