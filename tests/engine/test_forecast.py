"""`db.forecast` names the strata that an update reaches directly, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import elastalog

PROGRAM = """
.decl edge, path(x: number, y: number)
.decl far(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
far(x) :- path(x, 9).
"""


def test_the_strata_that_hold_or_read_a_changed_relation() -> None:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2), (2, 3)]}) as db:
        forecasts = db.forecast(inserted={"edge": [(3, 4), (1, 2)]}, deleted={"edge": [(7, 7)]})
        assert [forecast.relations for forecast in forecasts] == [("edge",), ("path",)]
        assert {forecast.how for forecast in forecasts} == {"update"}
        assert "1 changed" in forecasts[1].why
        assert db.epoch == 1
        assert len(db["edge"]) == 2


def test_an_update_without_effect_reaches_nothing() -> None:
    with elastalog.open(PROGRAM, facts={"edge": [(1, 2)]}) as db:
        assert db.forecast(inserted={"edge": [(1, 2)]}) == ()


CHANGES: list[tuple[dict[str, Any], set[str]]] = [
    ({"added": "far(x) :- path(x, 8)."}, {"far: update"}),
    ({"removed": "far(x) :- path(x, 9)."}, {"far: update"}),
    ({"removed": 2}, {"path: update"}),
    ({"added": "edge(x, y) :- path(y, x)."}, {"edge, path: recompute"}),  # they become one stratum
    ({"added": ".decl new(x: number)\nnew(x) :- far(x)."}, {"new: update"}),
    ({"added": "far(7).", "inserted": {"edge": [(3, 9)]}}, {"edge: update", "path: update", "far: update"}),
]


@pytest.mark.parametrize("strategy", ["elastic", "bfc"])
@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_rules_that_change_reach_their_strata(change: dict[str, Any], expected: set[str], strategy: str) -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}, strategy=strategy) as db:
        before = repr(db.forecast({"edge": [(5, 6)]}))
        text = db.program.tree.source.text
        forecasts = db.forecast(**change)
        found = {f"{', '.join(forecast.relations)}: {forecast.how}" for forecast in forecasts}
        # Nothing has changed, also not what the strategy knows.
        assert (db.epoch, db.program.tree.source.text, len(db["path"])) == (1, text, 3)
        assert repr(db.forecast({"edge": [(5, 6)]})) == before
        assert db.verify().is_exact or strategy == "bfc"
        # What is done to these strata is what was said.
        update = db.update()
        if "removed" in change:
            update.remove_rules(change["removed"])
        if "added" in change:
            update.add_rules(change["added"])
        for name, rows in change.get("inserted", {}).items():
            update.insert(name, rows)
        assert [repr(f) for f in db.forecast(update)] == [repr(f) for f in forecasts]
        update.commit()
        done = {(work.stratum, work.relations): work.how for work in update.stats.work.strata}
        for forecast in forecasts:
            assert done[forecast.stratum, forecast.relations] == forecast.how
        assert found == expected


def test_rules_with_errors_have_no_forecast() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        with pytest.raises(elastalog.ElastalogError, match="E0616"):
            db.forecast(removed=9)
        with pytest.raises(elastalog.ElastalogError, match="E0204"):
            db.forecast(added="far(x) :- paht(x, 9).")


FEWEST = """
.decl edge(x: number, y: number, cost: number)
.decl cost(x: number, c: number)
cost(1, 0).
cost(y, c + d) :- cost(x, c), edge(x, y, d).
"""
CHOSEN = """
.decl edge(x: number, y: number, c: number)
.decl cost(x: number, y: number) choice-domain x
cost(x, y) :- edge(x, y, _).
"""


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (f"{FEWEST}cost(x, c) <= cost(x, d) :- d < c, c > 3.", "more than the least or greatest value of a key"),
        (f"{FEWEST}cost(x, c) <= cost(x, d) :- d < c.", None),
        (CHOSEN, "a choice domain chooses again"),
    ],
)
def test_a_stratum_that_cannot_be_maintained_is_recomputed(rules: str, why: str | None) -> None:
    with elastalog.open(rules, {"edge": [(1, 2, 1), (2, 3, 5), (1, 3, 9)]}) as db:
        forecast = db.forecast({"edge": [(3, 4, 2)]})[-1]
        with db.update() as update:
            update.insert("edge", [(3, 4, 2)])
        done = update.stats.work.strata[-1]
        assert (forecast.relations, forecast.how) == (done.relations, done.how) == (("cost",), done.how)
        if why is None:
            assert forecast.how == "update"
        else:
            assert forecast.how == "recompute"
            assert why in forecast.why
            assert forecast.why == done.why
