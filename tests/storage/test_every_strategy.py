"""A store under every strategy: what it says of the past, and that it goes on as if it had never been closed."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog.backends.watch import Watch
from elastalog.evaluation.strategies import STRATEGIES, make_strategy
from elastalog.session import Session
from elastalog.storage.manifest import BY_SETS

REACH = """
.decl edge, path(x: number, y: number)
.decl lonely(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lonely(x) :- edge(x, _), !path(x, x).
"""
STEPS = """
.decl edge, path(x: number, y: number)
.decl lonely(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), edge(y, z).
lonely(x) :- edge(x, _), !path(x, x).
"""
EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]


def program_for(strategy: str) -> str:
    return STEPS if strategy == "counting" else REACH


def facts_of(session: Session) -> dict[str, set[object]]:
    return {name: set(session[name]) for name in session}


def test_the_strategies_that_maintain_sets_are_known_to_the_store() -> None:
    by_sets = {name for name in STRATEGIES if not make_strategy(name, Watch(), None).annotation.has_levels}
    assert by_sets - {"recompute"} == set(BY_SETS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_goes_on_after_every_epoch(tmp_path: Path, strategy: str) -> None:
    text = program_for(strategy)
    with elastalog.open(text, {"edge": EDGES}, strategy=strategy, store=tmp_path / "store"):
        pass
    edges = set(EDGES)
    updates = [([(4, 1)], [(1, 2)]), ([(1, 2)], []), ([], [(4, 1), (3, 4)]), ([(3, 4), (9, 9)], [(1, 3)])]
    for epoch, (come, go) in enumerate(updates, 2):
        with elastalog.open(store=tmp_path / "store") as session:
            session.apply({"edge": come}, {"edge": go})
            edges = (edges - set(go)) | set(come)
            assert session.epoch == epoch
            assert session.verify().is_exact
            with elastalog.open(text, {"edge": sorted(edges)}) as fresh:
                assert facts_of(session) == facts_of(fresh)
    with (
        elastalog.open(store=elastalog.Store(tmp_path / "store", at=1)) as first,
        elastalog.open(text, {"edge": EDGES}) as fresh,
    ):
        assert facts_of(first) == facts_of(fresh)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_its_past(tmp_path: Path, strategy: str) -> None:
    """path(1, 3) is there at first, by two ways; at epoch 2 by one; at epoch 3 by none; an explicit one at 4."""
    with elastalog.open(program_for(strategy), {"edge": EDGES}, strategy=strategy, store=tmp_path / "store") as session:
        session.apply(deleted={"edge": [(2, 3)]})
        session.apply(deleted={"edge": [(1, 3)]})
        session.apply({"path": [(1, 3)]})
        turned = [turn for turn in session.history(("path", (1, 3))) if turn.what != "moved"]
        assert [(turn.epoch, turn.what) for turn in turned] == [(1, "appeared"), (3, "disappeared"), (4, "appeared")]
        difference = session.diff(1, 4)
        assert (1, 3) not in difference["path"].inserted
        assert (1, 3) not in difference["path"].deleted
        assert sorted(difference["edge"].deleted) == [(1, 3), (2, 3)]
        assert sorted(session.explicit("path")) == [(1, 3)]


@pytest.mark.parametrize("strategy", BY_SETS)
def test_numbers_of_derivations_are_no_levels(tmp_path: Path, strategy: str) -> None:
    with elastalog.open(program_for(strategy), {"edge": EDGES}, strategy=strategy, store=tmp_path / "store") as session:
        session.apply(deleted={"edge": [(2, 3)]})  # path(1, 3) has lost a derivation
        assert session.history(("path", (1, 3))) == ()
        assert session.diff(1, 2)["path"].moved.num_rows == 0
        session.apply({"path": [(1, 3)]})
        first, turn = session.history(("path", (1, 3)))
        assert (first.epoch, first.what, first.level) == (1, "appeared", 1)
        assert (turn.epoch, turn.what, turn.was, turn.level) == (3, "moved", 1, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_an_update_broke_is_found_in_the_store(tmp_path: Path, strategy: str) -> None:
    with elastalog.open(program_for(strategy), {"edge": EDGES}, strategy=strategy, store=tmp_path / "store") as session:
        session.apply({"edge": [(4, 5)]}, {"edge": [(1, 2)]})
    with elastalog.open(store=tmp_path / "store") as session:
        (suggestion,) = [session.suggest(unwanted=["path(3, 5)"])]
        assert "edge(4, 5)" in str(suggestion)
