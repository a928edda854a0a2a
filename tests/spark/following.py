"""A session on Spark beside one of the kernel, through random updates of edges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import elastalog
from tests.engine.judging import state_of

Node = TypeVar("Node", int, str)


def placed(db: elastalog.Session) -> dict[str, str]:
    """Where and why each stratum was evaluated, by its first relation; of hidden ones, the name up to its number."""
    backend = db._backend
    strata = {stratum.number: stratum.relations[0].split(".")[0] for stratum in backend.program.strata}
    return {strata[number]: f"{found.where}: {found.why}" for number, found in backend.placements.items()}


def files_known(db: elastalog.Session) -> set[str]:
    """The files that hold the present facts of its relations."""
    return {file.path for filed in db._backend.relations.files.current.values() for file in filed.files}


def files_in(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*.parquet")}


def are_same(db: elastalog.Session, local: elastalog.Session) -> None:
    """The same facts, and the same levels and counts where there are any."""
    assert state_of(db) == state_of(local)


@dataclass(frozen=True)
class Both:
    """A session on Spark, `db`, and one of the kernel."""

    db: elastalog.Session
    local: elastalog.Session

    def apply(self, inserted: Mapping[str, Any] = {}, deleted: Mapping[str, Any] = {}) -> elastalog.Changes:
        """Updates both, which changes the same; nobody looks at what they hold."""
        changes, wanted = (one.apply(inserted, deleted) for one in (self.db, self.local))
        for name in self.local:
            assert set(changes[name].inserted) == set(wanted[name].inserted)
            assert set(changes[name].deleted) == set(wanted[name].deleted)
        return changes


@contextmanager
def both(text: str | Path, facts: Any, session: Any, *, frames: Any = None, **options: Any) -> Iterator[Both]:
    """Two sessions that are the same in the end of the block; `frames` are the facts for the one on Spark if they are
    others."""
    with (
        elastalog.open(text, facts if frames is None else frames, engine="spark", spark=session, **options) as db,
        elastalog.open(text, facts, **options) as local,
    ):
        yield Both(db, local)
        are_same(db, local)


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
    with both(text, {"edge": sorted(edges)}, session, **options) as sessions:
        for number in range(updates):
            if (number + seed) % 2:
                are_same(sessions.db, sessions.local)
            gone = set(chance.sample(sorted(edges), min(each, len(edges))))
            come = random_edges(each) - edges
            edges = (edges - gone) | come
            sessions.apply({"edge": sorted(come)}, {"edge": sorted(gone)})
        return placed(sessions.db)
