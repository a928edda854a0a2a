from __future__ import annotations

import pytest

from tests.syntax.reading import advice, findings, printed, read, read_clean, read_item
from tests.tables import table


def test_the_span_of_a_clause_ends_with_its_dot() -> None:
    text = "// first\n p(x) :-\n q(x) .\n"
    assert text[slice(*read_item(text).span)] == "p(x) :-\n q(x) ."


def test_a_plan_without_a_rule() -> None:
    assert findings(".plan 0:(1)\np().") == [("E0122", "`.plan` does not follow a rule", ".plan 0:(1)")]


def test_names_like_directives_and_qualifiers_are_free() -> None:
    read_clean("input(x) :- output(x), decl(x), btree(x), printsize(plan).")


def test_line_endings_of_every_kind() -> None:
    assert len(read_clean("\ufeffp(1).\r\nq(2). // x\r\nr(3).").items) == 3


@pytest.mark.parametrize(("text", "expected"), table(__file__, "wrong clauses", columns=2))
def test_wrong_clauses(text: str, expected: tuple[str, str, str]) -> None:
    assert findings(text) == [expected]


def test_habits_of_sql_are_answered() -> None:
    assert advice("-- a comment") == ["comments begin with `//`"]
    assert advice("SELECT x FROM edge;") == ["write a rule: `SELECT x FROM edge` is `answer(x) :- edge(x, _).`"]


@pytest.mark.parametrize("arrow", [":=", "=>", "<-", "->", ":", "=", "if"])
def test_arrows_of_other_languages_are_read_as_rules(arrow: str) -> None:
    assert printed(f"p(x) {arrow} q(x).") == ["p(x) :- q(x)."]
    assert advice(f"p(x) {arrow} q(x).") == ["write `:-` instead"]


def test_a_missing_dot_loses_nothing() -> None:
    text = "p(x) :- q(x)\nr(y) :- s(y)\n.decl t(x: number)\nt(1)"
    assert findings(text) == [("E0111", "a clause does not end in `.`", ")")] * 3
    assert advice(text) == ["write `.` before `r`", "write `.` before `.decl`", "write `.` at the end"]
    assert printed(text) == ["p(x) :- q(x).", "r(y) :- s(y).", ".decl t(x: number)", "t(1)."]


def test_parsing_goes_on_behind_the_dot_of_a_wrong_clause() -> None:
    text = "p(x :- q(x). r(1). s(2 3). t(4)."
    assert [code for code, *_ in findings(text)] == ["E0110", "E0110"]
    assert printed(text) == ["r(1).", "t(4)."]


def test_an_open_string_is_one_error() -> None:
    text = 'p("a).\nq(1).\nr(x) :- s(x, "b).\nt(2).'
    assert [code for code, *_ in findings(text)] == ["E0102", "E0102"]
    assert printed(text) == ["q(1).", "t(2)."]


def test_parsing_goes_on_at_directives_and_at_the_start_of_lines() -> None:
    assert printed("p(x :- q(x)\n.decl r(x: number)\nr(1).") == [".decl r(x: number)", "r(1)."]
    assert printed("p(x :- q(x)\nr(1).\ns(2).") == ["r(1).", "s(2)."]


def test_the_opening_bracket_is_labelled_too() -> None:
    (diagnostic,) = read("p(x, y :- q(x).")[1]
    assert [(label.span, label.text, label.primary) for label in diagnostic.labels] == [
        ((7, 9), "expected `)`", True),
        ((1, 2), "opened here", False),
    ]


def test_findings_are_sorted_by_place() -> None:
    text = "p(x :- `.\nq('a').\nr(1 2)."
    _, diagnostics = read(text)
    starts = [diagnostic.labels[0].span.start for diagnostic in diagnostics]
    assert starts == sorted(starts)
    assert [d.code for d in diagnostics] == ["E0110", "E0101", "E0101", "E0110"]


def test_at_most_fifty_findings_and_a_note() -> None:
    _, diagnostics = read("p(.\n" * 1000 + "q(1).")
    assert len(diagnostics) == 51
    assert {diagnostic.code for diagnostic in diagnostics[:50]} == {"E0110"}
    assert (diagnostics[50].code, diagnostics[50].severity) == ("E0117", "note")
    assert diagnostics[50].message == "more than 50 findings: the others are not shown"


def test_an_average_is_called_mean() -> None:
    assert advice("p(y) :- y = avg x : { q(x) }.") == ["the average is written `mean x : { … }`"]
