"""What the tests of every way in which tasks exchange have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elastalog.backends.spark.placement import EXCHANGE_SETTING
from tests.engine.judging import follow
from tests.generators.seeded import seeded_case
from tests.spark.following import both

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
DOUBLING = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n"
CHAIN = {"edge": [(i, i + 1) for i in range(16)]}
UPDATES: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [([(16, 17)], [(8, 9)]), ([(8, 9)], [])]


@contextmanager
def by_way(spark: Any, way: str) -> Iterator[Any]:
    """A session of Spark whose tasks exchange in one way, within the block."""
    spark.conf.set(EXCHANGE_SETTING, way)
    try:
        yield spark
    finally:
        spark.conf.unset(EXCHANGE_SETTING)


def follow_random_updates(session: Any, seed: int, most_updates: int = 3) -> None:
    """A random program after random updates has the facts, levels and counts of the definition."""
    follow(
        *seeded_case(seed, most_updates=most_updates), budget=None, engine="spark", spark=session, is_judged_often=False
    )


def follow_a_chain(session: Any) -> None:
    """A closure that does not decompose has the levels and counts of one process, after updates too, and stays in
    files."""
    with both(DOUBLING, CHAIN, session, budget=None) as sessions:
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert sessions.db._backend.kernel.evicted == {"path"}


def derive_as_many(session: Any, length: int = 16) -> None:
    """An update of a chain enumerates as many derivations on Spark as in one process."""
    with both(DOUBLING, {"edge": [(i, i + 1) for i in range(length)]}, session, budget=None) as sessions:
        works = []
        for db in (sessions.db, sessions.local):
            with db.update() as update:
                update.delete("edge", [(5, 6), (11, 12)])
                update.insert("edge", [(3, 9)])
            works.append([work.derivations for work in update.stats.work.strata])
        assert works[0] == works[1]
