"""Rules that may grow without end."""

from __future__ import annotations

import pytest

import elastalog
from elastalog.analysis.growth import warnings_of_growth
from elastalog.diagnostics.diagnostic import LimitReached
from tests.analysis.checking import accepted

DECLARATIONS = """
.type L = [h: number, t: L]
.decl e(x: number, y: number) .input e
.decl p(x: number) p(0).
.decl s(x: symbol) s("a").
.decl l(x: L) l(nil).
"""


@pytest.mark.parametrize(
    ("rules", "grown"),
    [
        ("p(x + 1) :- p(x).", "x + 1"),
        ("p(y) :- p(x), y = z * 2, z = x.", "z * 2"),
        ("p(x + y) :- p(x), e(_, y).", "x + y"),
        ('s(cat(x, "b")) :- s(x).', 'cat(x, "b")'),
        ("l([1, x]) :- l(x).", "[1, x]"),
        (".decl q(x: number) q(x + 1) :- p(x). p(x) :- q(x).", "x + 1"),
    ],
)
def test_what_nothing_bounds(rules: str, grown: str) -> None:
    program = accepted(DECLARATIONS + rules)
    (found,) = warnings_of_growth(program)
    span = found.labels[0].span
    assert (found.code, found.severity) == ("E0414", "warning")
    assert program.source.text[span.start : span.end] == grown


@pytest.mark.parametrize(
    "rules",
    [
        "p(x + 1) :- p(x), x < 10.",
        "p(y) :- p(x), y = x + 1, y <= 10.",
        "p(y) :- p(x), y = x + 1, e(y, _).",
        "p(x + 1) :- p(x), e(x, _).",
        "p(x / 2) :- p(x).",
        "p(y) :- p(x), e(x, y).",
        "p(x + 1) :- e(x, _).",
        "p(x + 1) :- p(x). p(a) <= p(b) :- b < a.",
        "p(x + 1) :- p(x). .limitsize p(n=10)",
        's(cat(x, "b")) :- s(x), strlen(x) < 5.',
        "l(x) :- l([_, x]).",
    ],
)
def test_what_is_bounded_or_no_recursion(rules: str) -> None:
    assert warnings_of_growth(accepted(DECLARATIONS + rules)) == []


def test_the_limit_that_ends_it_names_the_rule() -> None:
    text = ".decl far(x: number, n: number)\nfar(0, 0).\nfar(x, n + 1) :- far(x, n).\n"
    with pytest.raises(LimitReached) as raised:
        elastalog.open(text, facts={}, limits=elastalog.Limits(time=0.5))
    (found,) = raised.value.diagnostics
    (note,) = found.notes
    assert found.code == "E0603"
    assert note.startswith("this rule may grow without end: far(x, n + 1) :- far(x, n). (<text>:3); ")
    assert note.endswith("keep the least by `.decl far(x: number, n: min number)`")
