"""Lost facts that would cost much to look for backwards are found by enumerating their clause: levels and counts are
those of an evaluation from the start."""

from __future__ import annotations

import random
from typing import Any

import pytest

import elastalog
from elastalog.settings import SETTINGS
from tests.closures import FROM_SOURCES
from tests.engine.judging import followed, is_as_anew
from tests.kernel import plans_of

PAIRED = """
.decl edge(x: number, y: number)
.decl blocked(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z), !blocked(y).
.decl far(x: number, d: number)
far(0, 0).
far(y, d + 1) :- far(x, d), edge(x, y), d < 9, !blocked(x).
"""

HOPELESS = """
.decl call(site: number, name: number)
.decl method(name: number, type: number, target: number)
.decl start(target: number)
.decl holds(site: number, type: number)
.decl reach(target: number)
reach(t) :- start(t).
reach(t) :- reach(c), call(s, n), s % 40 = c % 40, holds(s, k), method(n, k, t).
"""


def whole_of(db: Any) -> list[tuple[int, int]]:
    """What enumeration took, and how many rows were guessed, of the variants that can be left to it."""
    plans = plans_of(db).values()
    return [(v.whole, v.left) for plan in plans for v in plan.machine.code.variants if v.whole]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumeration seems to cost nothing."""
    monkeypatch.setattr(SETTINGS, "enumerate_from", 1)
    monkeypatch.setattr(SETTINGS, "rows_a_fact", 0)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("levels", ["local", "global"])
@pytest.mark.parametrize("seed", range(3))
def test_levels_and_counts(levels: str, seed: int) -> None:
    choice = random.Random(seed)
    edges = sorted({(choice.randrange(30), choice.randrange(30)) for _ in range(70)})
    facts = {"edge": set(edges), "blocked": {(x,) for x in range(3)}}
    with followed(
        PAIRED, facts, "anew", {**facts, "far": {(0, 0)}}, engine="local", levels=levels, budget=None
    ) as session:
        for _ in range(8):
            gone = set(choice.sample(sorted(session.explicit["edge"]), choice.randrange(1, 12)))
            come = {(choice.randrange(30), choice.randrange(30)) for _ in range(choice.randrange(10))}
            other = {(choice.randrange(30),) for _ in range(2)}
            blocked = session.explicit["blocked"] - other
            session.apply({"edge": come, "blocked": other}, {"edge": gone, "blocked": blocked})
        learnt = [rows for rows, left in whole_of(session.db) if rows > 1 and left == 0]
        assert learnt, "nothing was left to enumeration"
        plans = plans_of(session.db).values()
        assert any(v.grouped for plan in plans for v in plan.machine.code.variants), "no start was read in groups"


def test_a_search_that_is_hopeless_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method has the same name, so that a target says nothing of the sites that call it."""
    facts = {
        "call": [(s, 0) for s in range(400)],
        "holds": [(s, s // 4) for s in range(400)],
        "method": [(0, t, t) for t in range(100)],
        "start": [(t,) for t in range(4)],
    }
    efforts = []
    for least in (1 << 40, 1):
        monkeypatch.setattr(SETTINGS, "enumerate_from", least)
        monkeypatch.setattr(SETTINGS, "rows_a_fact", 0)
        with elastalog.open(HOPELESS, facts, engine="local", budget=None) as db:
            before = db._backend.watch.rows
            db.apply({}, {"start": [(1,), (2,)]})
            efforts.append(db._backend.watch.rows - before)
            is_as_anew(db, HOPELESS, {**facts, "start": [(0,), (3,)]}, engine="local")
    assert efforts[1] <= efforts[0]


def test_the_first_heads_may_be_unlike_the_others() -> None:
    """Sixteen hubs with many edges from elsewhere are lost first; of thousands that are lost with them, each has one
    edge: it would be wrong to leave all of these to enumeration."""
    hubs, leaves = range(1, 17), range(100, 20_100)
    edges = [(0, hub) for hub in hubs] + [(1, leaf) for leaf in leaves]
    edges += [(-other, hub) for hub in hubs for other in range(1, 31)]
    with elastalog.open(FROM_SOURCES, {"source": [(0,)], "edge": edges}, engine="local", budget=None) as db:
        db.apply({}, {"source": [(0,)]})
        assert len(db["reach"]) == 0
        assert [rows > SETTINGS.enumerate_from for rows, _ in whole_of(db)] == [True], "enumerated after all"
