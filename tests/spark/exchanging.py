"""What tests of tasks that exchange have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from tests.engine.judging import follow
from tests.generators.seeded import seeded_case
from tests.spark.following import both

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
LINEAR = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
DOUBLING = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n"
CHAIN = {"edge": [(i, i + 1) for i in range(16)]}
UPDATES: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [([(16, 17)], [(8, 9)]), ([(8, 9)], [])]


def follow_random_updates(session: Any, seed: int, most_updates: int = 3) -> None:
    """A random program after random updates has the facts, levels and counts of the definition."""
    follow(
        *seeded_case(seed, most_updates=most_updates), budget=None, engine="spark", spark=session, is_judged_often=False
    )


@contextmanager
def without_room() -> Iterator[None]:
    """Within the block, the driver has no room for what tasks have exchanged, and they evaluate it anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elastalog.backends.spark.backend.memory_allowed", lambda memory: 0)
        yield


def follow_a_chain(session: Any, *, has_room: bool) -> None:
    """A closure that does not decompose has the levels and counts of one process, after updates too. It stays in files
    where the driver has no room for it."""
    with nullcontext() if has_room else without_room(), both(DOUBLING, CHAIN, session, budget=None) as sessions:
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert sessions.db._backend.kernel.evicted == (set() if has_room else {"path"})
