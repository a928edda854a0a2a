"""The checker's arithmetic against the reference evaluator's, which was written apart from it, and by hand."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.program import Apply, Base, Comparison, Constant, Expression, Variable
from elastalog.diagnostics.source import Span
from elastalog.provenance.ground import NoValue, compare, fold, holds, range_of, value_of
from elastalog.provenance.joins import solve
from elastalog.provenance.why_not import define
from tests.reference.values import Overflow, apply

HERE = Span(0, 0)
SAMPLES: dict[Base, tuple[Any, ...]] = {
    Base.NUMBER: (0, 1, -1, 2, 3, -7, 63, 64, 65, 2**62, 2**63 - 1, -(2**63)),
    Base.UNSIGNED: (0, 1, 2, 7, 63, 64, 65, 2**63, 2**64 - 1),
    Base.FLOAT: (0.0, 1.0, -1.5, 2.0, 0.1, 0.49999999999999994, 2.5, -0.5, 1e300, 12345.678),
    Base.SYMBOL: (
        "",
        "a",
        "ab",
        "12",
        "-3",
        "2.5",
        "1e3",
        "x1",
        "99999999999999999999999",
        " a,B ,a",
        "(a)(b)?",
        "2024-02-29",
        "2023-02-29",
        "2024-12-31T23:59:58Z",
        "9999-12-31 10:30",
        '{"a": [1, {"b": "c"}]}',
        "a[1].b",
    ),
}
NUMBER = Base.NUMBER


def constant(value: Any, base: Base = NUMBER) -> Constant:
    return Constant(value, base, HERE)


def call(functor: str, *arguments: Expression, base: Base = NUMBER) -> Apply:
    return Apply(functor, arguments, base, HERE)


def variable(name: str) -> Variable:
    return Variable(name, NUMBER, HERE)


def equation(left: Expression, right: Expression, operator: str = "=") -> Comparison:
    return Comparison(operator, NUMBER, left, right, HERE)


@pytest.mark.parametrize("functor", [f for f in FUNCTORS.values() if f.compute is not None], ids=lambda f: f.name)
def test_functors_agree_with_the_reference(functor: Any) -> None:
    for overload in functor.overloads:
        bases = [overload.parameter(i) for i in range(functor.minimum)]
        for values in product(*(SAMPLES[base] for base in bases)):
            arguments = [constant(value, base) for value, base in zip(values, bases, strict=True)]
            try:
                expected = apply(functor.name, values, overload.result.value)
            except Overflow:
                expected = []
            try:
                found = [value_of(call(functor.name, *arguments, base=overload.result), {})]
            except NoValue:
                found = []
            assert [repr(value) for value in found] == [repr(value) for value in expected], (functor.name, values)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ((1, 4), [1, 2, 3]),
        ((4, 1), [4, 3, 2]),
        ((1, 8, 3), [1, 4, 7]),
        ((1, 4, 0), [1]),
        ((4, 4, 0), []),
        ((1, 4, -1), []),
        ((2, 2), []),
    ],
)
def test_ranges(arguments: tuple[int, ...], values: list[int]) -> None:
    assert list(range_of(call("range", *map(constant, arguments)), {})) == values


def test_nan_equals_itself_and_is_not_ordered() -> None:
    nan = float("nan")
    assert compare("=", nan, float("nan"))
    assert not compare("!=", nan, nan)
    assert not compare("<", nan, 1.0)
    assert not compare(">=", nan, nan)


def test_texts_are_compared_by_match_and_contains() -> None:
    assert compare("match", "a.*", "abc")
    assert not compare("match", "a", "abc")
    assert not compare("match", "(", "(")
    assert compare("contains", "b", "abc")


def test_equations_give_variables_values_in_any_order() -> None:
    chain = [equation(variable("z"), call("+", variable("y"), constant(1))), equation(variable("y"), variable("x"))]
    assert list(solve(chain, {"x": 1})) == [{"x": 1, "y": 1, "z": 2}]
    assert define(chain, {"x": 1}) == {"x": 1, "y": 1, "z": 2}
    assert list(solve([*chain, equation(variable("z"), constant(5))], {"x": 1})) == []


def test_a_range_gives_several_solutions() -> None:
    body = [equation(variable("x"), call("range", constant(0), constant(4))), equation(variable("x"), constant(1), ">")]
    assert [found["x"] for found in solve(body, {})] == [2, 3]
    assert holds(body[0], {"x": 3})
    assert not holds(body[0], {"x": 4})


def test_a_comparison_without_a_value_does_not_hold() -> None:
    assert not holds(equation(constant(1), call("/", constant(1), constant(0)), "!="), {})


def test_folds() -> None:
    assert fold("count", [1, 1], NUMBER) == 2
    assert fold("sum", [], NUMBER) == 0
    assert fold("sum", [2**63 - 1, 1], NUMBER) is None
    assert fold("mean", [1, 2], Base.FLOAT) == 1.5
    assert fold("mean", [], Base.FLOAT) is None
    assert fold("mean", [2**63 - 1, -(2**63)], Base.FLOAT) == -0.5
    assert fold("sum", [1e308, 1e308], Base.FLOAT) == math.inf
    assert fold("sum", [1e308, 1e308, -1e308], Base.FLOAT) == 1e308
    assert fold("sum", [1e308, 1e308, -math.inf], Base.FLOAT) == -math.inf
    assert math.isnan(fold("sum", [math.inf, -math.inf], Base.FLOAT))
    assert fold("max", [1.0, math.nan], Base.FLOAT) == 1.0
    assert fold("min", [], NUMBER) is None
