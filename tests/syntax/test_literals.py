from __future__ import annotations

import pytest

from elastalog.syntax.tree import Comparison, NegatedGroup
from tests.syntax.reading import advice, findings, printed, read_clean, read_item, read_literal, shape
from tests.tables import table


def test_spans_of_an_atom() -> None:
    text = "p(x) :- edge (x, y)."
    (atom,) = read_item(text).body
    assert text[slice(*atom.span)] == "edge (x, y)"
    assert text[slice(*atom.relation_span)] == "edge"


# What is written as it is printed is read as what it says: `test_printer.py` has trees of every kind.
@pytest.mark.parametrize(("text", "again"), table(__file__, "literals are printed in one way"))
def test_literals_are_printed_in_one_way(text: str, again: str) -> None:
    assert printed(f"p(x) :- a(x), {text}.") == [f"p(x) :- a(x), {again}."]


@pytest.mark.parametrize("word", ["match", "contains"])
def test_match_and_contains_take_two_arguments(word: str) -> None:
    assert findings(f"p() :- {word}(x).") == [("E0124", f"`{word}` takes 2 arguments, not 1", f"{word}(x)")]


@pytest.mark.parametrize(("text", "again"), table(__file__, "negation of anything is kept as it was written"))
def test_negation_of_anything_is_kept_as_it_was_written(text: str, again: str) -> None:
    assert isinstance(read_literal(text), NegatedGroup)
    assert printed(f"p(x) :- a(x), {text}.") == [f"p(x) :- a(x), {again}."]


def test_the_span_of_a_negation_starts_at_its_sign() -> None:
    text = "p() :- q(x), !(x < 1), !match(x, y)."
    _, less, no_match = read_item(text).body
    assert text[slice(*less.span)] == "!(x < 1)"
    assert text[slice(*no_match.span)] == "!match(x, y)"


@pytest.mark.parametrize(("text", "left"), table(__file__, "the left side of a comparison"))
def test_the_left_side_of_a_comparison(text: str, left: str) -> None:
    comparison = read_literal(text)
    assert isinstance(comparison, Comparison)
    assert shape(comparison.left) == left


@pytest.mark.parametrize(("text", "expected"), table(__file__, "wrong literals", columns=2))
def test_wrong_literals(text: str, expected: tuple[str, str, str]) -> None:
    assert findings(f"p() :- {text}.") == [expected]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x is y + 1", "write `x = …`"),
        ("x IS NOT 3", "write `x != …`"),
        ("x is null", "there is no null: write `!relation(x, _)` for a fact that is not there"),
    ],
)
def test_advice_for_an_operator_that_there_is_not(text: str, told: str) -> None:
    assert advice(f"p() :- {text}.") == [told]


@pytest.mark.parametrize("text", ["not q(x)", "not(q(x))", "not (q(x))", "NOT(q(x), r(x))"])
def test_negation_in_words_is_told_of(text: str) -> None:
    word = text[:3]
    assert findings(f"p() :- {text}.") == [("E0115", f"negation is written `!`, not `{word}`", word)]


def test_an_atom_without_parentheses_is_read_as_one() -> None:
    assert findings("p :- q, !r.") == [
        ("E0114", "the atom `p` has no parentheses", "p"),
        ("E0114", "the atom `q` has no parentheses", "q"),
        ("E0114", "the atom `r` has no parentheses", "r"),
    ]
    assert advice("p() :- q.") == ["write `q()`"]
    assert advice("p() :- True.") == ["write `true`"]
    assert printed("p :- q, !r.") == ["p() :- q(), !r()."]


@pytest.mark.parametrize(
    ("text", "message", "meant"), table(__file__, "habits of other languages are understood and reported")
)
def test_habits_of_other_languages_are_understood_and_reported(text: str, message: str, meant: str) -> None:
    program = f"p() :- {text}."
    assert [(code, said) for code, said, _ in findings(program)] == [("E0115", message)]
    assert advice(program) == [f"write `{meant}` instead"]
    written = findings(program)[0][2]
    mended = program.replace(written + " q" if meant == "!" else written, meant + "q" if meant == "!" else meant)
    assert printed(program) == printed(mended.replace("~q", "!q"))


def test_a_relation_may_be_called_not() -> None:
    read_clean("p() :- not(x), and(x).")
