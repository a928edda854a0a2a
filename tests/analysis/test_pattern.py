"""Facts and patterns written as text: what is wrong with them is said of what was written, not of a dot behind it."""

from __future__ import annotations

import math

import pytest

from elastalog.analysis.pattern import Free, Pattern, parse_fact, parse_pattern, parse_query
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program

PROGRAM = Program.parse('.decl path(from: number, to: number)\n.decl name(of: symbol)\n.decl on()\nname("a").').checked


def test_patterns() -> None:
    assert parse_pattern("path(1, X)", PROGRAM) == Pattern("path", (1, Free("X")))
    assert parse_pattern(" path(_, X). ", PROGRAM) == Pattern("path", (Free(None), Free("X")))
    assert parse_pattern("on()", PROGRAM) == Pattern("on", ())
    assert parse_fact('name("a.")', PROGRAM) == ("name", ("a.",))


FLOATS = Program.parse(".type R = [w: float]\n.decl f(x: float, of: R)\n.decl n(x: number)").checked


@pytest.mark.parametrize(("text", "value"), [("nan", math.nan), ("inf", math.inf), ("-inf", -math.inf)])
def test_floats_without_a_literal_are_written_as_facts_show_them(text: str, value: float) -> None:
    relation, (found, record) = parse_fact(f"f({text}, [{text}])", FLOATS)
    assert (relation, repr(found), repr(record[0])) == ("f", repr(value), repr(value))
    assert repr(parse_pattern(f"f({text}, _)", FLOATS).terms[0]) == repr(value)


def test_elsewhere_such_names_are_variables() -> None:
    assert parse_pattern("n(nan)", FLOATS).terms == (Free("nan"),)
    assert parse_query("f(inf, X)", FLOATS).terms == (Free("inf"), Free("X"))


@pytest.mark.parametrize(
    ("text", "code", "message", "column", "label"),
    [
        ("path(X", "E0609", "the atom is not complete", 7, "expected `)`"),
        ("path(X.", "E0609", "the atom is not complete", 7, "expected `)`"),
        ("path(1, ", "E0609", "the atom is not complete", 9, "expected a term"),
        ("path", "E0609", "`path` alone is not an atom", 1, ""),
        ("", "E0609", "this is not an atom", 1, ""),
        (" . ", "E0609", "this is not an atom", 1, ""),
        ("path(1, X) on", "E0609", "the atom ends before this", 12, "too much"),
        ("path(1, X))", "E0609", "the atom ends before this", 11, "too much"),
        ("path(1, X), on()", "E0609", "this is not one atom", 1, ""),
        ("path(1, X) :- on()", "E0609", "this is not one atom", 1, ""),
        ("!on()", "E0110", "expected an atom, found `!`", 1, "expected an atom"),
        ('name("a)', "E0102", "a string is not closed on its line", 6, "the string starts here"),
        ("paht(1, X)", "E0606", "there is no relation `paht`", 1, ""),
        ("path(X)", "E0607", "`path` has 2 attributes, not 1", 1, ""),
        ("name(1)", "E0610", "attribute `of` of `name` is a symbol", 6, ""),
    ],
)
def test_what_is_no_pattern(text: str, code: str, message: str, column: int, label: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        parse_pattern(text, PROGRAM)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == (code, message)
    assert (found.source.name, found.source.text) == ("<query>", text)
    main = next(at for at in found.labels if at.primary)
    assert (found.source.locate(main.span.start), main.text) == ((1, column), label)
    assert all(at.span.end <= len(text) for at in found.labels)
    assert found.help


def test_where_variables_may_stand_the_help_says_so() -> None:
    with pytest.raises(ElastalogError) as pattern:
        parse_pattern('path("a", X)', PROGRAM)
    with pytest.raises(ElastalogError) as fact:
        parse_fact('path("a", 2)', PROGRAM)
    with pytest.raises(ElastalogError) as fraction:
        parse_fact("path(1.5, 2)", PROGRAM)
    helps = [raised.value.diagnostics[0].help for raised in (pattern, fact, fraction)]
    assert helps == ["write a number, a variable, or `_`", "write a number", "write a whole number"]


def test_a_relation_alone_is_told_its_attributes() -> None:
    with pytest.raises(ElastalogError, match=r"write `path\(from, to\)`, with a value, a variable or `_`"):
        parse_pattern("path", PROGRAM)
