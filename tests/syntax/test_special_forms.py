"""Forms that stand for others, and lattices."""

from __future__ import annotations

import pytest

from tests.syntax.reading import findings, printed


@pytest.mark.parametrize(
    "text",
    [
        ".lattice L<> { Bottom -> $A, Top -> 7, Lub -> @lub(_, _), Glb -> @glb(_, _), Leq -> @leq(_, _) }",
        ".decl e(x: T<>, y: number)",
        ".decl e(x: min number, y: max symbol)",
        ".decl e(min: number, max: float)",
    ],
)
def test_columns_that_improve_are_printed_as_they_are_written(text: str) -> None:
    assert findings(text) == []
    assert printed(text) == [text]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".lattice L { Lub -> @lub(_, _) }", "E0110"),
        (".lattice L<> { Lub = @lub(_, _) }", "E0110"),
        (".lattice L<> Lub", "E0110"),
        (".type R = [x: min number]", "E0264"),
        (".functor f(x: T<>): number", "E0264"),
    ],
)
def test_what_is_no_lattice_is_reported_where_it_is(text: str, code: str) -> None:
    assert [found[0] for found in findings(text + "\nrest(1).")] == [code]


def test_a_counter_has_two_names() -> None:
    assert findings("p(autoinc(), $) :- r(_).") == []
    assert printed("p(autoinc(), $).") == ["p(autoinc(), autoinc())."]


def test_a_dot_without_spaces_between_clauses_is_no_component() -> None:
    assert findings("p(1).q(2).") == []
    assert findings("p(x) :- q(y), x = y.r(1).") == []
