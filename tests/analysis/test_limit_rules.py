"""Rules that are too long are refused with the limit; those within it are planned, evaluated and explained."""

from __future__ import annotations

import time

import pytest

import elastalog
from elastalog.analysis.take_apart import MOST_LITERALS
from tests.analysis.checking import codes, only_error


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
