"""Equations solved for their one unknown variable."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from elastalog.analysis.listing import show_expression
from elastalog.planning import logical
from elastalog.planning.lower import lower
from elastalog.planning.order import NoStatistics
from elastalog.planning.solving import Solution, solve_equation
from elastalog.planning.steps import Compute, Keep
from elastalog.planning.variants import plan_backward
from elastalog.program import Program
from elastalog.provenance.ground import NoValue, Run, no_ordinal, value_of
from tests.tables import table

HIGHEST, LOWEST, MOST = 2**63 - 1, -(2**63), 2**64 - 1
EDGES = {
    "number": (LOWEST, LOWEST + 1, -(2**62), -3, -1, 0, 1, 2, 3, 2**62, HIGHEST - 1, HIGHEST),
    "unsigned": (0, 1, 2, 3, 2**62, 2**63, MOST - 1, MOST),
    "symbol": ("", "a", "ab", "b", "aba", "ba"),
}


def clause(expression: str, base: str = "number", *, wraps: bool = False) -> logical.Clause:
    pragma = '.pragma "arithmetic" "wrap"\n' if wraps else ""
    text = f"{pragma}.decl a(x: {base}, y: {base})\n.decl p(v: {base}, y: {base})\np({expression}, y) :- a(x, y)."
    return lower(Program.parse(text).checked).strata[-1].clauses[0]


def solved(expression: str, base: str = "number", *, wraps: bool = False) -> tuple[logical.Test, Solution | None]:
    rule = clause(expression, base, wraps=wraps)
    (equation,) = (goal for goal in rule.goals if isinstance(goal, logical.Test))
    return equation, solve_equation(equation, {"@1", "y"}, rule.wraps)


@pytest.mark.parametrize(("expression", "solution"), table(__file__, "what is solved"))
def test_what_is_solved(expression: str, solution: str) -> None:
    found = solved(expression)[1]
    assert show_expression(found.expression) == solution
    assert found.is_exact == ("*" not in expression)


@pytest.mark.parametrize("expression", ["x + x", "x * y", "0 * x", "x / 2", "x % 2", "x band y", "min(x, y)", "x ^ 2"])
def test_what_is_not_solved(expression: str) -> None:
    assert solved(expression)[1] is None


@pytest.mark.parametrize("expression", ["x + y", "x - y", "2.0 * x", "-x"])
def test_floats_are_not_solved(expression: str) -> None:
    assert solved(expression, "float")[1] is None


def test_an_even_factor_has_no_inverse_among_integers_that_wrap() -> None:
    assert solved("2 * x", wraps=True)[1] is None
    assert solved("6 * x + y", wraps=True)[1] is None
    found = solved("3 * x", wraps=True)[1]
    assert found.is_exact


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize(
    ("base", "expression"),
    [
        *(("number", e) for e in ("x + y", "x - y", "y - x", "-x", "bnot x", "3 * x", "-7 * x + y", "-(x - y) * -1")),
        *(("unsigned", e) for e in ("x + y", "x - y", "y - x", "5 * x", "bnot x", "(x bxor y) - 1")),
        *(("symbol", e) for e in ("cat(x, y)", "cat(y, x)", 'cat("a", x, y)', "cat(y, x, y)", "x + y")),
    ],
)
def test_a_solution_is_the_one_value_for_which_the_equation_holds(base: str, expression: str, wraps: bool) -> None:
    equation, found = solved(expression, base, wraps=wraps)
    run = Run(no_ordinal, {}, wraps)
    for x, y in product(EDGES[base], repeat=2):
        head = _value(equation, {"x": x, "y": y}, run)
        if head is not None:
            assert value_of(found.expression, {"@1": head, "y": y}, run) == x
    if found.is_exact:  # and where it has a value, the equation holds
        for head, y in product(EDGES[base], repeat=2):
            try:
                x = value_of(found.expression, {"@1": head, "y": y}, run)
            except NoValue:
                continue
            assert _value(equation, {"x": x, "y": y}, run) == head


def _value(equation: logical.Test, bindings: dict[str, Any], run: Run) -> Any:
    try:
        return value_of(equation.right, bindings, run)
    except NoValue:
        return None


def test_a_plan_backwards_computes_what_is_looked_for_before_it_looks() -> None:
    text = """
    .decl D(x: number, d: number)
    .decl B(x: number, y: number, l: number)
    D(y, d + l) :- D(x, d), B(x, y, l).
    """
    rule = lower(Program.parse(text).checked).strata[-1].clauses[0]
    first, second = plan_backward(rule, NoStatistics()).probes
    assert (first.relation, first.key_columns) == ("B", (1,))
    assert [type(action) for action in first.actions] == [Compute]
    assert (second.relation, second.is_member) == ("D", True)


def test_what_may_not_hold_is_tested() -> None:
    actions = plan_backward(clause("2 * x"), NoStatistics()).gather.actions
    assert [type(action) for action in actions] == [Compute, Keep]
