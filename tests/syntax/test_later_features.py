"""Features that come later are named, skipped, and do not disturb the rest."""

from __future__ import annotations

import pytest

from tests.syntax.reading import findings, printed

REST = "\nrest(1)."


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (".lattice L<> { Lub = @lub(_, _) }", "E0198", "lattices (`.lattice`) are not supported yet"),
    ],
)
def test_the_feature_is_named_and_its_item_left_out(text: str, code: str, message: str) -> None:
    found = findings(text + REST)
    assert found[-1][:2] == (code, message)
    assert {code for code, *_ in found} == {code}
    assert printed(text + REST) == ["rest(1)."]


@pytest.mark.parametrize(
    ("text", "code", "message", "kept"),
    [
        (".decl e(x: T<>)", "E0198", "lattice attributes (`<>`) are not supported yet", ".decl e(x: T)"),
    ],
)
def test_a_declaration_stays_so_that_its_uses_are_no_errors(text: str, code: str, message: str, kept: str) -> None:
    assert [found[:2] for found in findings(text + REST)] == [(code, message)]
    assert printed(text + REST) == [kept, "rest(1)."]


def test_a_counter_has_two_names() -> None:
    assert findings("p(autoinc(), $) :- r(_).") == []
    assert printed("p(autoinc(), $).") == ["p(autoinc(), autoinc())."]


def test_a_dot_without_spaces_between_clauses_is_no_component() -> None:
    assert findings("p(1).q(2).") == []
    assert findings("p(x) :- q(y), x = y.r(1).") == []
