"""Small iterations of a bootstrap run in the machine: with the same facts, levels and counts as outside it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.watch import Progress
from elastalog.settings import SETTINGS
from tests.engine.judging import LEVEL_KINDS, Kind, levels_of
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.reference.levels import levels

REACH = """
.decl edge(x: number, y: number)
.decl reach(x: number)
reach(0).
reach(y) :- reach(x), edge(x, y).
"""


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts why the machine returns."""
    seen: Counter[int] = Counter()
    grow = growth.grow

    def counting(*arguments: Any) -> int:
        reason = int(grow(*arguments))
        seen[reason] += 1
        return reason

    monkeypatch.setattr(growth, "grow", counting)
    return seen


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_random_programs(kind: Kind, reasons: Counter[int]) -> None:
    for seed in range(80):
        program, _ = seeded_case(seed)
        with elastalog.open(program.text, facts=program.facts, levels=kind, engine="local") as db:
            assert levels_of(db) == levels(parse_accepted(program.text), program.explicit, kind, with_text_facts=False)
    assert reasons[layout.DONE] > 20


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_progress_is_told_while_the_machine_runs(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "work_between_checks", 500)
    told: list[Progress] = []
    program = """
    .decl edge(x: number, y: number)
    .decl reach(x: number)
    reach(y) :- edge(0, y).
    reach(y) :- reach(x), edge(x, y).
    """
    edges = [(i, i + 1) for i in range(5000)]
    with elastalog.open(program, {"edge": edges}, levels=kind, engine="local", on_progress=told.append) as db:
        assert len(db["reach"]) == 5000
        (stratum,) = {s.number for s in db._backend.program.strata if "reach" in s.relations}
    told = [news for news in told if news.stratum == stratum]
    later = [news for news in told if news.iteration > 25]
    assert len(later) > 5
    assert [news.iteration for news in later] == sorted(news.iteration for news in later)
    assert later[-1].iteration >= 5000
    assert sum(news.found for news in told) == 5000


def test_a_chain_with_a_broad_middle(reasons: Counter[int]) -> None:
    chain = [(i, i + 1) for i in range(300)]
    broad = [(300, 1000 + i) for i in range(3000)] + [(1000 + i, 5000) for i in range(3000)]
    tail = [(5000 + i, 5001 + i) for i in range(300)]
    with elastalog.open(REACH, facts={"edge": chain + broad + tail}, engine="local") as db:
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
        elastalog.open(program, engine="local", limits=elastalog.Limits(time=1.0))


OVER_A_CHAIN = f"""{REACH}
.decl gate, walk(x: number, y: number)
walk(x, x) :- reach(x), gate(x, _).
walk(x, z) :- walk(x, y), reach(z), gate(y, z).
"""


def walks(db: elastalog.Session) -> dict[tuple[int, int], tuple[int, int]]:
    rows = db["walk"].to_arrow(annotations=True).to_pandas().values.tolist()
    return {(x, y): (level, count) for x, y, level, count in rows}


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_global_levels_wait_for_facts_below(is_interrupted: bool, reasons: Counter[int]) -> None:
    """`reach(n)` has level n, so a walk that goes back to 10 is at the height of its start, and one that goes on waits
    for the facts ahead. Some iterations find much, and plans are made anew while derivations wait."""
    chain = [(i, i + 1) for i in range(1200)]
    hub = [(800, 10_000 + i) for i in range(4000)] if is_interrupted else []
    gates = [(400, 10), (10, 11), (11, 1200), (800, 10), *(((800, y) for _, y in hub))]
    with elastalog.open(
        OVER_A_CHAIN, facts={"edge": chain + hub, "gate": gates}, levels="global", engine="local"
    ) as db:
        found = walks(db)
    expected = {
        (10, 10): (11, 1),
        (10, 11): (12, 1),
        (10, 1200): (1201, 1),
        (11, 11): (12, 1),
        (11, 1200): (1201, 1),
        (400, 400): (401, 1),
        (400, 10): (402, 1),
        (400, 11): (403, 1),
        (400, 1200): (1201, 1),
        (800, 800): (801, len(hub) + 1),
        (800, 10): (802, 1),
        (800, 11): (803, 1),
        (800, 1200): (1201, 1),
    }
    expected |= {(800, y): (802, 1) for _, y in hub}
    assert found == expected
    # Because the plans of `reach` are no longer good, and those of `walk`; and when `walk` is above all of `reach`.
    assert reasons[layout.LARGE] == (3 if is_interrupted else 2)


@pytest.mark.parametrize(("number", "refusals"), [(1000, 0), (3000, 1)])
def test_many_derivations_wait_in_the_machine(number: int, refusals: int, reasons: Counter[int]) -> None:
    """All derivations that wait for the same level are counted; the nodes in which they wait, 1,024 at first,
    are used again."""
    program = f"""{REACH}
    .decl way(x: number, y: number, n: number)
    .decl walk(x: number)
    walk(0).
    walk(y) :- walk(x), way(x, y, n), reach(n).
    """
    hubs = [(300 * hub, 10_000 * hub + i) for hub in (1, 2, 3) for i in range(number)]
    edges = [(i, i + 1) for i in range(900)] + hubs
    ways = [(x, x + 1, x) for x in range(5)] + [(4 + (n // 300), 5 + (n // 300), y) for n, y in hubs]
    with elastalog.open(program, facts={"edge": edges, "way": ways}, levels="global", engine="local") as db:
        found = db["walk"].to_arrow(annotations=True).to_pandas().values.tolist()
    early = [[x, x, 1] for x in range(6)]
    assert sorted(found) == [*early, [6, 302, number], [7, 602, number], [8, 902, number]]
    assert reasons[layout.NO_NODES] == refusals
    assert reasons[layout.NO_LEVELS] == 2
