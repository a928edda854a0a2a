"""A session on Spark beside one of the kernel, through random updates of edges."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

import elastalog
from tests.engine.judging import facts_of, levels_of

Node = TypeVar("Node", int, str)


def placed(db: elastalog.Session) -> dict[str, str]:
    """Where and why each stratum was evaluated, by its first relation; of hidden ones, the name up to its number."""
    backend = db._backend
    strata = {stratum.number: stratum.relations[0].split(".")[0] for stratum in backend.program.strata}
    return {strata[number]: f"{found.where}: {found.why}" for number, found in backend.placements.items()}


def are_same(db: elastalog.Session, local: elastalog.Session) -> None:
    """The same facts, and the same levels and counts where there are any."""
    read = levels_of if db._backend.annotation.has_levels else facts_of
    assert read(db) == read(local)


def follow_edges(
    text: str, session: Any, seed: int, nodes: Sequence[Node], *, first: int, each: int, updates: int, **options: Any
) -> dict[str, str]:
    """Compares two sessions of a program that has `edge`: at first so many, then random updates, each of so many that
    come and go. Every other time nobody looks, so that nothing is in the driver. Returns where strata were
    evaluated."""
    chance = random.Random(seed)

    def random_edges(number: int) -> set[tuple[Node, Node]]:
        return {(chance.choice(nodes), chance.choice(nodes)) for _ in range(number)}

    edges = random_edges(first)
    given = {"edge": sorted(edges)}
    with (
        elastalog.open(text, given, engine="spark", spark=session, **options) as db,
        elastalog.open(text, given, **options) as local,
    ):
        for number in range(updates):
            if (number + seed) % 2:
                are_same(db, local)
            gone = set(chance.sample(sorted(edges), min(each, len(edges))))
            come = random_edges(each) - edges
            edges = (edges - gone) | come
            changes, wanted = (one.apply({"edge": sorted(come)}, {"edge": sorted(gone)}) for one in (db, local))
            for name in local:
                assert set(changes[name].inserted) == set(wanted[name].inserted)
                assert set(changes[name].deleted) == set(wanted[name].deleted)
        are_same(db, local)
        return placed(db)
