"""Aggregates by tasks: every task folds the groups of its share, at first and when members change."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.spark.following import both
from tests.spark.without_spark import tasks_in_this_process

SALES = """
.decl sale(shop: number, item: symbol, price: number)
.decl total(shop: number, price: number)
.decl items(shop: number, item: symbol, n: number)
.decl dearest, cheapest(shop: number, price: number)
.decl large(shop: number)
total(s, t) :- sale(s, _, _), t = sum p : { sale(s, _, p) }.
items(s, i, n) :- sale(s, i, _), n = count : { sale(s, i, _) }.
dearest(s, p) :- sale(s, _, _), p = max x : { sale(s, _, x) }.
cheapest(s, p) :- sale(s, _, _), p = min x : { sale(s, _, x) }.
large(s) :- total(s, t), t > 100.
"""
TOTALS = """
.decl sale(shop: number, item: symbol, price: number)
.decl total(shop: number, price: number)
total(s, t) :- sale(s, _, _), t = sum p : { sale(s, _, p) }.
"""
PRICES = """
.decl sale, total(shop: number, price: number)
total(s, t) :- sale(s, _), t = sum p : { sale(s, p) }.
"""
Sale = tuple[int, str, int]
OPTIONS: dict[str, dict[str, Any]] = {
    "elastic": {},
    "global": {"levels": "global", "budget": None},
    "dredc": {"strategy": "dredc"},
    "recompute": {"strategy": "recompute"},
}


def folded(sales: set[Sale]) -> dict[str, set[tuple[Any, ...]]]:
    """What the program says, by hand."""
    prices: dict[int, list[int]] = {}
    numbers: dict[tuple[int, str], int] = {}
    for shop, item, price in sales:
        prices.setdefault(shop, []).append(price)
        numbers[shop, item] = numbers.get((shop, item), 0) + 1
    return {
        "total": {(shop, sum(found)) for shop, found in prices.items()},
        "items": {(shop, item, number) for (shop, item), number in numbers.items()},
        "dearest": {(shop, max(found)) for shop, found in prices.items()},
        "cheapest": {(shop, min(found)) for shop, found in prices.items()},
        "large": {(shop,) for shop, found in prices.items() if sum(found) > 100},
    }


def random_sale(chance: random.Random) -> Sale:
    return chance.randrange(7), chance.choice("abc"), chance.randrange(-20, 60)


def where_aggregates_are(db: elastalog.Session) -> set[str]:
    backend = db._backend
    return {
        backend.placements[stratum.number].where for stratum in backend.program.strata if stratum.aggregate is not None
    }


def follow(text: str, options: dict[str, Any], session: Any, seed: int, updates: int = 4) -> None:
    """Random updates, each compared with what is folded by hand; levels with those of the kernel."""
    chance = random.Random(seed)
    sales = {random_sale(chance) for _ in range(40)}
    with both(text, {"sale": sorted(sales)}, session, **options) as sessions:
        db = sessions.db
        assert where_aggregates_are(db) == {"tasks"}
        for number in range(updates):
            gone = set(chance.sample(sorted(sales), 4))
            come = {random_sale(chance) for _ in range(4)} - sales
            sales = (sales - gone) | come
            sessions.apply({"sale": sorted(come)}, {"sale": sorted(gone)})
            if number % 2:
                assert all(set(db[name]) == facts for name, facts in folded(sales).items() if name in db)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
@pytest.mark.parametrize("treatment", OPTIONS)
def test_aggregates_are_folded_and_followed_by_tasks(tmp_path: Path, treatment: str, seed: int) -> None:
    with tasks_in_this_process(tmp_path) as session:
        follow(SALES, OPTIONS[treatment], session, seed)


def test_aggregates_on_spark(spark: Any) -> None:
    follow(TOTALS, {}, spark, 1, updates=1)


def test_only_shares_with_changed_members_run_and_nothing_comes_to_the_driver(tmp_path: Path) -> None:
    sales = [(shop, price) for shop in range(20) for price in range(3)]
    with (
        tasks_in_this_process(tmp_path, shares=4) as session,
        elastalog.open(PRICES, {"sale": sales}, engine="spark", spark=session) as db,
    ):
        del session.ran[:]
        db.apply({"sale": [(7, 100)]})
        assert session.ran
        assert all(len(shares) == 1 for shares in session.ran)
        backend = db._backend
        derived = {name for stratum in backend.program.strata if stratum.reads for name in stratum.relations}
        assert derived <= backend.kernel.evicted
        assert (7, 103) in set(db["total"])
        assert (6, 3) in set(db["total"])


def test_one_without_groups_is_folded_by_one_task(tmp_path: Path) -> None:
    text = (
        PRICES
        + """
        .decl all(price: number)
        all(t) :- t = sum p : { sale(_, p) }.
        .decl few(n: number, least: number, mean: float)
        few(n, l, m) :- n = count : { sale(_, _) }, l = min p : { sale(_, p) }, m = mean p : { sale(_, p) }.
    """
    )
    sales = {(1, 2), (1, 3), (2, 7)}
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, {"sale": sorted(sales)}, engine="spark", spark=session) as db,
    ):
        assert where_aggregates_are(db) == {"tasks"}
        for gone, come in (((1, 3), (4, 40)), ((4, 40), (2, 1)), ((2, 1), (2, 2**40))):
            prices = [price for _, price in sales]
            assert set(db["all"]) == {(sum(prices),)}
            assert set(db["few"]) == {(len(prices), min(prices), sum(prices) / len(prices))}
            sales = (sales - {gone}) | {come}
            db.apply({"sale": [come]}, {"sale": [gone]})
        db.apply(deleted={"sale": sorted(sales)})
        assert set(db["all"]) == {(0,)}
        assert not len(db["few"])
        backend = db._backend
        members = {stratum.aggregate.members for stratum in backend.program.strata if stratum.aggregate is not None}
        assert members - {"sale"} <= backend.kernel.evicted


def test_means_and_wide_sums_are_values_that_nobody_had(tmp_path: Path) -> None:
    text = (
        PRICES
        + ".decl mean_price(shop: number, m: float)\nmean_price(s, m) :- sale(s, _), m = mean p : { sale(s, p) }.\n"
    )
    sales = {(shop, 2**40 * shop + price) for shop in range(1, 9) for price in range(4)}
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, {"sale": sorted(sales)}, engine="spark", spark=session) as db,
    ):
        for gone, come in (((3, 2**40 * 3), (1, 7)), ((1, 7), (5, 2**41)), ((8, 2**43), (8, -(2**50)))):
            assert where_aggregates_are(db) == {"tasks"}
            prices: dict[int, list[int]] = {}
            for shop, price in sales:
                prices.setdefault(shop, []).append(price)
            assert set(db["total"]) == {(shop, sum(found)) for shop, found in prices.items()}
            assert set(db["mean_price"]) == {(shop, sum(found) / len(found)) for shop, found in prices.items()}
            sales = (sales - {gone}) | {come}
            db.apply({"sale": [come]}, {"sale": [gone]})


def test_an_overflow_is_the_error_of_the_kernel(tmp_path: Path) -> None:
    facts = {"sale": [(1, 2**63 - 1), (1, 1)]}
    with pytest.raises(ElastalogError) as wanted:
        elastalog.open(PRICES, facts)
    with tasks_in_this_process(tmp_path) as session, pytest.raises(ElastalogError) as caught:
        elastalog.open(PRICES, facts, engine="spark", spark=session)
    assert [d.code for d in caught.value.diagnostics] == [d.code for d in wanted.value.diagnostics] == ["E0601"]
