"""Aggregates folded on sorted keys give the facts, levels and counts of the kernel, and of the definition."""

from __future__ import annotations

import logging
import random
from typing import Any, Literal

import numpy as np
import pytest

import elastalog
from elastalog.backends.gpu import found, place
from elastalog.program import Program
from elastalog.settings import SETTINGS
from tests.engine.judging import judge, state_of
from tests.gpu.conftest import Claims

NEVER = 1 << 60
NARROW, WIDE = 1 << 29, 1 << 40

PROGRAM = """
.decl sale(shop: symbol, item: number, price: number, times: unsigned)
.decl reach, next(a: number, b: number)
reach(a, b) :- next(a, b).
reach(a, c) :- reach(a, b), next(b, c).

.decl shops(shop: symbol)
shops(s) :- sale(s, _, _, _).
.decl sold(shop: symbol, number: number)
sold(s, n) :- shops(s), n = count : { sale(s, _, _, _) }.
.decl worth(shop: symbol, price: number, times: unsigned)
worth(s, p, t) :- shops(s), p = sum x : { sale(s, _, x, _) }, t = sum x : { sale(s, _, _, x) }.
.decl ends(shop: symbol, item: number, least: number, most: number, highest: unsigned)
ends(s, i, a, b, t) :-
    sale(s, i, _, _), a = min x : { sale(s, i, x, _) }, b = max x : { sale(s, i, x, _) },
    t = max x : { sale(s, _, _, x) }.
.decl usual(item: number, price: float)
usual(i, m) :- sale(_, i, _, _), m = mean x : { sale(_, i, x, _) }.
.decl all(number: number, sum: number, least: number, mean: float)
all(n, s, l, m) :-
    n = count : { sale(_, _, _, _) }, s = sum x : { sale(_, _, x, _) }, l = min x : { sale(_, _, x, _) },
    m = mean x : { reach(x, _) }.
.decl near(a: number, number: number, farthest: number)
near(a, n, f) :- next(a, _), n = count : { reach(a, _) }, f = max b : { reach(a, b) }.
.decl none(item: number, number: number, sum: number)
none(i, n, s) :- sale(_, i, _, _), n = count : { reach(i, _) }, s = sum b : { reach(b, i) }.
"""


def _facts(seed: int, most: int = NARROW) -> dict[str, list[tuple[Any, ...]]]:
    choice = random.Random(seed)
    sales = {
        (choice.choice("abcd"), choice.randrange(4), choice.randrange(-most, most), choice.randrange(most))
        for _ in range(choice.randrange(30))
    }
    sales |= {(shop, item, 7, 1) for shop, item, _, _ in sorted(sales)[::3]}
    return {"sale": sorted(sales), "next": [(choice.randrange(6), choice.randrange(6)) for _ in range(6)]}


def _folds(caplog: pytest.LogCaptureFixture) -> int:
    return sum("folded" in record.getMessage() and " groups " in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("levels", ["local", "global"])
@pytest.mark.parametrize("chunk", [1 << 20, 3])
def test_as_the_kernel_and_as_defined(
    levels: Literal["local", "global"], chunk: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(place, "CHUNK", chunk)
    monkeypatch.setattr(found, "PIECE", chunk)
    monkeypatch.setattr(SETTINGS, "device_patience", NEVER)
    caplog.set_level(logging.INFO, "elastalog.placement")
    program = Program.parse(PROGRAM)
    for seed in range(6):
        facts = _facts(seed)
        here, there = (
            elastalog.open(program, facts=facts, engine=engine, levels=levels) for engine in ("local", "gpu")
        )
        assert state_of(there) == state_of(here), seed
        if seed < 3:
            judge(there, program.tree, {name: set(rows) for name, rows in facts.items()}, levels)
        for db in (here, there):
            db.apply({"next": [(0, 5)]}, {"sale": facts["sale"][:2]})
        assert state_of(there) == state_of(here), seed
    assert _folds(caplog) > 60


def test_where_no_levels_are_kept() -> None:
    for engine in ("local", "gpu"):
        for levels in ("local", "global"):
            db = elastalog.open(PROGRAM, facts=_facts(2), engine=engine, strategy="recompute", levels=levels)
            expected = elastalog.open(PROGRAM, facts=_facts(2), engine="local")
            assert {name: set(db[name]) for name in db} == {name: set(expected[name]) for name in expected}


def test_values_that_need_a_table_are_folded_by_the_kernel(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    for seed in range(3):
        facts = _facts(seed, WIDE)
        here, there = (elastalog.open(PROGRAM, facts=facts, engine=engine) for engine in ("local", "gpu"))
        assert state_of(there) == state_of(here)
    assert any("beyond 30 bits" in record.getMessage() for record in caplog.records)
    assert _folds(caplog)  # counts look at no values


def test_results_that_need_a_table() -> None:
    """Sums leave the narrow numbers, and what a float can tell apart, though no member does."""
    program = """
    .decl v(g: number, n: number, i: number)
    .decl total(g: number, s: number, m: float)
    total(g, s, m) :- v(g, _, _), s = sum n : { v(g, n, _) }, m = mean n : { v(g, n, _) }.
    """
    facts = [(group, sign * ((1 << 30) - 1 - group), i) for group, sign in ((0, 1), (1, -1)) for i in range(40)]
    db = elastalog.open(program, facts={"v": facts}, engine="gpu")
    most, least = (1 << 30) - 1, -((1 << 30) - 2)
    assert sorted(db["total"]) == [(0, 40 * most, float(most)), (1, 40 * least, float(least))]


def test_groups_wider_than_a_key() -> None:
    program = """
    .decl v(a: number, b: number, c: number, n: number)
    .decl most(a: number, b: number, c: number, m: number, k: number, s: number)
    most(a, b, c, m, k, s) :-
        v(a, b, c, _), m = max n : { v(a, b, c, n) }, k = count : { v(a, b, c, _) }, s = sum n : { v(a, b, c, n) }.
    """
    rng = np.random.default_rng(3)
    rows = rng.integers(-(1 << 29), 1 << 29, (40, 3)).tolist()
    facts = {(a, b, c, int(n)) for a, b, c in rows for n in rng.integers(-(1 << 29), 1 << 29, 3)}
    groups: dict[tuple[int, ...], list[int]] = {}
    for *group, n in facts:
        groups.setdefault(tuple(group), []).append(n)
    db = elastalog.open(program, facts={"v": sorted(facts)}, engine="gpu")
    assert set(db["most"]) == {(*group, max(ns), len(ns), sum(ns)) for group, ns in groups.items()}


def test_floats_and_numbers_of_facts_are_left_to_the_kernel(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elastalog.placement")
    program = """
    .decl v(g: number, x: float)
    .decl r(g: number, s: float, l: float)
    .decl n(k: number)
    r(g, s, l) :- v(g, _), s = sum x : { v(g, x) }, l = min x : { v(g, x) }.
    n(k) :- k = count : { v(_, _) }.
    """
    facts = {"v": [(1, 1e16), (1, 1.0), (1, -1e16), (2, 0.1), (2, 0.2)]}
    db = elastalog.open(program, facts=facts, engine="gpu")
    assert sorted(db["r"]) == [(1, 1.0, -1e16), (2, pytest.approx(0.3), 0.1)]
    assert sorted(db["n"]) == [(5,)]
    assert sum("floats are folded" in record.getMessage() for record in caplog.records) == 2
    assert sum("nothing but a number" in record.getMessage() for record in caplog.records) == 1
    assert not _folds(caplog)


@pytest.mark.parametrize("levels", ["local", "global"])
def test_without_room_the_kernel_folds(
    levels: str, claims: Claims, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At every place where memory is asked for."""
    program = """
    .decl sale(shop: number, item: number, price: number)
    .decl r(shop: number, s: number, k: number)
    r(a, s, k) :- sale(a, _, _), s = sum x : { sale(a, _, x) }, k = count : { sale(a, _, _) }.
    """
    facts = {"sale": [(n % 3, n, n * n) for n in range(12)]}
    expected = state_of(elastalog.open(program, facts=facts, engine="local", levels=levels))
    monkeypatch.setattr(found, "PIECE", 4)
    elastalog.open(program, facts=facts, engine="gpu", levels=levels)
    every = claims.number
    caplog.set_level(logging.INFO, "elastalog.placement")
    for _ in claims.each():
        assert state_of(elastalog.open(program, facts=facts, engine="gpu", levels=levels)) == expected
    assert sum("has no room" in record.getMessage() for record in caplog.records) == every > 20
    assert 0 < _folds(caplog) <= 2 * every


def test_what_folding_cost_is_in_the_statistics() -> None:
    program = """
    .decl v, k(g: number, n: number)
    k(g, m) :- v(g, _), m = max n : { v(g, n) }.
    """
    db = elastalog.open(program, facts={"v": [(1, 2), (1, 3), (2, 2)]}, engine="gpu")
    (cost,) = (part for part in db.statistics().elsewhere if not part.derivations)
    assert (cost.rounds, list(cost.bytes.values())) == (1, [16])  # two facts of two words
