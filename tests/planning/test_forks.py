"""Other ways from the start of a variant: which there are."""

from __future__ import annotations

import pytest

from elastalog.planning.variants import first_key, handicap, other_ways, plan_from_goal
from tests.planning.test_order import Sizes, clause


def ways(rule: str, start: int, **fanouts: float) -> list[list[tuple[str, tuple[int, ...]]]]:
    """The joins of the planned way, and those of the others."""
    sizes = Sizes(**fanouts)
    usual = plan_from_goal(clause(rule), start, sizes)
    return [[(probe.relation, probe.key_columns) for probe in way.probes] for way in (usual, *other_ways(usual, sizes))]


def test_either_atom_of_a_pair_may_be_joined_first() -> None:
    assert ways("p(x, y) :- a(x, y), a(x, z), c(y, z).", 2, a=9) == [
        [("a", (1,)), ("a", (0, 1))],
        [("a", (1,)), ("a", (0, 1))],
    ]
    usual = plan_from_goal(clause("p(x, y) :- a(x, y), a(x, z), c(y, z)."), 2, Sizes(a=9))
    (other,) = other_ways(usual, Sizes(a=9))
    assert [first_key(way) for way in (usual, other)] == [(0,), (1,)]
    assert [probe.goal for probe in other.probes] == [1, 0]
    assert other.results == usual.results


def test_the_most_promising_way_comes_first() -> None:
    found = ways("p(x, u) :- a(x, y), b(y, z), c(x, w), p(x, v), c(v, u), c(z, u).", 0, b=5, c=30, p=20)
    assert [way[0][0] for way in found] == ["b", "p", "c"]


@pytest.mark.parametrize(
    ("rule", "start"),
    [
        ("p(x, z) :- a(x, y), b(y, z).", 0),  # one join
        ("p(x, w) :- a(x, y), b(y, z), c(z, w).", 0),  # a chain
        ("p(x, z) :- a(x, y), b(y, z), c(x, y).", 0),  # what is bound is looked at first
        ("p(x, z) :- a(x, y), b(y, z), c(1, z).", 0),  # a constant says nothing of the fact
        ("p(x, z) :- a(x, y), b(y, z), c(x, z), x < y.", 0),  # what a test drops need not go any way
        ("p(x, y) :- a(x, y), a(x, z), c(y, z). .plan 0:(3,1,2)", 2),  # the user has said it
    ],
)
def test_rules_without_another_way(rule: str, start: int) -> None:
    assert len(ways(rule, start)) == 1


def test_a_short_way_is_not_left() -> None:
    rule = "p(x, z) :- a(x, y), b(y, z), c(x, z)."
    assert len(ways(rule, 0, b=2)) == 1
    assert len(ways(rule, 0, b=40)) == 2


def test_long_ways_have_a_handicap() -> None:
    short = plan_from_goal(clause("p(x, z) :- a(x, y), b(y, z), c(x, z)."), 0, Sizes())
    long = plan_from_goal(clause("p(x, z) :- a(x, y), b(y, z), c(x, w), b(z, w)."), 0, Sizes())
    assert handicap(short) == 1 < handicap(long)
