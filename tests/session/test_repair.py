"""Repairs over explicit facts, and patterns as faults. Smallest sets by trying all."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError

PROGRAM = """
.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
edge(3, 4).
"""
EDGES = [(1, 2), (2, 3), (1, 3), (4, 5)]


def reaches(edges: set[tuple[int, int]], start: int, end: int) -> bool:
    seen, pending = {start}, [start]
    while pending:
        here = pending.pop()
        for a, b in edges:
            if a == here:
                if b == end:
                    return True
                if b not in seen:
                    seen.add(b)
                    pending.append(b)
    return False


def smallest(pairs: list[tuple[int, int]]) -> int:
    everything = {*EDGES, (3, 4)}
    return next(
        size
        for size in range(len(everything) + 1)
        if any(
            not any(reaches(everything - {*gone}, *pair) for pair in pairs) for gone in combinations(everything, size)
        )
    )


@pytest.mark.parametrize("has_store", [False, True])
def test_without_an_update_the_facts_are_looked_at(tmp_path: Path, has_store: bool) -> None:
    with elastalog.open(PROGRAM, {"edge": EDGES}, store=tmp_path / "store" if has_store else None) as db:
        found = db.suggest(unwanted=["path(1, 4)"])
        assert found.verified
        assert len(found.elements) == smallest([(1, 4)]) == 1
        assert found.elements[0] == ("+", ("edge", (3, 4)))
        assert db.epoch == 1
        found.apply()
        assert db.epoch == 2
        assert (1, 4) not in db["path"]
        with pytest.raises(ElastalogError):
            found.apply()


def test_facts_are_looked_at_when_asked_for() -> None:
    with elastalog.open(PROGRAM, {"edge": EDGES[:-1]}) as db:
        db.apply({"edge": [(4, 5)]})
        assert [str(e) for e in db.suggest(unwanted=["path(1, 5)"]).elements] == ["+edge(4, 5)"]
        kept = db.suggest(unwanted=["path(1, 5)"], over="facts", rejected=["+edge(4, 5)", "+edge(3, 4)"])
        assert len(kept.elements) == 2
        with pytest.raises(ElastalogError):
            db.suggest(unwanted=["path(1, 5)"], over="everything")


def test_a_pattern_stands_for_all_facts_that_fit_it() -> None:
    with elastalog.open(PROGRAM, {"edge": EDGES}) as db:
        found = db.suggest(unwanted=["path(1, _)"])
        assert len(found.unwanted) == 4
        assert len(found.elements) == smallest([(1, 2), (1, 3), (1, 4), (1, 5)]) == 2
        found.apply()
        assert not len(db.query("path(1, X)"))
