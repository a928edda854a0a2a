"""`db.forecast` names the strata that an update reaches directly, and changes nothing."""

from __future__ import annotations

import elastalog

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
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
