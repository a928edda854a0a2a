"""Facts of a start go the way on which they meet less: each goes one way, and far fewer rows are looked at."""

from __future__ import annotations

import random
from typing import Any

import pytest

import elastalog
from elastalog.settings import SETTINGS
from tests.engine.judging import followed, levels_of
from tests.kernel import plans_of

BELOW = """
.decl below(x: number, y: number)
.decl both(y: number, w: number, z: number)
.decl barred(x: number)
below(x, z) :- below(x, y), below(x, w), both(y, w, z), !barred(z).
below(x, z) :- below(x, y), below(y, z).
.decl near(x: number, y: number, z: number)
near(x, w, z) :- below(x, y), both(y, w, z), below(z, w), below(x, w).
"""

PAIRS = """
.decl below(x: number, y: number)
.decl both(y: number, w: number, z: number)
.decl found(x: number, z: number)
found(x, z) :- below(x, y), below(x, w), both(y, w, z).
"""


def forks_of(db: Any) -> int:
    return sum(len(plan.forks) for plan in plans_of(db).values())


@pytest.mark.parametrize(("levels", "strategy"), [("local", "elastic"), ("global", "elastic"), ("local", "dense")])
@pytest.mark.parametrize("seed", range(2))
def test_levels_and_counts(levels: str, strategy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "fork_fanout", 0.0)
    monkeypatch.setattr(SETTINGS, "fork_index_share", 0)
    choice = random.Random(seed)

    def number() -> int:
        return min(choice.randrange(40), choice.randrange(40), choice.randrange(40))  # some are met far more often

    def some(size: int, width: int) -> set[tuple[int, ...]]:
        return {tuple(number() for _ in range(width)) for _ in range(size)}

    widths = {"below": 2, "both": 3, "barred": 1}
    facts = {"below": some(40, 2), "both": some(60, 3), "barred": some(3, 1)}
    options: dict[str, Any] = {"engine": "local", "levels": levels, "strategy": strategy}
    only: dict[str, Any] = {"budget": None} if strategy == "elastic" else {}
    with followed(BELOW, facts, "anew", **options, **only) as session:
        for _ in range(8):  # without `prepare`: indexes are missing at first
            gone = {
                name: set(choice.sample(sorted(known), choice.randrange(len(known) // 2 + 1)))
                for name, known in session.explicit.items()
            }
            session.apply({name: some(choice.randrange(12), width) for name, width in widths.items()}, gone)
        assert forks_of(session.db) > 3


def test_a_popular_end_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is below 0, and `both` is asked for pairs of 0 and a number that few are below."""
    below = [(x, 0) for x in range(1, 3000)] + [(x, x % 500 + 5000) for x in range(3000)]
    both = [(0, 5000 + i, 9000 + i) for i in range(50)] + [(5100 + i, 0, 9100 + i) for i in range(50)]
    rows, levels = [], []
    for least in (float("inf"), SETTINGS.fork_fanout):
        monkeypatch.setattr(SETTINGS, "fork_fanout", least)
        with elastalog.open(PAIRS, {"below": below}, engine="local", budget=None) as db:
            before = db._epochs.strategy.watch.rows
            db.apply({"both": both})
            rows.append(db._epochs.strategy.watch.rows - before)
            levels.append(levels_of(db))
    assert levels[0] == levels[1]
    assert rows[0] > 20 * rows[1]
