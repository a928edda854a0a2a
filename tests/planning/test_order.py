"""Orders of goals, lookups of facts that are known as a whole, and alternative plans from one start."""

from __future__ import annotations

import pytest

from elastalog.analysis.program import Variable
from elastalog.planning.goals import last_lookups
from elastalog.planning.logical import Clause
from elastalog.planning.lower import lower
from elastalog.planning.order import NoStatistics
from elastalog.planning.steps import Compute, Keep
from elastalog.planning.variants import first_key, handicap, other_ways, plan_backward, plan_from_goal, plan_full
from elastalog.program import Program

DECLARATIONS = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl c(x: number, y: number)
.decl d(x: number, y: number, z: number)
.decl p(x: number, y: number)
"""


class Sizes:
    """Relations with given fan-outs; everything else is large."""

    def __init__(self, **fanouts: float) -> None:
        self.fanouts = fanouts

    def rows(self, relation: str) -> float:
        return self.fanouts.get(relation, 1e6)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        return self.fanouts.get(relation, 1e6)


def clause(rule: str) -> Clause:
    return lower(Program.parse(DECLARATIONS + rule).checked).strata[-1].clauses[0]


def visited(rule: str, start: int = 0, **fanouts: float) -> list[str]:
    return [probe.relation for probe in plan_from_goal(clause(rule), start, Sizes(**fanouts)).probes]


def test_the_atom_with_the_least_fanout_comes_first() -> None:
    rule = "p(x, z) :- a(x, y), b(y, z), c(x, w), a(w, z)."
    assert visited(rule, b=100, c=2)[0] == "c"
    assert visited(rule, b=2, c=100)[0] == "b"


class AskedSizes(Sizes):
    """Sizes that note what they are asked."""

    def __init__(self, **fanouts: float) -> None:
        super().__init__(**fanouts)
        self.asked: list[str] = []

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        self.asked.append(relation)
        return super().fanout(relation, columns)


def test_a_fanout_is_asked_for_only_where_it_can_decide() -> None:
    rule = clause("p(x, w) :- a(x, y), b(y, z), c(y, w).")
    nothing_is_less, anything_may_be_less = AskedSizes(b=1, c=1), AskedSizes(b=2, c=1)
    assert [probe.relation for probe in plan_from_goal(rule, 0, nothing_is_less).probes] == ["b", "c"]
    assert nothing_is_less.asked == ["b"]
    assert [probe.relation for probe in plan_from_goal(rule, 0, anything_may_be_less).probes] == ["c", "b"]
    assert anything_may_be_less.asked == ["b", "c"]


def test_of_the_only_atom_that_shares_a_variable_nothing_is_asked() -> None:
    rule = clause("p(x, w) :- a(x, y), b(z, w), c(1, y), d(y, 1, v).")
    sizes = AskedSizes(d=1, c=1)
    assert [probe.relation for probe in plan_from_goal(rule, 0, sizes).probes] == ["c", "d", "b"]
    assert sizes.asked == []


def test_an_atom_that_is_bound_is_a_membership_test_and_comes_at_once() -> None:
    plan = plan_from_goal(clause("p(x, z) :- a(x, y), b(y, z), c(x, y)."), 0, NoStatistics())
    assert [(probe.relation, probe.is_member) for probe in plan.probes] == [("c", True), ("b", False)]


def test_a_cross_product_comes_last() -> None:
    assert visited("p(x, w) :- a(x, y), b(z, w), c(y, z).", b=1, c=1000) == ["c", "b"]


def test_negations_and_tests_come_as_soon_as_they_are_bound() -> None:
    plan = plan_from_goal(clause("p(x, z) :- a(x, y), b(y, z), !c(x, y), x < y."), 0, NoStatistics())
    assert plan.gather.actions
    assert [probe.is_negated for probe in plan.probes] == [True, False]


def test_what_may_overflow_comes_after_other_tests() -> None:
    plan = plan_from_goal(clause("p(x, y) :- a(x, y), x * 2 < y, x < 5, y = x + 1."), 0, NoStatistics())
    assert [action.operator for action in plan.gather.actions if isinstance(action, Keep)] == ["<", "<", "="]
    assert [isinstance(action.left, Variable) for action in plan.gather.actions if isinstance(action, Keep)] == [
        True, False, True,
    ]  # fmt: skip


def test_what_only_the_head_needs_is_computed_last() -> None:
    plan = plan_from_goal(clause("p(x + y, z) :- a(x, y), b(y, z)."), 0, NoStatistics())
    assert not plan.gather.actions
    assert [type(action) for action in plan.probes[-1].actions] == [Compute]


def test_what_a_key_or_a_test_needs_is_computed_at_once() -> None:
    for rule in ("p(w, z) :- a(x, y), w = x + y, b(w, z).", "p(w, z) :- a(x, y), w = x + y, w < 5, b(y, z)."):
        plan = plan_from_goal(clause(rule), 0, NoStatistics())
        assert isinstance(plan.gather.actions[0], Compute)
    cheap = plan_from_goal(clause("p(band(x, y), z) :- a(x, y), b(y, z)."), 0, NoStatistics())  # it never overflows
    assert isinstance(cheap.gather.actions[0], Compute)


def test_only_backwards_errors_are_dropped() -> None:
    rule = clause("p(x * y, z) :- a(x, y), b(y, z), x < z.")
    kept = [a for probe in plan_backward(rule, NoStatistics()).probes for a in probe.actions if isinstance(a, Keep)]
    assert sorted((a.operator, a.drops_errors) for a in kept) == [("<", False), ("=", True)]
    forward = plan_full(rule, NoStatistics())
    assert not any(a.drops_errors for probe in forward.probes for a in probe.actions if isinstance(a, Keep | Compute))


def test_a_full_version_starts_at_the_smallest_relation() -> None:
    plan = plan_full(clause("p(x, z) :- a(x, y), b(y, z)."), Sizes(a=1e6, b=10))
    assert plan.gather.relation == "b"


def test_backward_evaluation_starts_at_the_head() -> None:
    plan = plan_backward(clause("p(x, z) :- a(x, y), b(y, z)."), NoStatistics())
    assert plan.gather.relation == "p"
    assert plan.probes[0].key_columns == (0,)
    assert plan.probes[-1].is_member


def test_a_plan_of_the_user_is_obeyed() -> None:
    rule = "p(x, z) :- a(x, y), b(y, z), c(y, w).\n.plan 0:(1, 3, 2)"
    plan = plan_full(clause(rule), Sizes(a=1, b=1, c=1000))
    assert [plan.gather.relation, *(probe.relation for probe in plan.probes)] == ["a", "c", "b"]


def test_only_what_is_needed_later_is_kept() -> None:
    plan = plan_from_goal(clause("p(x, z) :- a(x, y), b(y, w), c(w, z)."), 0, Sizes(b=1, c=10))
    assert set(plan.probes[0].slots) == {"x", "w"}
    assert plan.probes[1].width == 2


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


LOOKED_UP = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl c(x: number, y: number)
.decl d(x: number, y: number)
"""


def last_of(rules: str) -> dict[str, tuple[str, ...]]:
    """By relation, the relations of the last stratum that may look up its facts."""
    program = lower(Program.parse(LOOKED_UP + rules).checked)
    relations = {stratum.number: stratum.relations for stratum in program.strata}
    return {name: relations[number] for number, names in last_lookups(program).items() for name in names}


def test_a_relation_with_a_column_of_its_own_is_never_looked_up() -> None:
    last = last_of("b(x, z) :- a(x, y), c(y, z).\nd(x, y) :- b(x, y).")
    assert last == {"a": ("a",), "b": ("b",), "c": ("c",), "d": ("d",)}


def test_negations_constants_and_goals_whose_variables_stand_elsewhere() -> None:
    assert last_of("d(x, y) :- a(x, y), !b(x, y).") == {"a": ("d",), "b": ("d",), "c": ("c",), "d": ("d",)}
    assert last_of("d(x, y) :- a(x, y), b(1, 2).")["b"] == ("d",)
    assert last_of("d(x, y) :- a(x, y), c(x, _).")["c"] == ("c",)
    assert last_of("d(x, y) :- a(x, z), c(x, y), y < z.")["a"] == ("d",)


def test_the_last_of_several_strata_counts() -> None:
    last = last_of("b(x, y) :- a(x, y), c(x, y).\nd(x, y) :- b(x, z), a(z, y), c(x, y).")
    assert last["a"] == ("d",)
    assert last["c"] == ("d",)
    assert last["b"] == ("d",)
