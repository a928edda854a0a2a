"""`.limitsize` stops a recursion that would go on, and such an answer is not maintained."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from tests.refusals import refused

COUNTING = """
.decl n(x: number)
.limitsize n(n={limit})
n(0).
n(x + 1) :- n(x), x < 50.
"""


STRATEGIES = ["elastic", "recompute", "dense", "dred", "dredc", "bf", "bfc"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_evaluation_stops_at_the_limit(strategy: str) -> None:
    with elastalog.open(COUNTING.format(limit=10), strategy=strategy) as db:
        assert sorted(db["n"]) == [(x,) for x in range(10)]
        with refused("E0615"):
            db.apply(inserted={"n": [(100,)]})


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    with elastalog.open(COUNTING.format(limit=1000)) as db:
        assert len(db["n"]) == 51
        db.apply(deleted={"n": [(0,)]})
        assert len(db["n"]) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_update_stops_at_the_limit(strategy: str) -> None:
    """50 facts, then ever more from the inserted one: cut when there are 60, and not maintained from then on."""
    program = ".decl n(x: number)\n.input n\n.limitsize n(n=60)\nn(x + 1) :- n(x), x != 49.\n"
    with elastalog.open(program, {"n": [(0,)]}, strategy=strategy) as db:
        assert len(db["n"]) == 50
        db.apply(inserted={"n": [(-3,)]})
        assert len(db["n"]) == 53
        db.apply(inserted={"n": [(50,)]})
        # From 3 facts: two iterations bring 3 more each, the others 2 each, until 61 are enough.
        assert len(db["n"]) == 61
        with refused("E0615"):
            db.apply(deleted={"n": [(50,)]})


def test_global_levels_refuse_a_limit() -> None:
    with refused("E0902"):
        elastalog.open(COUNTING.format(limit=10), levels="global")


def test_an_update_that_fails_leaves_no_limit_reached() -> None:
    program = (
        ".decl n(x: number)\n.input n\n.limitsize n(n=60)\nn(x + 1) :- n(x), x != 49.\n"
        ".decl far(x: number)\nfar(x * 9223372036854775807) :- n(x), x > 50.\n"
    )
    with elastalog.open(program, {"n": [(0,)]}) as db:
        with refused("E0601"):
            db.apply(inserted={"n": [(50,)]})
        db.apply(inserted={"n": [(-3,)]})
        assert (db.epoch, len(db["n"])) == (2, 53)


@pytest.mark.parametrize(("limit", "is_cut"), [(10, True), (1000, False)])
def test_a_store_knows_that_it_was_cut_short(tmp_path: Path, limit: int, is_cut: bool) -> None:
    elastalog.open(COUNTING.format(limit=limit), store=tmp_path / "store").close()
    with elastalog.open(store=tmp_path / "store") as db:
        if not is_cut:
            db.apply(inserted={"n": [(100,)]})
            assert len(db["n"]) == 52
            return
        with refused("E0615"):
            db.apply(inserted={"n": [(100,)]})


def test_a_fact_beyond_the_limit_is_not_said_to_lack_anything() -> None:
    with elastalog.open(COUNTING.format(limit=10)) as db:
        with refused("E0615"):
            db.why_not("n(10)")
        assert [literal.text for literal in db.why_not("n(11)").instantiations[0].failing] == ["n(10)"]
