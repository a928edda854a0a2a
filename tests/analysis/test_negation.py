"""Bodies as alternatives: negated groups; rules that are too long are refused with the limit, others are evaluated."""

from __future__ import annotations

import time

import pytest

import elastalog
from elastalog.analysis.listing import show_literal
from elastalog.analysis.negation import without_groups
from elastalog.analysis.take_apart import MOST_LITERALS
from elastalog.syntax.printer import print_literal
from tests.analysis.checking import accepted, codes, only_error
from tests.syntax.reading import read_item
from tests.tables import table


@pytest.mark.parametrize(("text", "meaning"), table(__file__, "groups are taken apart"))
def test_groups_are_taken_apart(text: str, meaning: str) -> None:
    body = without_groups(read_item(f"p(x) :- {text}.").body)
    assert ", ".join(map(print_literal, body)) == meaning


DECLARED = """
.decl n(x: number, y: number) .decl u(x: unsigned, y: unsigned) .decl f(x: float, y: float)
.decl s(x: symbol, y: symbol) .decl p() .functor g(x: number): number
n(1, 1). u(1, 1). f(1, 1). s("", "").
"""


@pytest.mark.parametrize(
    ("atom", "text", "meaning"), table(__file__, "a comparison is turned round where there are values in order")
)
def test_a_comparison_is_turned_round_where_there_are_values_in_order(atom: str, text: str, meaning: str) -> None:
    (rule,) = accepted(f"{DECLARED} p() :- {atom}, {text}.").rules
    assert show_literal(rule.body[1]) == meaning


def chain(length: int) -> str:
    body = ", ".join(f"e(x{i}, x{i + 1})" for i in range(length))
    return f".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\np(x0, x{length}) :- {body}.\n"


def test_a_rule_may_be_so_long_and_no_longer() -> None:
    assert codes(chain(MOST_LITERALS)) == []
    assert codes(chain(MOST_LITERALS + 1)) == ["E0227"]


def test_so_is_the_body_of_an_aggregate() -> None:
    body = ", ".join(f"e(x{i}, x{i + 1})" for i in range(MOST_LITERALS + 1))
    text = f".decl e(x: number, y: number)\n.input e\n.decl p(n: number)\np(n) :- n = count : {{ {body} }}.\n"
    assert only_error(text).code == "E0227"


def test_a_rule_of_a_hundred_thousand_literals_is_refused_in_little_time() -> None:
    began = time.process_time()
    assert codes(chain(100_000)) == ["E0227"]
    assert time.process_time() - began < 30


@pytest.mark.slow
def test_the_longest_rule_is_evaluated_updated_and_explained() -> None:
    db = elastalog.open(chain(MOST_LITERALS), facts={"e": [(1, 1), (5, 3)]})
    assert list(db.apply({"e": [(1, 2)]})["p"].inserted) == [(1, 2)]
    assert db.explain("p(1, 2)").height == 1
    assert db.why_not("p(2, 2)").instantiations
    assert db.suggest(unwanted=["p(1, 2)"]).elements
