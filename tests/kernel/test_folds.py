"""Aggregates of whole groups, against values by hand and against plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.analysis.program import Aggregation, Atom, Base, Rule, Value, Variable
from elastalog.backends.kernel.expressions.folds import fold, group_order
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.planning.logical import AggregateRule
from elastalog.relations.words import Dictionary
from tests.refusals import refused

NUMBER, UNSIGNED, FLOAT = Base.NUMBER, Base.UNSIGNED, Base.FLOAT
LEAST, MOST, MOST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
SOURCE = Source("test.dl", "")
PLACE, SPAN = Span(0, 0), Span(7, 11)
RESULTS = {"count": NUMBER, "mean": FLOAT}


def aggregate_rule(operator: str, groups: int, target: int | None, base: Base) -> AggregateRule:
    result = RESULTS.get(operator, base)
    names = tuple(Variable(f"g{i}", NUMBER, PLACE) for i in range(groups))
    wanted = None if target is None else Variable("v", base, PLACE)
    literal = Aggregation(Variable("r", result, PLACE), operator, wanted, ((),), names, SPAN)
    rule = Rule(1, 1, Atom("head", (), PLACE), (literal,), False, {}, PLACE)
    return AggregateRule("@result", "@members", groups, operator, target, base, result, rule, SPAN)


def folded(operator: str, base: Base, members: Sequence[tuple[Value, ...]], groups: int = 1) -> dict[Any, Any]:
    """The result by group; the groups are numbers, the target is the last column."""
    dictionary = Dictionary()
    width = len(members[0]) if members else groups + 1
    bases = [NUMBER] * (width - 1) + [base]
    words = [[dictionary.encode_value(b, v) for b, v in zip(bases, row, strict=True)] for row in members]
    matrix = np.array(words, np.int32).reshape(len(members), width)
    rule = aggregate_rule(operator, groups, None if operator == "count" else width - 1, base)
    rows = fold(rule, matrix, dictionary, SOURCE)
    assert rows.dtype == np.int32
    assert rows.shape[1] == groups + 1
    results = {
        tuple(dictionary.decode_value(NUMBER, w) for w in row[:-1]): dictionary.decode_value(rule.result_base, row[-1])
        for row in rows.tolist()
    }
    assert len(results) == len(rows)
    return results


def test_each_operator_by_hand() -> None:
    members = [(1, 10), (2, -5), (1, 4), (1, 4), (2, 0)]
    assert folded("count", NUMBER, members) == {(1,): 3, (2,): 2}
    assert folded("sum", NUMBER, members) == {(1,): 18, (2,): -5}
    assert folded("min", NUMBER, members) == {(1,): 4, (2,): -5}
    assert folded("max", NUMBER, members) == {(1,): 10, (2,): 0}
    assert folded("mean", NUMBER, members) == {(1,): 6.0, (2,): -2.5}


@pytest.mark.parametrize("operator", ["count", "sum", "min", "max", "mean"])
@pytest.mark.parametrize("groups", [0, 1, 2, 3])
def test_no_members_give_no_groups(operator: str, groups: int) -> None:
    assert folded(operator, NUMBER, [], groups) == {}


def test_without_group_columns_all_members_are_one_group() -> None:
    assert folded("sum", NUMBER, [(3,), (4,)], groups=0) == {(): 7}
    assert folded("count", NUMBER, [(3,), (4,)], groups=0) == {(): 2}


def test_columns_between_groups_and_target_do_not_matter() -> None:
    assert folded("sum", NUMBER, [(1, 7, 5), (1, 8, 5), (2, 7, 1)]) == {(1,): 10, (2,): 1}


def test_wide_and_negative_groups_are_kept_apart() -> None:
    members = [(-1, 2**40, 1), (-1, -(2**40), 2), (0, 2**40, 3), (-1, 2**40, 4)]
    expected = {(-1, 2**40): 5, (-1, -(2**40)): 2, (0, 2**40): 3}
    assert folded("sum", NUMBER, members, groups=2) == expected


def test_sums_at_the_ends_of_the_type_are_exact() -> None:
    assert folded("sum", NUMBER, [(1, MOST), (1, 5), (1, -5), (2, LEAST), (2, 0)]) == {(1,): MOST, (2,): LEAST}
    assert folded("sum", UNSIGNED, [(1, MOST_UNSIGNED - 1), (1, 1)]) == {(1,): MOST_UNSIGNED}


@pytest.mark.parametrize(
    ("base", "values", "total"),
    [(NUMBER, (MOST, 1), 2**63), (NUMBER, (LEAST, -1), -(2**63) - 1), (UNSIGNED, (MOST_UNSIGNED, 1), 2**64)],
)
def test_sum_outside_its_type_is_a_diagnostic(base: Base, values: tuple[int, int], total: int) -> None:
    with refused("E0601") as raised:
        folded("sum", base, [(1, values[0]), (2, 0), (1, values[1])])
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == f"the sum {total} does not fit the type {base.value}"
    assert diagnostic.labels[0].span == SPAN
    assert diagnostic.source is SOURCE


def test_mean_of_integers_is_rounded_once() -> None:
    values = [MOST, MOST - 1, 3]
    assert folded("mean", NUMBER, [(1, v) for v in values]) == {(1,): sum(values) / 3}
    unsigned = [MOST_UNSIGNED, MOST_UNSIGNED]
    assert folded("mean", UNSIGNED, [(1, v) for v in unsigned]) == {(1,): float(MOST_UNSIGNED)}


def test_sum_of_floats_does_not_depend_on_the_order() -> None:
    values = [0.1, 1e16, -1e16, 0.2, 1e300, -1e300, 3e-17]
    sums = set()
    for seed in range(20):
        random.Random(seed).shuffle(values)
        sums.add(folded("sum", FLOAT, [(1, v) for v in values])[(1,)])
    assert sums == {float(sum(map(Fraction, values)))}


def test_special_floats() -> None:
    assert folded("sum", FLOAT, [(1, 1.7e308), (1, 1.7e308), (1, -1.7e308)]) == {(1,): 1.7e308}
    assert folded("sum", FLOAT, [(1, 1.7e308), (1, 1.6e308)]) == {(1,): math.inf}
    assert folded("sum", FLOAT, [(1, 1.7e308), (1, 1.6e308), (1, -math.inf)]) == {(1,): -math.inf}
    assert math.isnan(folded("sum", FLOAT, [(1, math.inf), (1, -math.inf)])[(1,)])
    assert folded("min", FLOAT, [(1, math.nan), (1, 2.0), (1, math.inf)]) == {(1,): 2.0}
    assert folded("max", FLOAT, [(1, math.nan), (1, 2.0)]) == {(1,): 2.0}
    assert math.isnan(folded("max", FLOAT, [(1, math.nan)])[(1,)])


VALUES: dict[Base, st.SearchStrategy[Any]] = {
    NUMBER: st.integers(-10, 10) | st.sampled_from([LEAST, MOST, 2**30, -(2**30) - 1]) | st.integers(LEAST, MOST),
    UNSIGNED: st.integers(0, 10) | st.sampled_from([MOST_UNSIGNED, 2**63]) | st.integers(0, MOST_UNSIGNED),
    FLOAT: st.integers(-8, 8).map(lambda n: n / 4),
}


@settings(deadline=None)
@given(
    st.data(), st.sampled_from(list(VALUES)), st.integers(0, 4), st.sampled_from(["count", "sum", "min", "max", "mean"])
)
def test_folds_agree_with_plain_python(data: Any, base: Base, groups: int, operator: str) -> None:
    group = st.tuples(*[st.sampled_from([0, 1, -1, 2**40])] * groups)
    members = data.draw(st.lists(st.tuples(group, VALUES[base]).map(lambda m: (*m[0], m[1])), max_size=30))
    by_group: dict[tuple[int, ...], list[Any]] = {}
    for member in members:
        by_group.setdefault(member[:-1], []).append(member[-1])
    compute: dict[str, Any] = {"count": len, "sum": sum, "min": min, "max": max, "mean": lambda v: sum(v) / len(v)}
    expected = {key: compute[operator](values) for key, values in by_group.items()}
    least, most = {NUMBER: (LEAST, MOST), UNSIGNED: (0, MOST_UNSIGNED), FLOAT: (-1e9, 1e9)}[base]
    if operator == "sum" and not all(least <= total <= most for total in expected.values()):
        with pytest.raises(ElastalogError):
            folded(operator, base, members, groups)
    else:
        assert folded(operator, base, members, groups) == expected


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_group_order_sorts_rows_of_a_group_together(groups: int) -> None:
    members = np.random.default_rng(5).integers(-3, 3, (500, 4)).astype(np.int32)
    order, starts = group_order(members, groups)
    assert sorted(order.tolist()) == list(range(500))
    keys = [tuple(row) for row in members[order, :groups].tolist()]
    assert keys == sorted(keys)
    assert starts.tolist() == [i for i in range(500) if i == 0 or keys[i] != keys[i - 1]]


@pytest.mark.parametrize("step", [1, 100_000], ids=["counted", "sorted"])
def test_numbers_of_members_come_in_the_order_of_groups(step: int) -> None:
    words = np.random.default_rng(step).integers(-30, 30, (200, 2)).astype(np.int32) * np.int32(step)
    found = fold(aggregate_rule("count", 1, None, NUMBER), words, Dictionary(), SOURCE).tolist()
    groups, sizes = np.unique(words[:, 0], return_counts=True)
    assert found == [list(row) for row in zip(groups.tolist(), sizes.tolist(), strict=True)]
