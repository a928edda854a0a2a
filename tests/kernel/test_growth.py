"""Small iterations of a bootstrap run in the machine: with the same facts, levels and counts as outside it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel import fixpoint
from elastalog.backends.kernel.machine import growth, layout
from tests.engine.judging import levels_of
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.reference.levels import levels


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Hands every iteration over at once; counts why the machine returns."""
    seen: Counter[int] = Counter()
    grow = growth.grow

    def counting(*arguments: Any) -> int:
        reason = int(grow(*arguments))
        seen[reason] += 1
        return reason

    monkeypatch.setattr(growth, "grow", counting)
    monkeypatch.setattr(fixpoint, "PATIENCE", 1)
    return seen


def test_random_programs(reasons: Counter[int]) -> None:
    for seed in range(80):
        program, _ = seeded_case(seed)
        with elastalog.open(program.text, facts=program.facts, engine="local") as db:
            assert levels_of(db) == levels(parse_accepted(program.text), program.explicit, with_text_facts=False)
    assert reasons[layout.DONE] > 20


def test_a_chain_with_a_broad_middle(reasons: Counter[int]) -> None:
    chain = [(i, i + 1) for i in range(300)]
    broad = [(300, 1000 + i) for i in range(3000)] + [(1000 + i, 5000) for i in range(3000)]
    tail = [(5000 + i, 5001 + i) for i in range(300)]
    program = """
    .decl edge(x: number, y: number)
    .decl reach(x: number)
    reach(0).
    reach(y) :- reach(x), edge(x, y).
    """
    with elastalog.open(program, facts={"edge": chain + broad + tail}, engine="local") as db:
        found = {
            x: (level, count) for x, level, count in db["reach"].to_arrow(annotations=True).to_pandas().values.tolist()
        }
    assert len(found) == 301 + 3000 + 301
    assert found[300] == (300, 1)
    assert found[1000] == (301, 1)
    assert found[5000] == (302, 3000)
    assert found[5300] == (602, 1)
    assert reasons[layout.LARGE]
    assert reasons[layout.NO_ROOM]


def test_expressions_and_full_indexes(reasons: Counter[int]) -> None:
    program = """
    .decl count_up(x: number, y: number)
    count_up(0, 0).
    count_up(x + 1, y + x) :- count_up(x, y), x < 1500.
    .decl near(x: number, y: number)
    near(x, y) :- count_up(x, _), count_up(y, _), x = y + 1, x < 200.
    near(x, z) :- near(x, y), near(y, z), x - z <= 5.
    """
    with elastalog.open(program, engine="local") as db:
        assert set(db["count_up"]) == {(x, x * (x - 1) // 2) for x in range(1501)}
        assert set(db["near"]) == {(x, y) for x in range(200) for y in range(max(0, x - 5), x)}
    assert reasons[layout.ACTIONS]
    assert reasons[layout.NO_INDEX]


def test_a_time_limit_ends_a_chain_that_never_ends(reasons: Counter[int]) -> None:
    program = ".decl up(x: number)\nup(0).\nup(x + 1) :- up(x)."
    with pytest.raises(elastalog.ElastalogError, match="E0603"):
        elastalog.open(program, engine="local", timeout=1.0)
